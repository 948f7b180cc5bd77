"""Names of metrics: where a value lies in its nest, joined by ``/``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tensorferry._errors import ArgumentError
from tensorferry._nest import cycle_error, open_node

__all__ = ["element_names", "flatten", "prefixed", "same_name"]


def flatten(metrics: Any) -> dict[str, Any]:
    """Return the leaves of a nest by their names, in the order of insertion.

    Raises
    ------
    ArgumentError
        For two values with one name, and for what is no nest.
    LayoutError
        For a nest that contains itself.
    """
    if open_node(metrics) is None:
        raise ArgumentError(
            f"metrics of type {type(metrics).__name__}",
            "each value needs a name",
            'pass a dict of names and values: log({"loss": loss})',
        )
    found: dict[str, Any] = {}
    _visit(metrics, "", set(), found)
    return found


def _visit(node: Any, name: str, open_ids: set[int], found: dict[str, Any]) -> None:
    opened = None if isinstance(node, (str, int, float)) else open_node(node)
    if opened is None:
        if name in found:
            raise same_name(name)
        found[name] = node
        return
    if id(node) in open_ids:
        raise cycle_error()
    open_ids.add(id(node))
    for key, child in zip(_keys(node, len(opened[0])), opened[0], strict=True):
        _visit(child, f"{name}/{key}" if name else key, open_ids, found)
    open_ids.discard(id(node))


def _keys(node: Any, count: int) -> list[str]:
    if isinstance(node, Mapping):
        return [str(key) for key in node]
    if dataclasses.is_dataclass(node):
        return [field.name for field in dataclasses.fields(node) if hasattr(node, field.name)]
    return list(getattr(node, "_fields", None) or map(str, range(count)))


def same_name(name: str) -> ArgumentError:
    """Return the error for two values of one call that would be one metric."""
    return ArgumentError(
        f"two metrics that are both called {name!r}",
        "names of nests and numbers of elements are joined by '/', and these come out the same",
        "rename one of them",
    )


def element_names(name: str, shape: tuple[int, ...]) -> list[str]:
    """Return the names of a tensor's elements, in C order: its own for one element, else ``name/0``, ``name/1/2``."""
    names = [name]
    if all(extent == 1 for extent in shape):
        return names
    for extent in shape:
        names = [f"{known}/{i}" for known in names for i in range(extent)]
    return names


class prefixed(dict[str, str]):  # noqa: N801 - it is used like a function
    """Names behind a namespace; each is joined once and then known."""

    def __init__(self, namespace: str) -> None:
        super().__init__()
        self._namespace = namespace

    def __missing__(self, name: str) -> str:
        self[name] = joined = f"{self._namespace}/{name}"
        return joined
