"""The pools of host memory: their figures, and giving back what is idle."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from tensorferry._device.torch_memory import note_torch
from tensorferry._errors import ArgumentError
from tensorferry._memory.pinned_stats import PinnedPoolStats, stats_of
from tensorferry._native import core

__all__ = ["PoolStats", "as_nbytes", "pool_stats", "trim"]


@dataclass(frozen=True)
class PoolStats:
    """What the pool of private host copies holds, and how well it has served since the process began.

    Arrays of less than 8 KiB are not counted: their memory comes from malloc. Sizes are those of the blocks, that is
    what was asked for, rounded up to 64 bytes, from 64 KiB on to pages of 4 KiB, and from 64 MiB on to 2 MiB; a block
    that is used again may be larger than the array by one eighth.

    Attributes
    ----------
    in_use_nbytes : int
        Bytes that live arrays hold.
    in_use_blocks : int
        Number of blocks that live arrays hold.
    idle_nbytes : int
        Bytes that wait for the next copy. They count as memory of the process.
    idle_blocks : int
        Number of blocks that wait for the next copy.
    limit_nbytes : int
        What `idle_nbytes` may be at most: 1/16 of memory, or what ``options(host_pool_nbytes=...)`` says.
    high_water_nbytes : int
        The most bytes that were ever in use and idle together.
    hits : int
        Number of copies that got an idle block.
    misses : int
        Number of copies that got new memory from the system.
    trims : int
        Number of blocks that went back to the system, for the limit or for ``trim``.
    pinned : PinnedPoolStats or None
        The pool of pinned memory that results from CUDA devices and ``empty_pinned`` share; None before its first use.
    """

    in_use_nbytes: int
    in_use_blocks: int
    idle_nbytes: int
    idle_blocks: int
    limit_nbytes: int
    high_water_nbytes: int
    hits: int
    misses: int
    trims: int
    pinned: PinnedPoolStats | None = None


def pool_stats() -> PoolStats:
    """See :func:`tensorferry.pool_stats`."""
    return PoolStats(**core.pool_stats(), pinned=stats_of(core.PinnedPool.of_results()))


def trim(nbytes: Any = 0) -> int:
    """See :func:`tensorferry.trim`."""
    kept = as_nbytes("nbytes", nbytes)
    note_torch()
    return core.trim_pool(kept) + core.PinnedPool.of_results().trim(kept)


def as_nbytes(name: str, value: Any) -> int:
    """Return an argument that is a number of bytes as an int, or raise ArgumentError."""
    try:
        nbytes = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        nbytes = -1
    if 0 <= nbytes < 1 << 63:
        return nbytes
    raise ArgumentError(f"{name}={value!r}", "that is no number of bytes", "pass an int of at least 0")
