"""Memory between who gives tensors and who writes them: bounded, so that the one waits when the other is slower."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry._io.pipeline import ALIGNMENT

__all__ = ["Piece", "StagingPool"]

_Array = np.ndarray[Any, Any]

_LARGEST_BLOCK_NBYTES = 8 << 20
_LEAST_BLOCKS = 4
_SMALL_NBYTES = 64 << 10  # below that, memory of its own instead of a whole block
_LEAST_CHARGE = 512


@dataclass(eq=False)
class Piece:
    """Memory on loan.

    Attributes
    ----------
    data : numpy.ndarray
        Flat bytes, as many as were asked for.
    charge : int
        What it counts for until it is given back.
    block : numpy.ndarray or None
        The block that it lies in.
    """

    data: _Array
    charge: int
    block: _Array | None


class StagingPool:
    """Pieces of memory that together never take more than a limit. Any thread.

    Parameters
    ----------
    nbytes : int
        The limit.

    Attributes
    ----------
    block_nbytes : int
        The largest piece.
    most_in_use : int
        How many bytes were on loan at once at most.
    """

    def __init__(self, nbytes: int) -> None:
        self._limit = nbytes
        self.block_nbytes = max(ALIGNMENT, min(nbytes // _LEAST_BLOCKS, _LARGEST_BLOCK_NBYTES) // ALIGNMENT * ALIGNMENT)
        self._changed = threading.Condition()
        self._free: list[_Array] = []
        self._in_use = 0
        self._pinned = False
        self._error: BaseException | None = None
        self.most_in_use = 0

    def want_pinned(self) -> None:
        """Let the blocks that are made from now on be pinned: a device will copy into them."""
        self._pinned = True

    def take(self, nbytes: int) -> Piece:
        """Lend memory; waits while too much is on loan.

        Raises
        ------
        BaseException
            What :meth:`fail` was given.
        """
        small = nbytes <= _SMALL_NBYTES and nbytes < self.block_nbytes
        charge = max(nbytes, _LEAST_CHARGE) if small else max(nbytes, self.block_nbytes)
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or self._has_room(charge))
            if self._error is not None:
                raise self._error
            self._in_use += charge
            self.most_in_use = max(self.most_in_use, self._in_use)
            block = self._free.pop() if self._free and not small and nbytes <= self.block_nbytes else None
            if small and self._free and self._in_use + len(self._free) * self.block_nbytes > self._limit:
                self._free.pop()  # what is kept for later counts, too
        if small or nbytes > self.block_nbytes:
            return Piece(np.empty(nbytes, np.uint8), charge, None)
        if block is None:
            block = self._new_block()
        return Piece(block[:nbytes], charge, block)

    def give(self, piece: Piece) -> None:
        """Take a piece back."""
        with self._changed:
            self._in_use -= piece.charge
            if piece.block is not None and self._error is None:
                self._free.append(piece.block)
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Let everybody who waits, or who will ask, get `error`; the first one stays."""
        with self._changed:
            self._error = self._error or error
            self._free.clear()
            self._changed.notify_all()

    def _has_room(self, charge: int) -> bool:
        return self._in_use == 0 or self._in_use + charge <= self._limit

    def _new_block(self) -> _Array:
        if self._pinned:
            from tensorferry._memory.pinned_arrays import empty_pinned

            memory: _Array = empty_pinned((self.block_nbytes,), np.uint8, "C")
            return memory
        return np.empty(self.block_nbytes, np.uint8)
