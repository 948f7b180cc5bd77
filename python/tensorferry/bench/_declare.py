"""What a case is made of: its inputs, the candidates, the limit and the goals. Plain data, nothing runs here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "ALONE",
    "BEST_PEER",
    "LIMIT",
    "Candidate",
    "Case",
    "Code",
    "Form",
    "Goal",
    "Inputs",
    "Point",
    "at_least",
    "at_most",
    "best",
    "naive",
    "ours",
    "share_of_limit",
]

Inputs = dict[str, Any]
"""The names that a candidate's code can use, as ``setup`` made them."""

Point = Mapping[str, int | float | str]
"""One setting of a case's parameters, for example ``{"nbytes": 1 << 20, "dtype": "float32"}``."""

Code = str | Callable[[Inputs], object]
"""A Python expression over the names of the inputs (and ``np``, and what it needs), or a function of the inputs."""

Form = Literal["ours", "naive", "best"]

BEST_PEER = "the best peer"
LIMIT = "the limit"
ALONE = "the loop alone"
"""The label of work that others are beside of: reports draw its slow-down over the rate of what is beside it."""


@dataclass(frozen=True)
class Candidate:
    """One way to do the work.

    Attributes
    ----------
    label : str
        How tables name it; for an expression usually the expression itself.
    code : str or callable
    form : {"ours", "naive", "best"}
        Ours, or a peer as most people write it, or a peer as its experts would.
    needs : tuple of str
        Modules without which it is left out, and reported as not installed.
    """

    label: str
    code: Code
    form: Form = "best"
    needs: tuple[str, ...] = ()


def ours(label: str, code: Code | None = None) -> Candidate:
    """Return the candidate under test; the label is its code unless another is given."""
    return Candidate(label, label if code is None else code, "ours")


def naive(label: str, code: Code | None = None, needs: tuple[str, ...] = ()) -> Candidate:
    """Return a peer in the form that most people write."""
    return Candidate(label, label if code is None else code, "naive", needs)


def best(label: str, code: Code | None = None, needs: tuple[str, ...] = ()) -> Candidate:
    """Return a peer in its best ordinary form."""
    return Candidate(label, label if code is None else code, "best", needs)


@dataclass(frozen=True)
class Goal:
    """A bound on our time over another's.

    Attributes
    ----------
    against : str
        The label of a candidate, ``BEST_PEER`` (the fastest that was not left out) or ``LIMIT``.
    ratio : float
        Our median time may be at most this many times the other's.
    text : str
        The goal in words, for tables.
    where : callable, optional
        Whether the goal holds at a point; everywhere, if left out.
    """

    against: str
    ratio: float
    text: str
    where: Callable[[Point], bool] | None = field(default=None, compare=False)


def at_most(times: float, against: str, where: Callable[[Point], bool] | None = None) -> Goal:
    """Return the goal of taking at most ``times`` the other's time."""
    return Goal(against, times, f"at most {times:g}x {against}", where)


def at_least(times: float, against: str, where: Callable[[Point], bool] | None = None) -> Goal:
    """Return the goal of being at least ``times`` as fast as the other."""
    return Goal(against, 1 / times, f"at least {times:g}x as fast as {against}", where)


def share_of_limit(share: float, where: Callable[[Point], bool] | None = None) -> Goal:
    """Return the goal of reaching at least this share of the limit's speed."""
    return Goal(LIMIT, 1 / share, f"at least {share:g}x the limit", where)


@dataclass(frozen=True)
class Case:
    """One question: how fast is ours beside the others, at each of some points?

    Attributes
    ----------
    name : str
        ``"copy.private"``: the stem of the file it stands in, and what is asked.
    title : str
        One line for people.
    setup : callable
        ``setup(rng, **point)`` makes fresh inputs from a ``numpy.random.Generator``. They must not be all zeros. Where
        a run is not on "cpu", ``device`` is among the keywords.
    candidates : tuple of Candidate
        The first is ours.
    expected : callable
        ``expected(inputs)`` gives what every candidate must return, by NumPy or torch, never by our own code.
    check : callable, optional
        ``check(result, expected)`` raises AssertionError unless they agree; it may return how many values it compared.
        The default wants equal nests, dtypes, shapes and values, NaN equal to NaN; whether a leaf is an array or a
        tensor makes no difference.
    before : callable, optional
        ``before(inputs)`` is called before each call of a candidate, untimed: to remove what the one before left.
    nbytes : callable, optional
        ``nbytes(inputs)``: bytes read plus bytes written by an ideal implementation. None where no data moves.
    limit : str, optional
        The name of the physical limit to state beside it, as ``limits.py`` has it: ``"memcpy"``,
        ``"non-temporal copy"``, ``"read"``, ``"write to disk"``. It moves as many bytes as the case does.
    goals : tuple of Goal
    points, quick : tuple of mapping
        The settings to measure, and those of a quick run.
    destinations : tuple of str
        Names of inputs that candidates write to. They are poisoned before every check.
    devices : tuple of str
        Where it can run.
    plan : str, optional
        An expression that gives the plan of our candidate, for the report.
    """

    name: str
    title: str
    setup: Callable[..., Inputs]
    candidates: tuple[Candidate, ...]
    expected: Callable[[Inputs], object]
    check: Callable[[Any, Any], object] | None = None
    before: Callable[[Inputs], object] | None = None
    nbytes: Callable[[Inputs], int] | None = None
    limit: str | None = None
    goals: tuple[Goal, ...] = ()
    points: tuple[Point, ...] = ({},)
    quick: tuple[Point, ...] = ()
    destinations: tuple[str, ...] = ()
    devices: tuple[str, ...] = ("cpu",)
    plan: str | None = None

    def points_for(self, quick: bool) -> tuple[Point, ...]:
        """Return the settings of a quick or a full run; the first one, where no quick ones are named."""
        return (self.quick or self.points[:1]) if quick else self.points
