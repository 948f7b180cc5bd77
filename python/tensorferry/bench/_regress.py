"""Compares two runs. Bare times of two runs mean nothing, so our ratios are compared, interval by interval."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tensorferry._units import counted
from tensorferry.bench._declare import LIMIT
from tensorferry.bench._environment_text import environment_rows
from tensorferry.bench._result import Ratio, Result, Verdict
from tensorferry.bench._words import place_text, ratio_text

if TYPE_CHECKING:
    from rich.console import Console

    from tensorferry.bench._record import Run

__all__ = ["Change", "Difference", "Failure", "Regression", "regression", "show"]

_Key = tuple[str, tuple[tuple[str, int | float | str], ...]]


@dataclass(frozen=True)
class Change:
    """Our ratio to one other, in both runs.

    Attributes
    ----------
    place : str
        The case and the point.
    against : str
        The peer that was the best before, by its label, or the limit.
    before, after : Ratio
    verdict : {"faster", "slower", "no difference"}
        Not "no difference" only when the intervals do not overlap.
    """

    place: str
    against: str
    before: Ratio
    after: Ratio

    @property
    def verdict(self) -> Verdict:
        """How ours changed."""
        if self.after.low > self.before.high:
            return "slower"
        return "faster" if self.after.high < self.before.low else "no difference"


@dataclass(frozen=True)
class Failure:
    """A candidate that ran before and fails now."""

    place: str
    label: str
    form: str
    error: str


@dataclass(frozen=True)
class Difference:
    """A fact of the environment that changed; None where a run does not have it."""

    fact: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Regression:
    """What changed between two runs.

    Attributes
    ----------
    changes : tuple of Change
        Every ratio that both runs have, those that got slower first.
    failing, mended : tuple of Failure
        Candidates that began to fail, and those that no longer do, with the error of the run that has it.
    lost, new : tuple of str
        Places that only one of the runs has.
    environment : tuple of Difference
    """

    changes: tuple[Change, ...]
    failing: tuple[Failure, ...]
    mended: tuple[Failure, ...]
    lost: tuple[str, ...]
    new: tuple[str, ...]
    environment: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """Did nothing get slower, and does no candidate of ours fail that did not before?"""
        return not self.of("slower") and not any(failure.form == "ours" for failure in self.failing)

    def of(self, verdict: Literal["faster", "slower", "no difference"]) -> tuple[Change, ...]:
        """Return the changes with this verdict."""
        return tuple(change for change in self.changes if change.verdict == verdict)

    def document(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        document = {"ok": self.ok, **dataclasses.asdict(self)}
        document["changes"] = [{**dataclasses.asdict(change), "verdict": change.verdict} for change in self.changes]
        return document


def regression(before: Run, after: Run) -> Regression:
    """Compare two runs, matched by case, point and label."""
    old = {_key(result): result for result in before.results}
    new = {_key(result): result for result in after.results}
    both = [key for key in old if key in new]
    changes = [change for key in both for change in _changes(old[key], new[key])]
    return Regression(
        changes=tuple(sorted(changes, key=lambda change: -change.after.median / change.before.median)),
        failing=tuple(failure for key in both for failure in _failing(old[key], new[key])),
        mended=tuple(failure for key in both for failure in _failing(new[key], old[key])),
        lost=tuple(place_text(old[key]) for key in old if key not in new),
        new=tuple(place_text(new[key]) for key in new if key not in old),
        environment=tuple(_differences(before, after)),
    )


def _key(result: Result) -> _Key:
    return result.case, tuple(sorted(result.point.items()))


def _changes(before: Result, after: Result) -> Iterator[Change]:
    # The best peer may be another one in the second run, by chance alone: the first run's is looked up by its label.
    best = before.best_peer
    for against, label in ((best.label, best.label) if best else ("", ""), (_limit_name(before), LIMIT)):
        then, now = (before.ratio(label), after.ratio(label)) if label else (None, None)
        if then is not None and now is not None:
            yield Change(place_text(before), against, then, now)


def _limit_name(result: Result) -> str:
    return f"limit: {result.limit.label}" if result.limit is not None else ""


def _failing(before: Result, after: Result) -> Iterator[Failure]:
    fine = {one.label for one in before.measurements if one.error is None}
    for one in after.measurements:
        if one.error is not None and one.label in fine:
            yield Failure(place_text(after), one.label, one.form, one.error)


def _differences(before: Run, after: Run) -> Iterator[Difference]:
    then, now = _facts(before), _facts(after)
    for fact in dict.fromkeys((*then, *now)):
        if then.get(fact) != now.get(fact):
            yield Difference(fact, then.get(fact), now.get(fact))


def _facts(run: Run) -> dict[str, str]:
    kind = {"kind of run": "quick" if run.quick else "full", "device": run.device}
    return kind | dict(environment_rows(run.environment))


def show(found: Regression, console: Console) -> None:
    """Print what changed."""
    _show_environment(found, console)
    for verdict, title in (("slower", "Slower"), ("faster", "Faster")):
        _show_changes(title, found.of(verdict), console)  # type: ignore[arg-type]
    for title, failures in (("Fail now", found.failing), ("No longer fail", found.mended)):
        if failures:
            console.print(f"{title}:", style="bold")
        for failure in failures:
            console.print(f"  {failure.place}: {failure.label}: {failure.error}")
    for title, places in (("Only in the first run", found.lost), ("Only in the second run", found.new)):
        if places:
            console.print(f"{title}: {', '.join(places)}")
    same = len(found.of("no difference"))
    counts = f"{len(found.of('slower'))} slower, {len(found.of('faster'))} faster, {same} no difference"
    console.print(f"{counts} (of {counted(len(found.changes), 'ratio', 'ratios')} that both runs have).")
    console.print("A ratio counts as changed only when its intervals in the two runs do not overlap.", style="dim")


def _show_environment(found: Regression, console: Console) -> None:
    if found.environment:
        console.print("The runs differ in:", style="bold")
    for one in found.environment:
        console.print(f"  {one.fact}: {_or_missing(one.before)} -> {_or_missing(one.after)}")


def _or_missing(text: str | None) -> str:
    return "not recorded" if text is None else text


def _show_changes(title: str, changes: tuple[Change, ...], console: Console) -> None:
    from rich.table import Table

    if not changes:
        return
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), title=None)
    table.add_column(title, overflow="fold", ratio=3)
    table.add_column("against", overflow="fold", ratio=2)
    table.add_column("ours / it before", justify="right", no_wrap=True)
    table.add_column("after", justify="right", no_wrap=True)
    for change in changes:
        table.add_row(change.place, change.against, ratio_text(change.before), ratio_text(change.after))
    console.print(table)
