"""Plans the conversion of every tensor in a file."""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from tensorferry._errors import FerryError
from tensorferry._plan.plan import Plan
from tensorferry._plan.planning import plan
from tensorferry.cli._files import SUFFIXES, open_file

__all__ = ["Found", "Row", "check_usage", "examine"]


@dataclass(frozen=True)
class Row:
    """One tensor of the file.

    Attributes
    ----------
    name : str
    dtype : str
        As the file's side names it; "" when it could not be read.
    shape : tuple of int
    nbytes : int
        Size of its elements.
    plan : Plan or None
        What its conversion will do; None when it is refused.
    error : FerryError or None
        Why it is refused, or could not be read.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    plan: Plan | None
    error: FerryError | None = None

    def document(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        error = self.error
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "nbytes": self.nbytes,
            "plan": dataclasses.asdict(self.plan) if self.plan is not None else None,
            "error": {"given": error.given, "why": error.why, "instead": error.instead} if error is not None else None,
        }


@dataclass(frozen=True)
class Found:
    """All tensors of a file, and the chart of the one that was asked about."""

    file: str
    opened_as: str
    to: str
    rows: list[Row]
    chart: str

    @property
    def ok(self) -> bool:
        """Does every tensor convert?"""
        return all(row.error is None for row in self.rows)

    @property
    def totals(self) -> dict[str, int]:
        """Count tensors and bytes."""
        plans = [row.plan for row in self.rows if row.plan is not None]
        return {
            "tensors": len(self.rows),
            "nbytes": sum(row.nbytes for row in self.rows),
            "copies": sum(made.copies for made in plans),
            "nbytes_moved": sum(made.nbytes_moved for made in plans),
            "refused": len(self.rows) - len(plans),
        }

    def document(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "ok": self.ok,
            "file": self.file,
            "opened_as": self.opened_as,
            "to": self.to,
            "tensors": [row.document() for row in self.rows],
            "totals": self.totals,
            "chart": self.chart.splitlines(),
        }


def check_usage(path: Path, to: str | None) -> None:
    """Raise a usage error for a suffix or a direction that does not exist."""
    if path.suffix.lower() not in SUFFIXES:
        raise typer.BadParameter(f"{path.name} ends in none of {', '.join(SUFFIXES)}", param_hint="FILE")
    if to not in (None, "numpy", "torch"):
        raise typer.BadParameter(f"{to!r} is neither numpy nor torch", param_hint="--to")


def examine(path: Path, to: str | None, wanted: str | None) -> Found:
    """Plan every tensor of the file, holding one at a time, and explain the one called `wanted`, or the only one."""
    content = open_file(path)
    to = to or {"numpy": "torch", "torch": "numpy"}[content.side]
    rows: list[Row] = []
    chart = ""
    for name, tensor in content.tensors:
        row = _row(name, tensor, to)
        if wanted is None:
            chart = _chart(tensor, to) if not rows else ""
        elif wanted == name:
            chart = _chart(tensor, to)
        rows.append(row)
    if wanted is not None and wanted not in [row.name for row in rows]:
        raise typer.BadParameter(_not_there(path, wanted, [row.name for row in rows]), param_hint="--tensor")
    return Found(str(path), content.opened_as, to, rows, chart)


def _not_there(path: Path, wanted: str, names: list[str]) -> str:
    near = difflib.get_close_matches(wanted, names) or names[:3]
    return f"{path.name} has no tensor {wanted!r}; it has {', '.join(map(repr, near)) or 'none'}"


def _row(name: str, tensor: Any, to: str) -> Row:
    if isinstance(tensor, FerryError):
        return Row(name, "", (), 0, None, tensor)
    dtype = str(tensor.dtype).removeprefix("torch.")
    shape = () if getattr(tensor, "is_nested", False) else tuple(tensor.shape)
    nbytes = tensor.numel() * tensor.element_size() if hasattr(tensor, "numel") else tensor.nbytes
    try:
        return Row(name, dtype, shape, nbytes, plan(tensor, to=to))
    except FerryError as error:
        return Row(name, dtype, shape, nbytes, None, error)


def _chart(tensor: Any, to: str) -> str:
    from tensorferry import explain

    return "" if isinstance(tensor, FerryError) else str(explain(tensor, to=to))
