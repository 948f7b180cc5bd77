"""The stopwatch: how one candidate is called and timed. What is timed against what is decided elsewhere."""

from __future__ import annotations

import gc
import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tensorferry.bench._declare import Code, Inputs

__all__ = [
    "ROUNDS",
    "SAMPLE_S",
    "SHORT_CALLS",
    "SHORT_S",
    "Bound",
    "Loop",
    "Size",
    "Tally",
    "Timed",
    "Turn",
    "bind",
    "collector_resting",
    "loop_over",
    "paired_ratios",
    "size",
    "time_together",
]

Loop = Callable[[int], float]
"""Makes as many calls as it is told and returns the seconds that all of them took."""

ROUNDS = 31
SAMPLE_S = 100e-6  # one batch of calls lasts at least this long: the clock ticks in tens of nanoseconds
SHORT_S = 10e-6  # below this, noise only ever adds time, and the least of several batches is the best estimate
SHORT_REPEATS = 5
SHORT_CALLS = 10_000  # of short calls, over the batches of one figure

# As in timeit: the expression stands in the loop itself, so nothing but the loop is timed beside it.
_TEMPLATE = """
def once():
    return (
{code}
)
def loop(_ferry_calls, _ferry_clock=_ferry_clock, _ferry_repeat=_ferry_repeat):
    _ferry_calls = _ferry_repeat(None, _ferry_calls)
    _ferry_start = _ferry_clock()
    for _ferry_call in _ferry_calls:
        (
{code}
)
    return _ferry_clock() - _ferry_start
"""


@dataclass(frozen=True)
class Bound:
    """A candidate's code together with the inputs it works on.

    Attributes
    ----------
    once : callable
        Makes one call and returns its result.
    loop : callable
        Makes many, drops each result at once, and returns the seconds that all of them took.
    """

    once: Callable[[], object]
    loop: Loop


def bind(code: Code, inputs: Inputs, names: Mapping[str, object] | None = None) -> Bound:
    """Return `code` ready to be called and timed.

    Parameters
    ----------
    code : str or callable
        An expression over the names of `inputs`, or a function that takes `inputs`.
    inputs : dict
    names : mapping, optional
        What an expression knows besides; `inputs` go first.

    Raises
    ------
    SyntaxError
        When `code` is a string but no expression.
    """
    if callable(code):
        return bind("_ferry_function(_ferry_inputs)", {"_ferry_function": code, "_ferry_inputs": inputs})
    compile(code.strip(), f"<{code}>", "eval")  # refuses statements, which the template would let pass
    scope: dict[str, Any] = {**(names or {}), **inputs}
    scope |= {"_ferry_clock": time.perf_counter, "_ferry_repeat": itertools.repeat}
    found: dict[str, Any] = {}
    exec(compile(_TEMPLATE.format(code=code.strip()), f"<{code}>", "exec"), scope, found)
    return Bound(found["once"], found["loop"])


def loop_over(call: Callable[[], object]) -> Loop:
    """Return a loop over a call without arguments."""
    return bind("_ferry_function()", {"_ferry_function": call}).loop


@dataclass(frozen=True)
class Size:
    """How many calls make a batch, and how many batches make a figure: the least of their means is kept."""

    calls: int
    repeats: int

    @property
    def calls_in_all(self) -> int:
        """Calls behind one figure."""
        return self.calls * self.repeats

    def sample(self, loop: Loop) -> float:
        """Return seconds per call."""
        return min(max(loop(self.calls), 1e-9) / self.calls for _ in range(self.repeats))


def size(loop: Loop, short_calls: int = SHORT_CALLS) -> Size:
    """Find out how many calls it takes for a sound figure; the call should have been made once before.

    Parameters
    ----------
    loop : callable
    short_calls : int
        The least number of calls behind a figure, if one takes less than 10 us.
    """
    one = max(loop(1), 1e-9)
    if one < 100 * SAMPLE_S:
        one = min(one, *(max(loop(1), 1e-9) for _ in range(2)))
        batch = math.ceil(SAMPLE_S / one / 4)
        one = min(one, max(loop(batch), 1e-9) / batch)
    calls = math.ceil(SAMPLE_S / one)
    if one >= SHORT_S:
        return Size(calls, 1)
    # Many short batches, not few long ones: one that fits between two turns of another program is not disturbed.
    return Size(calls, max(SHORT_REPEATS, math.ceil(short_calls / calls)))


@dataclass
class Tally:
    """How long a thread's samples took by the wall clock, and for how much of that it was running."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    samples_s: list[float] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count what happens inside."""
        cpu, wall = time.thread_time(), time.perf_counter()
        yield
        self.cpu_s += time.thread_time() - cpu
        self.wall_s += time.perf_counter() - wall

    def take(self, bound: Bound, size: Size) -> None:
        """Add one figure. One call goes untimed before: nobody pays for the caches that the one before left."""
        bound.once()
        with self.running():
            self.samples_s.append(size.sample(bound.loop))

    @property
    def cpu_share(self) -> float:
        """Between 0 and 1; 0 when nothing was counted."""
        return min(1.0, self.cpu_s / self.wall_s) if self.wall_s else 0.0


@contextmanager
def collector_resting() -> Iterator[None]:
    """Keep Python's garbage collector from running inside, and leave it as it was."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@dataclass(frozen=True)
class Turn:
    """A call without arguments, and what has to be set before each of its figures."""

    call: Callable[[], object]
    prepare: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Timed:
    """Seconds per call, one figure a round.

    Attributes
    ----------
    samples_s : list of float
    cpu_share : float
        Which part of the elapsed time this thread was running, between 0 and 1.
    """

    samples_s: list[float]
    cpu_share: float

    @property
    def median_s(self) -> float:
        """Median over the rounds."""
        return statistics.median(self.samples_s)


def time_together(turns: Mapping[str, Turn], rounds: int = ROUNDS, short_calls: int = 1) -> dict[str, Timed]:
    """Time every call once a round: A B C, A B C, ...; a busy machine is then busy for all of them."""
    tallies = {name: Tally() for name in turns}
    with collector_resting():
        bound = {name: Bound(turn.call, loop_over(turn.call)) for name, turn in turns.items()}
        sizes = {}
        for name, turn in turns.items():
            turn.prepare()
            turn.call()  # the first call imports modules and fills caches
            sizes[name] = size(bound[name].loop, short_calls)
        for _ in range(rounds):
            for name, turn in turns.items():
                turn.prepare()
                tallies[name].take(bound[name], sizes[name])
    return {name: Timed(tally.samples_s, tally.cpu_share) for name, tally in tallies.items()}


def paired_ratios(ours: Timed, other: Timed) -> tuple[float, float, float]:
    """Return the quartiles over the rounds of our time over the other's; below 1, ours is faster."""
    low, median, high = statistics.quantiles(
        (a / b for a, b in zip(ours.samples_s, other.samples_s, strict=True)), n=4, method="inclusive"
    )
    return low, median, high
