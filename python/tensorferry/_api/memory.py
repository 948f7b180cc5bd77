"""Public functions about the memory of private copies; each loads its implementation when first called."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from tensorferry._untraced import untraced

if TYPE_CHECKING:
    from tensorferry.types import PoolStats

__all__ = ["options", "pool_stats", "trim"]


def pool_stats() -> PoolStats:
    """Tell what the pool of private host copies holds, and how often it had what was asked for.

    The results of ``copy=True``, of dtype casts, of changes of the memory order and of ``stack`` get their memory from
    this pool. It goes back there when the last array or view over it is gone, with its pages in place, and the next
    copy of about that size saves the time that fresh pages cost.

    Returns
    -------
    PoolStats
        Sizes in bytes and counts, all of one moment.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> before = ferry.pool_stats().in_use_nbytes
    >>> copied = ferry.to_numpy(np.ones((256, 1024), np.float32), copy=True)
    >>> ferry.pool_stats().in_use_nbytes - before
    1048576
    """
    from tensorferry._memory.pool import pool_stats as implementation

    return untraced(implementation)()


def trim(nbytes: int = 0) -> int:
    """Give idle memory of the pools back to the system, what was unused for longest first.

    That is the pool of private host copies, and that of pinned results.

    Parameters
    ----------
    nbytes : int
        How many bytes may stay idle in each pool at most.

    Returns
    -------
    int
        How many bytes went back. Arrays that are alive keep theirs, and pinned memory stays while work on a device may
        touch it.

    Raises
    ------
    ArgumentError
        For what is no number of bytes.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> copied = ferry.to_numpy(np.ones(1 << 17), copy=True)
    >>> del copied
    >>> ferry.trim() >= 1 << 20, ferry.pool_stats().idle_nbytes
    (True, 0)
    """
    from tensorferry._memory.pool import trim as implementation

    return untraced(implementation)(nbytes)


def options(
    *,
    host_pool_nbytes: int | None = None,
    pinned_nbytes: int | None = None,
    ring_nbytes: int | None = None,
    staging_nbytes: int | None = None,
    background: bool | None = None,
) -> AbstractContextManager[None]:
    """Change what holds for the whole process, at once, and for good unless it is used in a ``with`` statement.

    Parameters
    ----------
    host_pool_nbytes : int, optional
        How many idle bytes the pool of private host copies may keep at most; 0 for none. What is above goes back to
        the system. At first it is 1/16 of memory, or of the control group's limit where that is less.
    pinned_nbytes : int, optional
        How many bytes of pinned memory results from CUDA devices and arrays of :func:`empty_pinned` may hold; beyond,
        they get ordinary memory. At first it is 1/8 of memory, at most 4 GiB.
    ring_nbytes : int, optional
        Bytes of pinned memory for each CUDA device and direction, through which ordinary memory is copied; 64 MiB at
        first. Taken at the device's first use: it holds for devices that were not used yet.
    staging_nbytes : int, optional
        Bytes of device memory for snapshots, for each CUDA device; 64 MiB at first. Holds as `ring_nbytes` does.
    background : bool, optional
        Does a thread of tensorferry's finish transfers: release what is done, complete futures, call callbacks? It
        starts with the first transfer and sleeps while nothing is pending. False waits for it to end; then the next
        call that asks for a transfer does this work, and ``await`` asks the device by a timer of the loop.

    Returns
    -------
    context manager
        Whose end brings back the options that held before.

    Raises
    ------
    ArgumentError
        For what is no number of bytes, or no bool; then nothing has changed.

    Examples
    --------
    >>> import tensorferry as ferry
    >>> with ferry.options(host_pool_nbytes=0):
    ...     ferry.pool_stats().limit_nbytes
    0
    """
    from tensorferry._memory.options import options as implementation

    return untraced(implementation)(
        host_pool_nbytes=host_pool_nbytes,
        pinned_nbytes=pinned_nbytes,
        ring_nbytes=ring_nbytes,
        staging_nbytes=staging_nbytes,
        background=background,
    )
