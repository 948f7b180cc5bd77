"""What was measured: typed, immutable, and the same after a round trip through JSON."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tensorferry.bench._declare import BEST_PEER, LIMIT, Form, Point

__all__ = ["GoalOutcome", "Measurement", "Ratio", "Result", "Verdict"]

Verdict = Literal["faster", "slower", "no difference"]


@dataclass(frozen=True)
class Measurement:
    """The samples of one candidate, or why there are none.

    Attributes
    ----------
    label, code : str
        How tables name it, and what ran (a function's name where the code is a function).
    form : {"ours", "naive", "best", "limit"}
    samples_s : tuple of float
        Seconds per call, one figure a round; empty after an error.
    calls : int
        Calls per figure.
    kept : {"mean", "least"}
        Whether a figure is the mean of one batch of calls, or the least of several batches' means (short calls).
    cpu_share : float
        Which part of the elapsed time the calling thread was running, between 0 and 1.
    error : str or None
        What went wrong: it raised, gave a wrong value, or is not installed.
    """

    label: str
    code: str
    form: Form | Literal["limit"]
    samples_s: tuple[float, ...] = ()
    calls: int = 0
    kept: Literal["mean", "least"] = "mean"
    cpu_share: float = 0.0
    error: str | None = None

    @property
    def median_s(self) -> float:
        """Median over the rounds; NaN without samples."""
        return statistics.median(self.samples_s) if self.samples_s else float("nan")

    def bytes_per_s(self, nbytes: int) -> float:
        """Return the speed of moving ``nbytes`` in the median time."""
        return nbytes / self.median_s


@dataclass(frozen=True)
class Ratio:
    """Our time over another's, from paired rounds: the median and the 10 % and 90 % points. Below 1, ours is faster."""

    median: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """``"no difference"`` when the interval holds 1."""
        if self.high < 1:
            return "faster"
        return "slower" if self.low > 1 else "no difference"

    @classmethod
    def of(cls, ours: Measurement, other: Measurement) -> Ratio:
        """Pair the samples round by round."""
        ratios = [a / b for a, b in zip(ours.samples_s, other.samples_s, strict=False)]
        if not ratios:
            return cls(float("nan"), float("nan"), float("nan"))
        if len(ratios) == 1:
            return cls(ratios[0], ratios[0], ratios[0])
        tenths = statistics.quantiles(ratios, n=10, method="inclusive")
        return cls(statistics.median(ratios), tenths[0], tenths[8])


@dataclass(frozen=True)
class GoalOutcome:
    """A goal and whether it was met; None, and 0 reached, where ours or what it is measured against is missing."""

    text: str
    against: str
    ratio: float
    reached: float
    met: bool | None


@dataclass(frozen=True)
class Result:
    """One case at one point.

    Attributes
    ----------
    case, title : str
    point : mapping
    measurements : tuple of Measurement
        Every candidate, ours first.
    limit : Measurement or None
        The physical limit, timed in the same rounds, moving ``nbytes`` as well.
    nbytes : int
        Bytes read plus written by an ideal implementation; 0 where no data moves.
    goals : tuple of GoalOutcome
    rounds, threads, seed : int
        Rounds that were completed; threads that every candidate could use; what the inputs were made from.
    checked_values : int
        How many elements were compared with the expected ones, over all candidates.
    plan : str
        What the plan of our candidate says, or an empty string.
    origin : {"measured", "simulated"}
    complete : bool
        False when the run was interrupted in it.
    """

    case: str
    title: str
    point: Point
    measurements: tuple[Measurement, ...]
    limit: Measurement | None = None
    nbytes: int = 0
    goals: tuple[GoalOutcome, ...] = ()
    rounds: int = 0
    threads: int = 1
    seed: int = 0
    checked_values: int = 0
    plan: str = ""
    origin: Literal["measured", "simulated"] = "measured"
    complete: bool = True

    @property
    def ours(self) -> Measurement:
        """The candidate under test."""
        return self.measurements[0]

    @property
    def peers(self) -> tuple[Measurement, ...]:
        """Every other candidate."""
        return self.measurements[1:]

    @property
    def best_peer(self) -> Measurement | None:
        """The peer with the least median time, among those that ran and were right."""
        ran = [peer for peer in self.peers if peer.samples_s]
        return min(ran, key=lambda peer: peer.median_s) if ran else None

    def find(self, label: str) -> Measurement | None:
        """Return a candidate by its label, or by ``BEST_PEER`` or ``LIMIT``."""
        special: Mapping[str, Measurement | None] = {BEST_PEER: self.best_peer, LIMIT: self.limit}
        if label in special:
            return special[label]
        return next((found for found in self.measurements if found.label == label), None)

    def ratio(self, label: str) -> Ratio | None:
        """Return our time over that of ``label``, or None where one of the two has no samples."""
        other = self.find(label)
        if other is None or not other.samples_s or not self.ours.samples_s:
            return None
        return Ratio.of(self.ours, other)
