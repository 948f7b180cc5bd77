"""One comparison while it runs: candidates take turns, are checked, and get fresh inputs."""

from __future__ import annotations

import gc
import importlib
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from tensorferry.bench._check import Checker, in_a_line, raised
from tensorferry.bench._clock import Bound, Size, Tally, bind, size
from tensorferry.bench._declare import Candidate, Form, Inputs
from tensorferry.bench._limits import Limit
from tensorferry.bench._result import Measurement

__all__ = ["Entry", "Race"]

Wrap = Callable[[Bound], Bound]


def _rounded(seconds: float) -> float:
    """Return it with four significant digits: samples scatter by far more, and are most of a stored run."""
    return float(f"{seconds:.3e}")


@dataclass
class Entry:
    """One candidate in the race."""

    candidate: Candidate
    form: Form | Literal["limit"]
    error: str | None = None
    bound: Bound | None = None
    size: Size | None = None
    tally: Tally = field(default_factory=Tally)

    def attempt(self, action: Callable[[], object]) -> None:
        """Do something with it; whatever it raises puts it out of the race."""
        if self.error is None:
            try:
                action()
            except Exception as error:
                self.error = raised(error)

    def import_modules(self) -> dict[str, Any]:
        """Return the modules that it needs; without one it is left out."""
        found = {}
        for name in self.candidate.needs:
            try:
                importlib.import_module(name)
                found[name.partition(".")[0]] = sys.modules[name.partition(".")[0]]
            except ImportError as error:
                self.error = f"not installed: {name} ({in_a_line(error)})"
        return found

    def measured(self, rounds: int) -> Measurement:
        """Return its samples of the first `rounds`, or why there are none."""
        code = self.candidate.code
        short = self.size is not None and self.size.repeats > 1
        return Measurement(
            label=self.candidate.label,
            code=code if isinstance(code, str) else getattr(code, "__name__", type(code).__name__),
            form=self.form,
            samples_s=() if self.error else tuple(map(_rounded, self.tally.samples_s[:rounds])),
            calls=0 if self.size is None else self.size.calls_in_all,
            kept="least" if short else "mean",
            cpu_share=self.tally.cpu_share,
            error=self.error,
        )


class Race:
    """Candidates and a limit that take turns.

    Parameters
    ----------
    candidates : sequence of Candidate
    make_inputs : callable
        Takes the number of the generation and returns fresh inputs.
    checker : Checker
    seed : int
        Of the order in which they take turns.
    wrap : callable
        Puts a device's clock around a candidate.
    before : callable, optional
        Takes the inputs before each call of a candidate, untimed.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        make_inputs: Callable[[int], Inputs],
        checker: Checker,
        seed: int,
        wrap: Wrap,
        before: Callable[[Inputs], object] | None = None,
    ) -> None:
        self.entries = [Entry(candidate, candidate.form) for candidate in candidates]
        self.checker = checker
        self.inputs: Inputs = {}
        self.rounds = 0
        self.limit: Entry | None = None
        self._names: dict[str, Any] = {"np": np}
        self._make_inputs = make_inputs
        self._generation = 0
        self._order = random.Random(seed)
        self._wrap = wrap
        self._before = before
        for entry in self.entries:
            self._names.update(entry.import_modules())

    @property
    def running(self) -> list[Entry]:
        """Those that are still in it, with the limit."""
        everyone = [*self.entries, self.limit] if self.limit else self.entries
        return [entry for entry in everyone if entry.error is None]

    @property
    def anyone_left(self) -> bool:
        """Is a candidate still in it? A limit alone is of no use."""
        return any(entry.error is None for entry in self.entries)

    def refresh(self) -> None:
        """Give every candidate inputs that it has not seen; the ones before are freed first."""
        for entry in self.entries:
            entry.bound = None
        self.inputs = {}
        gc.collect(1)  # what the rounds left is young; a whole collection takes tens of milliseconds
        self.inputs = self._make_inputs(self._generation)
        self._generation += 1
        for entry in self.entries:
            entry.attempt(partial(self._bind, entry))

    def _bind(self, entry: Entry) -> None:
        bound = self._wrap(bind(entry.candidate.code, self.inputs, self._names))
        entry.bound = bound if self._before is None else _prepared(bound, partial(self._before, self.inputs))

    def plan(self, expression: str) -> str:
        """Return what an expression over the inputs says."""
        try:
            return str(bind(expression, self.inputs, self._names).once())
        except Exception as error:
            return f"no plan: {raised(error)}"

    def add_limit(self, limit: Limit) -> None:
        """Let the limit take turns with the candidates."""
        self.limit = Entry(Candidate(limit.label, limit.code), form="limit")
        self.limit.bound = Bound(limit.once, limit.loop)

    def check(self, when: str) -> None:
        """Check every candidate's result on the inputs of now; peers go first, and ours may be held against them."""
        self.checker.begin(self.inputs)
        for entry in [*self.entries[1:], *self.entries[:1]]:
            if entry.bound is not None and entry.error is None:
                entry.error = self.checker.verdict(entry.candidate.label, entry.bound.once, when)
        self.checker.end()

    def find_sizes(self) -> None:
        """Find out how many calls each needs for one figure."""
        for entry in self.running:
            entry.attempt(partial(self._find_size, entry))

    def _find_size(self, entry: Entry) -> None:
        assert entry.bound is not None
        entry.size = size(entry.bound.loop)

    def warm_up(self, rounds: int) -> None:
        """Run rounds that do not count."""
        for _ in range(rounds):
            self._round(self._exercise)

    def _exercise(self, entry: Entry) -> None:
        assert entry.bound is not None
        assert entry.size is not None
        entry.size.sample(entry.bound.loop)

    def run_round(self) -> None:
        """Time every candidate once, in an order of its own."""
        self._round(self._take)
        self.rounds += 1

    def _round(self, action: Callable[[Entry], None]) -> None:
        turns = self.running
        self._order.shuffle(turns)
        for entry in turns:
            entry.attempt(partial(action, entry))

    def _take(self, entry: Entry) -> None:
        assert entry.bound is not None
        assert entry.size is not None
        entry.tally.take(entry.bound, entry.size)


def _prepared(bound: Bound, before: Callable[[], object]) -> Bound:
    """Return a candidate that something is done before each of its calls, off the clock."""

    def once() -> object:
        before()
        return bound.once()

    def loop(calls: int) -> float:
        seconds = 0.0
        for _ in range(calls):
            before()
            seconds += bound.loop(1)
        return seconds

    return Bound(once, loop)
