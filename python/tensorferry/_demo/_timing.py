"""Times calls against each other in the same rounds, so that a busy machine is busy for all of them."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["ROUNDS", "Candidate", "Timed", "paired_ratios", "time_together"]

Call = Callable[[], object]

ROUNDS = 31
SAMPLE_S = 100e-6  # one sample lasts at least this long: the clock ticks in tens of nanoseconds
SHORT_S = 10e-6  # below this, noise only ever adds time, and the least of several samples is the best estimate
SHORT_REPEATS = 5


@dataclass(frozen=True)
class Candidate:
    """A call to be timed, and what has to be set before each of its samples."""

    call: Call
    prepare: Call = lambda: None


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


def time_together(candidates: Mapping[str, Candidate], rounds: int = ROUNDS) -> dict[str, Timed]:
    """Time every call once a round: A B C, A B C, ...

    Results are dropped at once, as in a loop that uses them. The garbage collector rests meanwhile. Before each sample
    one call goes untimed, so that nobody pays for the caches and threads that the one before left.
    """
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    clocks = {name: [0.0, 0.0] for name in candidates}  # CPU and wall, over all samples
    collecting = gc.isenabled()
    gc.disable()
    try:
        sizes = {name: _size(candidate) for name, candidate in candidates.items()}
        for _ in range(rounds):
            for name, candidate in candidates.items():
                loops, repeats = sizes[name]
                candidate.prepare()
                candidate.call()
                cpu, wall = time.thread_time(), time.perf_counter()
                samples[name].append(min(_sample(candidate.call, loops) for _ in range(repeats)))
                clocks[name][0] += time.thread_time() - cpu
                clocks[name][1] += time.perf_counter() - wall
    finally:
        if collecting:
            gc.enable()
    return {name: Timed(values, min(1.0, clocks[name][0] / clocks[name][1])) for name, values in samples.items()}


def paired_ratios(ours: Timed, other: Timed) -> tuple[float, float, float]:
    """Return the quartiles over the rounds of our time over the other's; below 1, ours is faster."""
    low, median, high = statistics.quantiles(
        (a / b for a, b in zip(ours.samples_s, other.samples_s, strict=True)), n=4, method="inclusive"
    )
    return low, median, high


def _size(candidate: Candidate) -> tuple[int, int]:
    """Return how many calls make a sample, and how many samples are taken to keep the least."""
    candidate.prepare()
    candidate.call()  # the first call imports modules and fills caches
    one = min(_sample(candidate.call, 1) for _ in range(3))
    one = min(one, _sample(candidate.call, max(1, math.ceil(SAMPLE_S / one / 4))))
    return max(1, math.ceil(SAMPLE_S / one)), SHORT_REPEATS if one < SHORT_S else 1


def _sample(call: Call, loops: int) -> float:
    rounds = range(loops)
    start = time.perf_counter()
    for _ in rounds:
        call()
    return max(time.perf_counter() - start, 1e-9) / loops
