"""Prints what the demo did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding

from tensorferry._demo._report import Report, Section, Timing
from tensorferry.bench._clock import ROUNDS
from tensorferry.cli._output import counted, grid, heading, human_bytes, human_seconds, stdout, verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = ["show"]


def show(report: Report) -> None:
    """Print plans and checks by section, then the table of times."""
    console = stdout()
    for section in report.sections:
        _show_section(console, section)
    _show_times(console, report)
    console.print(_about_gpu(report))
    console.print()
    values = sum(check.values for section in report.sections for check in section.checks)
    wrong = sum(check.wrong for section in report.sections for check in section.checks)
    good, bad = f"All {values:,} values are right", f"{wrong:,} of {values:,} values are WRONG"
    console.print(verdict(report.ok, good, bad), f"({report.seconds:.0f} s)")


def _show_section(console: Console, section: Section) -> None:
    console.print(heading(f"{section.title}:"), section.story)
    for conversion in section.conversions:
        console.print(conversion.call, style="cyan")
        console.print(Padding(str(conversion.plan), (0, 0, 0, 4)))
    for check in section.checks:
        if check.wrong:
            console.print(verdict(False, no="WRONG"), f"{check.what}: {check.wrong:,} of {check.values:,} values")
    if not any(check.wrong for check in section.checks):
        total = sum(check.values for check in section.checks)
        compared = counted(len(section.checks), "comparison", "comparisons")
        console.print(verdict(True), f"{compared} with plain torch and NumPy, {total:,} values equal")
    console.print()


def _show_times(console: Console, report: Report) -> None:
    console.print(heading("Time per call:"), f"medians of {ROUNDS} interleaved rounds.")
    console.print("usual: the fastest usual idiom found; ratio: ours / usual, ~ where the rounds disagree;")
    speed = human_bytes(report.memcpy_bytes_per_s)
    console.print(f"memcpy: as many bytes into memory that is there already (64 MiB: {speed}/s).")
    console.print()
    console.print(_times(report.timings))
    if report.busy:
        share = min(timing.cpu_share for timing in report.timings)
        text = f"Other programs are busy here: calls got as little as {share:.0%} of a core. Long calls suffer most."
        console.print(text, style="yellow")
    console.print()


def _times(timings: list[Timing]) -> Table:
    table = grid("conversion: tensorferry / usual", "!>ours", "!>usual", "!>ratio", "!>memcpy", header=True)
    for timing in timings:
        table.add_row(_calls(timing), *_figures(timing))
    return table


def _calls(timing: Timing) -> Text:
    from rich.text import Text

    size = f", {human_bytes(timing.nbytes)}" if timing.nbytes else ""
    return Text.assemble(timing.what, size, "\n", (f"{timing.ours} / {timing.usual}", "dim"))


def _figures(timing: Timing) -> tuple[str, str, Text, str]:
    memcpy = human_seconds(timing.memcpy_s) if timing.nbytes else ""
    ratio = verdict(timing.ratio <= 1, *[f"{'' if timing.steady else '~'}{timing.ratio:.2f}"] * 2)
    return human_seconds(timing.ours_s), human_seconds(timing.usual_s), ratio, memcpy


def _about_gpu(report: Report) -> str:
    if report.gpu:
        return f"A GPU seems to be here ({report.gpu}); it was left alone: all of the above is host memory."
    return (
        "No GPU that this torch can use is here: all of the above is host memory. With one, the same lines work on its "
        "tensors: copied by the driver into pinned memory on CUDA, by torch elsewhere, as their plans say."
    )
