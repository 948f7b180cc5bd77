"""What the demo finds out, as plain values."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from tensorferry._plan.plan import Plan

__all__ = ["Check", "Conversion", "Report", "Section", "Timing"]


@dataclass(frozen=True)
class Conversion:
    """One conversion that the demo made, and its plan."""

    what: str
    call: str
    plan: Plan


@dataclass(frozen=True)
class Check:
    """A comparison of every value of a result with what plain torch or NumPy gives.

    Attributes
    ----------
    what : str
    values : int
        How many were compared.
    wrong : int
        How many differ.
    """

    what: str
    values: int
    wrong: int


@dataclass
class Section:
    """One part of the demo."""

    title: str
    story: str = ""
    conversions: list[Conversion] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)


@dataclass(frozen=True)
class Timing:
    """A conversion timed against the best usual idiom, in the same rounds.

    Attributes
    ----------
    what : str
    ours, usual : str
        The code that was timed.
    ours_s, usual_s : float
        Median seconds per call.
    ratio : float
        Median over the rounds of our time over the usual one's; below 1, tensorferry is faster.
    ratio_quartiles : (float, float)
        First and third quartile of that; far apart on a busy machine.
    cpu_share : float
        Which part of the time our calls were really running; below 1 where other programs take the core.
    nbytes : int
        Size of the result; 0 when memory is shared.
    memcpy_s : float
        Median seconds of a plain copy of as many bytes between two arrays that exist; 0 when nothing is copied.
    """

    what: str
    ours: str
    usual: str
    ours_s: float
    usual_s: float
    ratio: float
    ratio_quartiles: tuple[float, float]
    cpu_share: float
    nbytes: int
    memcpy_s: float

    @property
    def steady(self) -> bool:
        """Do the rounds agree?"""
        return self.ratio_quartiles[1] < 1.5 * self.ratio_quartiles[0]


@dataclass(frozen=True)
class Report:
    """All of the demo.

    Attributes
    ----------
    accuracy : float
        Of the classifier, on digits it has not seen, between 0 and 1.
    sections : list of Section
    timings : list of Timing
    memcpy_bytes_per_s : float
        Speed of one thread's copy of 64 MiB.
    gpu : str
        What is seen of a GPU; "" when nothing is.
    seconds : float
        How long the demo took.
    """

    accuracy: float
    sections: list[Section]
    timings: list[Timing]
    memcpy_bytes_per_s: float
    gpu: str
    seconds: float

    @property
    def busy(self) -> bool:
        """Did other programs take a tenth of the core, or more, from some calls?"""
        return any(timing.cpu_share < 0.9 for timing in self.timings)

    @property
    def ok(self) -> bool:
        """Was every value right?"""
        return all(check.wrong == 0 for section in self.sections for check in section.checks)

    def document(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"ok": self.ok, "busy": self.busy, **dataclasses.asdict(self)}
