"""The public class of pools of pinned memory; it loads its implementation when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorferry._untraced import untraced

if TYPE_CHECKING:
    from tensorferry.types import PinnedPoolStats

__all__ = ["PinnedPool"]


class PinnedPool:
    """A pool of pinned memory of the caller's own, with a limit and a rule for when memory is used again.

    Arrays of :func:`empty_pinned` and results from devices share one pool; this is another, for a part of a program
    that shall not compete with it.

    Parameters
    ----------
    limit : int
        How many bytes it may pin at most, for live arrays and idle memory together. Beyond, arrays get ordinary memory.
    fence : {"streams", "context", "never"}
        What must be done before the memory of an array that is gone serves the next one: "streams", all work in the
        default streams, in torch's and tensorferry's, and in those of :meth:`hold`; "context", all work on all devices
        in use, whosever it is; "never", it serves no other, and goes back to the system once "streams" are done.

    Attributes
    ----------
    limit_nbytes : int
        The limit.
    fence : str
        The rule.

    Raises
    ------
    ArgumentError
        For what is no number of bytes, or no rule.

    Notes
    -----
    Arrays may outlive the pool. Making one takes no memory and starts no device.

    Examples
    --------
    >>> import tensorferry as ferry
    >>> pool = ferry.PinnedPool(64 << 20, fence="context")
    >>> a = pool.empty((1024, 256))
    >>> a.nbytes, pool.stats.limit_nbytes
    (1048576, 67108864)
    """

    def __init__(self, limit: int, *, fence: str = "streams") -> None:
        from tensorferry._memory.pinned_pool import pool_of_caller

        self._pool = untraced(pool_of_caller)(limit, fence)

    def __repr__(self) -> str:
        return f"PinnedPool({self.limit_nbytes}, fence={self.fence!r})"

    @property
    def limit_nbytes(self) -> int:
        """How many bytes it may pin at most."""
        return self._pool.limit_nbytes

    @property
    def fence(self) -> str:
        """When memory is used again."""
        return self._pool.fence

    def empty(self, shape: Any, dtype: Any = "float32", *, order: str = "C") -> np.ndarray[Any, Any]:
        """Return a new array as :func:`empty_pinned` does, over memory of this pool."""
        from tensorferry._memory.pinned_pool import PoolOfCaller

        return untraced(PoolOfCaller.empty)(self._pool, shape, dtype, order)

    @property
    def stats(self) -> PinnedPoolStats:
        """What the pool holds, and how well it has served; waits for nothing."""
        return self._pool.stats()

    def trim(self, nbytes: int = 0) -> int:
        """Give idle memory back to the system until at most `nbytes` are idle; return how many bytes went back.

        Memory that work may still touch is not idle.
        """
        return self._pool.trim(nbytes)

    def hold(self, array: Any, stream: Any) -> None:
        """Do what :func:`hold` does, for an array of this pool; ArgumentError for another one."""
        from tensorferry._memory.pinned_pool import PoolOfCaller

        untraced(PoolOfCaller.hold)(self._pool, array, stream)
