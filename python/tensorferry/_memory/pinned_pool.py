"""Pools of pinned memory that callers make."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorferry._convert.options import choose
from tensorferry._device.torch_memory import note_torch
from tensorferry._memory.holding import hold
from tensorferry._memory.pinned_arrays import new_array
from tensorferry._memory.pinned_stats import PinnedPoolStats, stats_of
from tensorferry._memory.pool import as_nbytes
from tensorferry._native import core

__all__ = ["PoolOfCaller", "pool_of_caller"]


class PoolOfCaller:
    """What :class:`tensorferry.PinnedPool` is made of."""

    def __init__(self, limit: Any, fence: Any) -> None:
        self.limit_nbytes = as_nbytes("limit", limit)
        self.fence = choose("fence", fence, ("streams", "context", "never"))
        self._native = core.PinnedPool(self.limit_nbytes, self.fence)

    def empty(self, shape: Any, dtype: Any, order: Any) -> np.ndarray[Any, Any]:
        """Return a new array."""
        return new_array(self._native, shape, dtype, order, zeros=False)

    def stats(self) -> PinnedPoolStats:
        """Return the figures."""
        nothing = PinnedPoolStats(0, 0, 0, 0, 0, self.limit_nbytes, 0, 0, 0, 0, 0, 0)
        return stats_of(self._native) or nothing

    def trim(self, nbytes: Any) -> int:
        """Give idle memory back."""
        note_torch()
        return self._native.trim(as_nbytes("nbytes", nbytes))

    def hold(self, array: Any, stream: Any) -> None:
        """Let an array of this pool wait for a stream."""
        hold(array, stream, self._native)


def pool_of_caller(limit: Any, fence: Any) -> PoolOfCaller:
    """See :class:`tensorferry.PinnedPool`."""
    return PoolOfCaller(limit, fence)
