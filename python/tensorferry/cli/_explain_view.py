"""Prints the plans of a file's tensors."""

from __future__ import annotations

from tensorferry._plan.plan import Plan
from tensorferry.cli._explain import Found, Row
from tensorferry.cli._output import counted, grid, heading, human_bytes, stdout, verdict

__all__ = ["show"]


def show(found: Found) -> None:
    """Print one line per tensor, the totals, and the chart if there is one."""
    console = stdout()
    console.print(heading(found.file), f"to {found.to}, opened with {found.opened_as}")
    if not found.rows:
        console.print("no tensors in it")
        return
    table = grid("tensor", "!dtype", "shape", "!>bytes", "plan", header=True)
    for row in found.rows:
        table.add_row(row.name, row.dtype, str(row.shape) if row.dtype else "", f"{row.nbytes:,}", _line(row))
    console.print(table)
    console.print(_totals(found))
    for row in found.rows:
        if row.error is not None:
            console.print(verdict(False, no="refused"), f"{row.name}: {row.error}")
    if found.chart:
        console.print()
        console.print(found.chart)


def _line(row: Row) -> str:
    if row.plan is None:
        return "refused, see below"
    made: Plan = row.plan
    if not made.copies:
        return f"{made.path}, nothing moved"
    waits = f", waits for {' and '.join(made.waits)}" if made.waits else ""
    return f"{made.path}, {human_bytes(made.nbytes_moved)} moved{waits}: {made.reason}"


def _totals(found: Found) -> str:
    totals = found.totals
    moved = f"{counted(totals['copies'], 'copy', 'copies')}, {human_bytes(totals['nbytes_moved'])} moved"
    refused = f", {totals['refused']} refused" if totals["refused"] else ""
    count = counted(totals["tensors"], "tensor", "tensors")
    return f"{count}, {human_bytes(totals['nbytes'])}: {moved if totals['copies'] else 'nothing moved'}{refused}"
