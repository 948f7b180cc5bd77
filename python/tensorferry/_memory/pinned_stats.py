"""The figures of a pool of pinned memory."""

from __future__ import annotations

from dataclasses import dataclass

from tensorferry._native import core

__all__ = ["PinnedPoolStats", "stats_of"]


@dataclass(frozen=True)
class PinnedPoolStats:
    """What a pool of pinned memory holds, and how well it has served.

    Memory of arrays that were handed out and are gone is *retired* until no work of torch's, nor of tensorferry's, may
    touch it; then it is idle. Arrays below 32 KiB share blocks of 1 MiB.

    Attributes
    ----------
    in_use_nbytes : int
        Bytes that live arrays hold, as capacity.
    in_use_arrays : int
        Number of memories that live arrays hold.
    idle_nbytes : int
        Bytes that wait for the next array.
    retired_nbytes : int
        Bytes that came back and wait for work on devices.
    abandoned_nbytes : int
        Bytes that are never used again, since a device was lost. They count as none of the others.
    limit_nbytes : int
        What all of it but the abandoned may be at most.
    high_water_nbytes : int
        The most that it ever was.
    hits, misses : int
        Number of arrays that got idle memory, and that got newly pinned memory.
    refusals : int
        Number of arrays that got none.
    trims : int
        Number of blocks that went back to the system.
    fences : int
        How often retired memory was found to be free.
    """

    in_use_nbytes: int
    in_use_arrays: int
    idle_nbytes: int
    retired_nbytes: int
    abandoned_nbytes: int
    limit_nbytes: int
    high_water_nbytes: int
    hits: int
    misses: int
    refusals: int
    trims: int
    fences: int


def stats_of(pool: core.PinnedPool) -> PinnedPoolStats | None:
    """Return the figures of a pool; None while it has pinned nothing, and in a forked child."""
    figures = pool.stats()
    return None if figures is None else PinnedPoolStats(**figures)
