"""What a whole run comes to: goals, cells, failures, and what was left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tensorferry._units import counted
from tensorferry.bench._declare import BEST_PEER, LIMIT
from tensorferry.bench._result import GoalOutcome, Measurement, Ratio, Result
from tensorferry.bench._words import number_text, point_text

__all__ = ["Cell", "GoalRecord", "Summary", "cases_of", "is_absent", "summarise"]


@dataclass(frozen=True)
class Cell:
    """One result beside its best peer."""

    result: Result
    peer: Measurement
    ratio: Ratio


@dataclass(frozen=True)
class GoalRecord:
    """One goal of one case over all the points it holds for.

    Attributes
    ----------
    case, text : str
    met, unmet, unknown : tuple of (Result, GoalOutcome)
        Where it was met, was not met, and could not be judged.
    """

    case: str
    text: str
    met: tuple[tuple[Result, GoalOutcome], ...]
    unmet: tuple[tuple[Result, GoalOutcome], ...]
    unknown: tuple[tuple[Result, GoalOutcome], ...]

    @property
    def worst(self) -> tuple[Result, GoalOutcome] | None:
        """The point that is farthest from the goal, among those that were judged."""
        judged = (*self.met, *self.unmet)
        return max(judged, key=lambda pair: pair[1].reached) if judged else None

    @property
    def sentence(self) -> str:
        """Where the goal stands, in words."""
        judged = len(self.met) + len(self.unmet)
        points = f"met at {len(self.met)} of {counted(judged, 'point', 'points')}" if judged else "not measured"
        worst = f", worst {self.worst_text}" if self.worst is not None else ""
        return f"{self.case}: {self.text}: {points}{worst}"

    @property
    def worst_text(self) -> str:
        """What was reached at the worst point, and which that is."""
        if self.worst is None:
            return ""
        result, goal = self.worst
        where = point_text(result.point)
        reached = (
            f"{1 / goal.reached:.0%} of the limit" if goal.against == LIMIT else f"ratio {number_text(goal.reached)}"
        )
        return f"{reached} ({where})" if where else reached


@dataclass(frozen=True)
class Summary:
    """What a run comes to.

    Attributes
    ----------
    cells : tuple of Cell
        Every result in which ours and a peer were measured, the largest ratio first.
    goals : tuple of GoalRecord
        Every goal with the points at which it was met, not met, and could not be judged.
    failed : tuple of (Result, Measurement)
        Candidates of ours that raised or gave a wrong value.
    peers_failed : tuple of (Result, Measurement)
        Peers that raised or gave a wrong value.
    absent : dict of str to int
        Why candidates were left out because something is not installed, and how many.
    checked_values : int
        Elements that were compared with the expected ones.
    simulated : int
        Results that come from a simulation.
    """

    cells: tuple[Cell, ...]
    goals: tuple[GoalRecord, ...]
    failed: tuple[tuple[Result, Measurement], ...]
    peers_failed: tuple[tuple[Result, Measurement], ...]
    absent: dict[str, int]
    checked_values: int
    simulated: int

    @property
    def ok(self) -> bool:
        """Did every candidate of ours run and give the right values? Times and goals do not matter."""
        return not self.failed

    @property
    def goal_counts(self) -> tuple[int, int, int]:
        """How often a goal was met, not met, and could not be judged, over all points."""
        met, unmet, unknown = ([getattr(goal, name) for goal in self.goals] for name in ("met", "unmet", "unknown"))
        return sum(map(len, met)), sum(map(len, unmet)), sum(map(len, unknown))

    def count(self, verdict: str) -> int:
        """Return in how many cells ours is "faster", "slower" or makes "no difference" against the best peer."""
        return sum(cell.ratio.verdict == verdict for cell in self.cells)


def summarise(results: tuple[Result, ...]) -> Summary:
    """Sum up the results of a run."""
    cells = [cell for result in results if (cell := _cell(result)) is not None]
    errors = [(result, found) for result in results for found in result.measurements if found.error is not None]
    wrong = [(result, found) for result, found in errors if not is_absent(found)]
    return Summary(
        cells=tuple(sorted(cells, key=lambda cell: -cell.ratio.median)),
        goals=_records(results),
        failed=tuple(pair for pair in wrong if pair[1].form == "ours"),
        peers_failed=tuple(pair for pair in wrong if pair[1].form != "ours"),
        absent=dict(Counter(f"{found.label}: {found.error}" for _, found in errors if is_absent(found))),
        checked_values=sum(result.checked_values for result in results),
        simulated=sum(result.origin == "simulated" for result in results),
    )


def is_absent(measurement: Measurement) -> bool:
    """Was it left out because a package that it needs is not installed?"""
    return measurement.error is not None and "not installed" in measurement.error


def cases_of(results: tuple[Result, ...]) -> dict[str, list[Result]]:
    """Return the results by case, in the order in which they were measured."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.case, []).append(result)
    return found


def _records(results: tuple[Result, ...]) -> tuple[GoalRecord, ...]:
    grouped: dict[tuple[str, str], list[tuple[Result, GoalOutcome]]] = {}
    for result in results:
        for goal in result.goals:
            grouped.setdefault((result.case, goal.text), []).append((result, goal))
    return tuple(
        GoalRecord(case, text, *(tuple(pair for pair in pairs if pair[1].met is met) for met in (True, False, None)))
        for (case, text), pairs in grouped.items()
    )


def _cell(result: Result) -> Cell | None:
    ratio, peer = result.ratio(BEST_PEER), result.best_peer
    return None if ratio is None or peer is None else Cell(result, peer, ratio)
