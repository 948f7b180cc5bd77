"""The readable table of a run, for a terminal of 100 columns, with or without colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from tensorferry.bench._declare import LIMIT
from tensorferry.bench._environment_text import environment_line
from tensorferry.bench._record import Run
from tensorferry.bench._result import GoalOutcome, Measurement, Result
from tensorferry.bench._summary import Summary, cases_of, is_absent, summarise
from tensorferry.bench._words import (
    goal_bound,
    goal_state,
    goals_against,
    limit_share,
    name_of,
    place_text,
    point_text,
    ratio_text,
    share_text,
    speed_text,
    time_text,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = ["LEGEND", "show", "show_case"]

_WIDEST = 116
_WIDE = 96
_WORST_SHOWN = 5
_COLUMNS: dict[str, tuple[int, Literal["left", "right"]]] = {
    "time": (7, "right"),
    "GB/s": (5, "right"),
    "limit": (5, "right"),
    "ours / it": (20, "right"),
    "ours is": (13, "left"),
    "goal": (14, "left"),
}
_DROPPED_IN_NARROW = ("GB/s", "ours is")
_STYLES = {"met": "green", "NOT MET": "bold red", "faster": "green", "slower": "red"}

LEGEND = (
    "ours / it: our time over the row's, the median of paired rounds and its 10 % and 90 % points. Below 1 ours is "
    'faster; an interval that holds 1 is "no difference". limit: share of the speed of the physical limit. '
    "*: the fastest peer. naive: as most people write it."
)


def show(found: Run | Result | Sequence[Result], console: Console | None = None) -> None:
    """Print a run with its summary, or single results.

    Parameters
    ----------
    found : Run, Result, or sequence of Result
    console : rich.console.Console, optional
        Where to print; standard output, if left out.

    Examples
    --------
    >>> from rich.console import Console
    >>> from tensorferry.bench import Measurement, Result
    >>> ours = Measurement("ferry", "ferry", "ours", (1e-6, 1e-6))
    >>> torch = Measurement("torch", "torch", "best", (2e-6, 2e-6))
    >>> show(Result("copy", "A copy", {}, (ours, torch)), Console(width=80))  # doctest: +ELLIPSIS
    ours / it: our time over the row's, ...
    """
    if console is None:
        from rich.console import Console as NewConsole

        console = NewConsole(markup=False, emoji=False, highlight=False)
    results = (found,) if isinstance(found, Result) else found.results if isinstance(found, Run) else tuple(found)
    console.print(LEGEND, style="dim")
    for case in cases_of(tuple(results)).values():
        console.print()
        show_case(case, console)
    if isinstance(found, Run):
        _show_summary(summarise(found.results), console)
        console.print(environment_line(found), style="dim")


def show_case(results: Sequence[Result], console: Console) -> None:
    """Print one case: its title, the names of the columns, and a block of rows for each point."""
    first = results[0]
    columns = _columns(console)
    console.print(_text((first.case, "bold"), f": {first.title}"))
    console.print(_grid(columns, console, header=True))
    for result in results:
        if result.point or not result.complete or result.origin == "simulated":
            console.print(_point_line(result))
        table = _grid(columns, console)
        for row in _rows(result):
            table.add_row(*(row.get(name, "") for name in ("", "candidate", *columns)))
        console.print(table)


def _text(*parts: str | tuple[str, str]) -> Text:
    from rich.text import Text

    return Text.assemble(*parts)


def _point_line(result: Result) -> Text:
    notes = [] if result.complete else [f"interrupted after {result.rounds} rounds"]
    notes += ["simulated"] if result.origin == "simulated" else []
    return _text((point_text(result.point), "bold"), f"  [{', '.join(notes)}]" if notes else "")


def _columns(console: Console) -> list[str]:
    return [name for name in _COLUMNS if console.width >= _WIDE or name not in _DROPPED_IN_NARROW]


def _grid(columns: Sequence[str], console: Console, header: bool = False) -> Table:
    from rich.table import Table

    width = min(console.width, _WIDEST)
    table = Table(box=None, show_header=header, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), width=width)
    table.add_column("", width=1)
    table.add_column("candidate", ratio=1, overflow="fold")
    for name in columns:
        width, justify = _COLUMNS[name]
        table.add_column(name, justify=justify, width=width, no_wrap=True)
    return table


def _rows(result: Result) -> Iterator[dict[str, Text | str]]:
    for measurement in (*result.measurements, *([result.limit] if result.limit else [])):
        yield _row(result, measurement)
    for goal in result.goals:
        if result.find(goal.against) is None:
            yield {"candidate": f"(goal) {goal.text}", "goal": _goals_cell([goal])}


def _row(result: Result, measurement: Measurement) -> dict[str, Text | str]:
    label = _text((name_of(measurement), "bold" if measurement is result.ours else ""))
    row: dict[str, Text | str] = {"candidate": label, "goal": _goals_cell(goals_against(result, measurement))}
    if measurement.error is not None:
        absent = is_absent(measurement)
        label.append(f"\n{measurement.error}", style="dim" if absent else "red")
        return row | {"time": "absent" if absent else _text(("FAILED", "bold red"))}
    row |= {
        "": "*" if measurement is result.best_peer else "",
        "time": time_text(measurement),
        "GB/s": speed_text(measurement, result.nbytes),
        "limit": share_text(limit_share(result, measurement)),
    }
    ratio = result.ratio(LIMIT if measurement.form == "limit" else measurement.label)
    if ratio is None or measurement is result.ours:
        return row
    word = "" if measurement.form == "limit" else ratio.verdict
    return row | {"ours / it": ratio_text(ratio), "ours is": _text((word, _STYLES.get(word, "")))}


def _goals_cell(goals: Sequence[GoalOutcome]) -> Text:
    parts: list[str | tuple[str, str]] = []
    for goal in goals:
        state = goal_state(goal)
        bound = "" if state == "not measured" else f"{goal_bound(goal)} "
        parts += ["\n" if parts else "", bound, (state, _STYLES.get(state, ""))]
    return _text(*parts)


def _show_summary(summary: Summary, console: Console) -> None:
    console.print()
    met, unmet, unknown = summary.goal_counts
    console.print(
        _text(
            ("Goals: ", "bold"),
            (f"{met} met", "green" if met else ""),
            ", ",
            (f"{unmet} NOT MET", "bold red" if unmet else ""),
            f", {unknown} not measured",
        )
    )
    for record in summary.goals:
        if record.unmet:
            _indented(console, record.sentence)
    _show_cells(summary, console)
    for result, measurement in (*summary.failed, *summary.peers_failed):
        where = f"{place_text(result)}: {measurement.label}: {measurement.error}"
        console.print(_text(("FAILED ", "bold red"), where))
    values = f"{summary.checked_values:,} values were compared with the expected ones"
    console.print(_text(values, "; ", "ours are all right." if summary.ok else ("OURS ARE NOT ALL RIGHT.", "bold red")))


def _show_cells(summary: Summary, console: Console) -> None:
    if not summary.cells:
        return
    counts = ", ".join(f"{summary.count(verdict)} {verdict}" for verdict in ("faster", "no difference", "slower"))
    console.print(_text(("Against the best peer: ", "bold"), f"{counts}. The largest ratios:"))
    for cell in summary.cells[:_WORST_SHOWN]:
        _indented(console, f"{ratio_text(cell.ratio)}  {place_text(cell.result)}: {cell.peer.label}")


def _indented(console: Console, text: str) -> None:
    from rich.padding import Padding

    console.print(Padding(text, (0, 0, 0, 4)))
