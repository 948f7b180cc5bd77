"""The pool of host memory: its figures, its limit, and giving back what is idle."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from tensorferry._errors import ArgumentError
from tensorferry._native import core

__all__ = ["PoolStats", "RestoredOptions", "options", "pool_stats", "trim"]


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


def pool_stats() -> PoolStats:
    """See :func:`tensorferry.pool_stats`."""
    return PoolStats(**core.pool_stats())


def trim(nbytes: Any = 0) -> int:
    """See :func:`tensorferry.trim`."""
    return core.trim_pool(_size("nbytes", nbytes))


class RestoredOptions:
    """Brings back, at the end of a ``with`` block, the options that held before."""

    def __init__(self, host_pool_nbytes: int | None) -> None:
        self._before = None if host_pool_nbytes is None else core.set_pool_limit(host_pool_nbytes)

    def __enter__(self) -> None:
        """The options hold already."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Set the options that held before."""
        if self._before is not None:
            core.set_pool_limit(self._before)


def options(*, host_pool_nbytes: Any = None) -> RestoredOptions:
    """See :func:`tensorferry.options`."""
    return RestoredOptions(None if host_pool_nbytes is None else _size("host_pool_nbytes", host_pool_nbytes))


def _size(name: str, value: Any) -> int:
    try:
        nbytes = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        nbytes = -1
    if 0 <= nbytes < 1 << 63:
        return nbytes
    raise ArgumentError(f"{name}={value!r}", "that is no number of bytes", "pass an int of at least 0")
