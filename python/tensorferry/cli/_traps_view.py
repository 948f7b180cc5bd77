"""Prints the accidents, both sides of each."""

from __future__ import annotations

from rich.text import Text

from tensorferry._demo._traps import Observation, Trap
from tensorferry.cli._output import counted, grid, heading, stdout, verdict

__all__ = ["show"]


def show(traps: list[Trap]) -> None:
    """Print each accident with the code of both sides and what it did just now."""
    console = stdout()
    for trap in traps:
        console.print(heading(trap.title))
        table = grid("!side", "!verdict", "what happened")
        table.add_row("usual", verdict(trap.usual.right, "fine here", "TRAP"), _told(trap.usual))
        table.add_row("tensorferry", verdict(trap.ours.right, "right", "WRONG"), _told(trap.ours))
        console.print(table)
        console.print()
    sprung = sum(not trap.usual.right for trap in traps)
    text = f"{sprung} of {counted(len(traps), 'accident', 'accidents')} happened just now with torch and NumPy"
    wrong = [trap.title for trap in traps if not trap.ours.right]
    console.print(
        f"{text};", verdict(not wrong, "none with tensorferry.", f"WRONG with tensorferry: {'; '.join(wrong)}")
    )


def _told(observation: Observation) -> Text:
    return Text.assemble((observation.code, "cyan"), "\n", observation.seen)
