"""Prints what was left of files whose writer was killed."""

from __future__ import annotations

from rich.text import Text

from tensorferry._demo._crash import Report, Side
from tensorferry._units import human_bytes
from tensorferry.cli._output import counted, grid, human_seconds, stdout, verdict

__all__ = ["show"]


def show(report: Report) -> None:
    """Print each way to save with what became of its files."""
    console = stdout()
    console.print(
        f"A process saves {human_bytes(report.nbytes)} in 64 tensors over the version before, again and again, and is "
        f"killed (SIGKILL) at a random moment (seed {report.seed}). Then somebody reads the file."
    )
    console.print()
    table = grid("!verdict", "what happened")
    for side in report.sides:
        table.add_row(verdict(side.harmless, "whole", "LOST"), _told(side))
    console.print(table)
    console.print()
    ours = [side for side in report.sides if side.is_ours]
    lost = sum(side.unreadable + side.mixed for side in report.sides if not side.is_ours)
    kills = counted(sum(side.kills for side in ours), "kill", "kills")
    good = f"No file of tensorferry was lost in {kills}; {lost:,} of the others"
    bad = f"WRONG: {counted(sum(side.unreadable + side.mixed for side in ours), 'file', 'files')} of tensorferry lost"
    left = sum(side.left_nbytes for side in ours)
    bad += f", {human_bytes(left)} of temporary files stay" if left else ""
    console.print(verdict(report.ok, good, bad), f"({report.seconds:.0f} s)")


def _told(side: Side) -> Text:
    parts = [f"{counted(side.kills, 'kill', 'kills')}: {side.whole:,} whole"]
    if side.unreadable:
        parts.append(f"{side.unreadable:,} unreadable, and the version before is gone")
    if side.mixed:
        parts.append(f"{side.mixed:,} readable and wrong")
    if side.left_nbytes:
        parts.append(f"{human_bytes(side.left_nbytes)} of temporary files stay")
    return Text.assemble((side.code, "cyan"), "\n", f"{', '.join(parts)} (a save takes {human_seconds(side.save_s)})")
