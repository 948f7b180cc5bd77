"""Several values of one metric made one: the arithmetic of ``agg=``, on the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorferry._errors import ArgumentError

__all__ = ["AGGREGATIONS", "Aggregations", "combined", "finished"]

AGGREGATIONS = ("last", "mean", "sum", "min", "max")


class Aggregations:
    """Which aggregation each name gets.

    Parameters
    ----------
    agg : str or mapping of str to str
        One for all, or by name or by the part of it before a ``/``; the longest that fits counts. The key ``"*"``
        stands for all other names, which else get "last".
    """

    def __init__(self, agg: str | Mapping[str, str]) -> None:
        by_name = {"*": agg} if isinstance(agg, str) else dict(agg)
        for kind in by_name.values():
            if kind not in AGGREGATIONS:
                raise ArgumentError(
                    f"agg={agg!r}", f"{kind!r} is no aggregation", f"choose of {', '.join(map(repr, AGGREGATIONS))}"
                )
        self._default = by_name.pop("*", "last")
        self._by_name = by_name
        self._known: dict[str, str] = {}
        self.keeps_last = self._default == "last" and all(kind == "last" for kind in by_name.values())

    def of(self, name: str) -> str:
        """Return the aggregation of a name."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._find(name)
        return known

    def _find(self, name: str) -> str:
        while name:
            if name in self._by_name:
                return self._by_name[name]
            name = name.rpartition("/")[0]
        return self._default


def combined(kind: str, total: Any, value: Any) -> Any:
    """Return the total of a metric after one more value; a mean is kept as a sum until it is finished.

    NaN stays NaN, as on devices.
    """
    if kind in ("sum", "mean"):
        return total + value
    if kind == "last" or value != value:
        return value
    if total != total:
        return total
    return min(total, value) if kind == "min" else max(total, value)


def finished(kind: str, total: Any, count: int) -> Any:
    """Return what is delivered."""
    return total / count if kind == "mean" else total
