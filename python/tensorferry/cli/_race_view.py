"""Prints races on a simulated device."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from tensorferry._demo._race import Nest, Race, Report
from tensorferry.cli._output import counted, grid, heading, stdout, verdict

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["show"]

_ABOUT = (
    "All of this is simulated. A double of the NVIDIA driver stands in for a GPU: it runs accepted work as late as the "
    "driver's documentation allows (lazy), at once (eager), or in random orders that are allowed (shuffled), and fills "
    "what a copy will write with poison until then. The usual way is run as the call that torch's copy_ makes of the "
    "driver. A missing wait is seen; how often it hurts on hardware is not."
)
_PLACE = re.compile(r" (?:from|to)=\S+")


def show(report: Report) -> None:
    """Print the races, then the same with a rule switched off, then the calls of the driver that a nest takes."""
    console = stdout()
    console.print(_ABOUT)
    console.print()
    console.print(heading("The device writes, the host copies and reads (simulated)"))
    _show_races(console, report)
    console.print()
    console.print(heading("tensorferry with one rule switched off (simulated)"))
    _show_switched_off(console, report)
    console.print()
    console.print(heading(f"{report.nest.code}, {report.nest.tensors} tensors: the simulated driver's trace"))
    _show_nest(console, report.nest)
    console.print()
    complaints = report.complaints()
    good = "The usual way races, tensorferry does not, and a rule that is off is noticed"
    bad = f"WRONG: {'; '.join(complaints)}"
    console.print(verdict(not complaints, good, bad), f"({report.seconds:.0f} s, simulated)")


def _show_races(console: Console, report: Report) -> None:
    table = grid("!side", "!verdict", "what happened")
    for side, races in (("usual", report.usual), ("tensorferry", report.ours)):
        for _, group in itertools.groupby(races, lambda race: race.code):
            tried = list(group)
            right = not any(race.wrong for race in tried)
            table.add_row(side, verdict(right, "right", "RACE"), _told(tried))
    console.print(table)


def _show_switched_off(console: Console, report: Report) -> None:
    table = grid("!side", "!verdict", "what happened")
    for rule, group in itertools.groupby(report.switched_off, lambda race: race.rule):
        tried = list(group)
        noticed = any(race.wrong for race in tried)
        off = Text.assemble((f"off: {rule}", "bold"), "\n", _told(tried))
        table.add_row("tensorferry", verdict(noticed, "noticed", "MISSED"), off)
    console.print(table)


def _told(races: list[Race]) -> Text:
    return Text.assemble((races[0].code, "cyan"), *(f"\n{_outcome(race)}" for race in races))


def _outcome(race: Race) -> str:
    times, orders = counted(race.seeds, "time", "times"), counted(race.orders, "order", "orders")
    tries = (
        f"{race.schedule}, {race.seeds:,} seeds in {orders}"
        if race.schedule == "shuffled"
        else f"{race.schedule}, {times}"
    )
    if not race.wrong:
        return f"{tries}: right every time"
    what = "poison" if race.poisoned == race.wrong else "wrong values"
    if race.wrong == race.seeds:
        return f"{tries}: {what} every time"
    return f"{tries}: {what} {race.wrong:,} times, first with seed {race.first_wrong_seed}"


def _show_nest(console: Console, nest: Nest) -> None:
    for line, times in _runs(nest.work):
        console.print(Text.assemble((f"{times:>5} x " if times > 1 else "        ", "dim"), (line, "cyan")))
    others = len(nest.trace) - len(nest.work)
    console.print(f"besides, {counted(others, 'call asks', 'calls ask')} about contexts and captures")
    copies = counted(nest.copies, "copy", "copies")
    events, waits = counted(nest.events, "event", "events"), counted(nest.waits, "wait", "waits")
    console.print(f"{nest.tensors} tensors:", verdict(nest.is_one_batch, *[f"{copies}, {events}, {waits}"] * 2))


def _runs(calls: list[str]) -> Iterator[tuple[str, int]]:
    """Neighbouring copies that differ only in their places, and other equal neighbours, as one."""
    for line, run in itertools.groupby(_PLACE.sub("", call) for call in calls):
        yield line, len(list(run))
