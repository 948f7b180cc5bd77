"""The figures of one log."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MetricStats"]


@dataclass(frozen=True)
class MetricStats:
    """What became of the steps of a log so far.

    Attributes
    ----------
    delivered : int
        Handed to every sink.
    waiting : int
        Complete, and not with every sink yet.
    dropped : int
        Dropped because so many were waiting, with ``on_full="drop"``.
    failures : int
        How often a sink failed at a step, or a device at its values.
    """

    delivered: int
    waiting: int
    dropped: int
    failures: int
