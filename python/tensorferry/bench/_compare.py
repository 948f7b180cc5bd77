"""Compares ways of doing the same work: interleaved, paired, checked, with the physical limit beside them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from tensorferry._errors import ArgumentError
from tensorferry.bench._check import Checker
from tensorferry.bench._clock import collector_resting
from tensorferry.bench._declare import Candidate, Code, Goal, Inputs, Point, best, ours
from tensorferry.bench._device import on_device, origin_of
from tensorferry.bench._inputs import fresh_inputs
from tensorferry.bench._limits import make_limit
from tensorferry.bench._race import Race
from tensorferry.bench._record import Run
from tensorferry.bench._result import GoalOutcome, Result
from tensorferry.bench._threads import available_cores, equal_threads

__all__ = ["LEAST_ROUNDS", "Interrupted", "compare"]

LEAST_ROUNDS = 30

_NOWHERE: Point = MappingProxyType({})


class Interrupted(KeyboardInterrupt):
    """Ctrl-C came in the middle; what was measured by then is kept.

    Attributes
    ----------
    result : Result or None
        From :func:`compare`: with the rounds that were completed, ``complete=False``.
    run : Run or None
        From :func:`run`: with the results so far, ``complete=False``.
    """

    def __init__(self, result: Result | None = None, run: Run | None = None) -> None:
        super().__init__("interrupted; what was measured by then is kept")
        self.result = result
        self.run = run


def compare(
    candidates: Sequence[Candidate] | Mapping[str, Code],
    *,
    setup: Callable[..., Inputs],
    check: Callable[[Any, Any], object] | None = None,
    expected: Callable[[Inputs], object] | None = None,
    before: Callable[[Inputs], object] | None = None,
    nbytes: int | Callable[[Inputs], int] | None = None,
    limit: str | None = None,
    rounds: int = LEAST_ROUNDS,
    warmup: int = 2,
    refresh: int = 10,
    destinations: Sequence[str] = (),
    threads: int | None = None,
    seed: int | None = None,
    goals: Sequence[Goal] = (),
    point: Point = _NOWHERE,
    plan: str | None = None,
    case: str = "",
    title: str = "",
    on_round: Callable[[int, int], object] | None = None,
    budget_s: float | None = None,
    folder: str | os.PathLike[str] | None = None,
    device: str = "cpu",
) -> Result:
    """Time candidates against each other, and check that all of them give the right values.

    In each round every candidate, and the limit, is timed once, in random order; so a busy machine is busy for all of
    them, and ratios of one round mean something where times do not. Before each figure one call goes untimed. Python's
    garbage collector rests. Calls of less than 10 us are made 10,000 times for a figure, in batches of 100 us, and the
    least of their means is kept.

    Parameters
    ----------
    candidates : sequence of Candidate, or mapping of label to code
        The first is ours.
    setup : callable
        ``setup(rng, **point)`` makes fresh inputs, a dict of names, from a ``numpy.random.Generator``. It is called at
        the start, every `refresh` rounds, and once more for the last check.
    check : callable, optional
        ``check(result, expected)`` raises AssertionError unless they agree; without `expected` it is called as
        ``check(result, inputs)``. The default wants equal nests, dtypes, shapes and values.
    expected : callable, optional
        ``expected(inputs)`` gives what every candidate must return. With neither `check` nor `expected` candidates are
        held against the first peer.
    before : callable, optional
        ``before(inputs)`` is called before each call of a candidate, untimed.
    nbytes : int or callable, optional
        Bytes read plus written by an ideal implementation, or ``nbytes(inputs)``.
    limit : str, optional
        A key of ``tensorferry.bench.LIMITS``, timed in the same rounds, moving `nbytes` too.
    rounds, warmup : int
        Rounds that count, and rounds before them that do not.
    refresh : int
        After how many rounds the inputs are made anew.
    destinations : sequence of str
        Names of inputs that candidates write to. They are poisoned before every check.
    threads : int, optional
        For torch, OpenCV and tensorferry alike; as many as this process has cores, if left out.
    seed : int, optional
        Of inputs and order; a random one, if left out.
    goals : sequence of Goal
    point : mapping
        Keyword arguments of `setup`, kept in the result.
    plan : str, optional
        An expression over the inputs that gives the plan of our candidate.
    case, title : str
        Kept in the result.
    on_round : callable, optional
        ``on_round(done, rounds)`` is called after each round that counts.
    budget_s : float, optional
        Rounds end when so many seconds are over, but not before 30 of them, or `rounds` if that is less.
    folder : path, optional
        Where the limit "write to disk" writes.
    device : str
        "cuda" waits for the device around each figure, and runs on a stream of its own.

    Returns
    -------
    Result
        A candidate that raised, gave a wrong value or needs a package that is not installed has no samples but an
        error; the others go on without it.

    Raises
    ------
    ArgumentError
        When inputs hold nothing but one value, two candidates have the same label, or arguments are out of range.
    Interrupted
        A KeyboardInterrupt that carries the rounds that were completed.

    Examples
    --------
    >>> from tensorferry.bench import compare
    >>> result = compare(
    ...     {"sum(x)": "sum(x)", "max(x)": "max(x)"},
    ...     setup=lambda rng: {"x": rng.integers(1, 9, 100).tolist()},
    ...     check=lambda result, inputs: None,
    ...     rounds=2,
    ... )
    >>> result.ours.label, len(result.ours.samples_s)
    ('sum(x)', 2)
    """
    entered = _as_candidates(candidates)
    cores = available_cores() if threads is None else threads
    _refuse_low(rounds=rounds, refresh=refresh, threads=cores)
    sown = int.from_bytes(os.urandom(4), "little") if seed is None else seed
    checker = Checker(check, expected, tuple(destinations))
    with on_device(device) as wrap:
        made = partial(fresh_inputs, setup, point, tuple(destinations), sown)
        race = Race(entered, made, checker, sown, wrap, before)
        race.refresh()
        moved = int(nbytes(race.inputs) if callable(nbytes) else nbytes or 0)
        told = Result(case, title, dict(point), (), nbytes=moved, threads=cores, seed=sown, complete=False)
        told = replace(told, plan=race.plan(plan) if plan else "", origin=origin_of(device))
        ready = make_limit(limit, moved, cores, folder) if limit else None
        try:
            with equal_threads(cores), collector_resting():
                if ready:
                    race.add_limit(ready)
                _conduct(race, rounds, warmup, refresh, budget_s, on_round)
            return _finished(race, told, goals, complete=True)
        except KeyboardInterrupt as stop:
            raise Interrupted(result=_finished(race, told, goals, complete=False)) from stop
        finally:
            if ready:
                ready.finish()


def _conduct(
    race: Race,
    rounds: int,
    warmup: int,
    refresh: int,
    budget_s: float | None,
    on_round: Callable[[int, int], object] | None,
) -> None:
    race.check("before timing")
    race.find_sizes()
    race.warm_up(warmup)
    start = time.perf_counter()
    least = min(rounds, LEAST_ROUNDS)
    while race.rounds < rounds and race.anyone_left:
        if race.rounds and race.rounds % refresh == 0:
            race.refresh()
        race.run_round()
        if on_round:
            on_round(race.rounds, rounds)
        if budget_s is not None and race.rounds >= least and time.perf_counter() - start > budget_s:
            break
    race.refresh()
    race.check("after timing")


def _finished(race: Race, told: Result, goals: Sequence[Goal], complete: bool) -> Result:
    done = replace(
        told,
        measurements=tuple(entry.measured(race.rounds) for entry in race.entries),
        limit=None if race.limit is None else race.limit.measured(race.rounds),
        rounds=race.rounds,
        checked_values=race.checker.checked_values,
        complete=complete,
    )
    hold = [goal for goal in goals if goal.where is None or goal.where(done.point)]
    return replace(done, goals=tuple(_outcome(done, goal) for goal in hold))


def _outcome(result: Result, goal: Goal) -> GoalOutcome:
    ratio = result.ratio(goal.against)
    if ratio is None:
        return GoalOutcome(goal.text, goal.against, goal.ratio, 0.0, None)
    return GoalOutcome(goal.text, goal.against, goal.ratio, ratio.median, ratio.median <= goal.ratio)


def _as_candidates(given: Sequence[Candidate] | Mapping[str, Code]) -> list[Candidate]:
    if isinstance(given, Mapping):
        entered = [best(label, code) if i else ours(label, code) for i, (label, code) in enumerate(given.items())]
    else:
        entered = list(given)
    labels = [candidate.label for candidate in entered]
    if not entered or len(set(labels)) < len(labels):
        raise ArgumentError(
            f"candidates labelled {labels}", "results are found by label", "give at least one, each with its own label"
        )
    return entered


def _refuse_low(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise ArgumentError(f"{name}={count}", "nothing would be measured", f"let {name} be at least 1")
