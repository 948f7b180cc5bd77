"""Pieces that follow each other in a file and are written by one call, each from where it lies."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorferry._io.pipeline import Block

__all__ = ["Batch"]

_Array = np.ndarray[Any, Any]

_MOST_PIECES = 512  # of the 1,024 that one call of the system takes
_FULL_NBYTES = 1 << 20


class Batch:
    """What the next write of a file consists of.

    Attributes
    ----------
    pieces : list of numpy.ndarray
        Flat bytes, in the order of the file.
    nbytes : int
        Of all of them.
    block : Block or None
        Holds the pieces that were copied; free again when they are written.
    """

    def __init__(self) -> None:
        self.pieces: list[_Array] = []
        self.nbytes = 0
        self.block: Block | None = None
        self._filled = 0
        self._copied_from = -1  # where in the block the last piece begins, if it lies there
        self._first_lent: int | None = None  # position among the pieces

    @property
    def is_full(self) -> bool:
        """Is it to be written before more is added?"""
        block_is_full = self.block is not None and self._filled == self.block.nbytes
        return block_is_full or self.nbytes >= _FULL_NBYTES or len(self.pieces) >= _MOST_PIECES

    @property
    def is_lent(self) -> bool:
        """Does any of it lie in memory of others?"""
        return self._first_lent is not None

    @property
    def lent_nbytes(self) -> int:
        """Bytes of the pieces that :meth:`pop_lent` would return."""
        return sum(piece.size for piece in self.pieces[self._first_lent :]) if self._first_lent is not None else 0

    def lend(self, piece: _Array) -> None:
        """Add bytes that stay as they are until they are written."""
        if self._first_lent is None:
            self._first_lent = len(self.pieces)
        self.pieces.append(piece)
        self.nbytes += piece.size
        self._copied_from = -1

    def pop_lent(self) -> list[_Array]:
        """Take back all pieces from the first one that was lent on."""
        if self._first_lent is None:
            return []
        taken = self.pieces[self._first_lent :]
        del self.pieces[self._first_lent :]
        self.nbytes -= sum(piece.size for piece in taken)
        self._first_lent = None
        self._copied_from = 0 if self.pieces else -1  # what is left was copied first
        return taken

    def copy(self, data: _Array) -> int:
        """Copy as many bytes as the block has room for, and return how many; there has to be a block."""
        assert self.block is not None
        begin = self._filled
        count = min(data.size, self.block.nbytes - begin)
        self.block.memory[begin : begin + count] = data[:count]
        self._filled += count
        self.nbytes += count
        if self._copied_from < 0 or self._copied_from + self.pieces[-1].size != begin:
            self._copied_from = begin
            self.pieces.append(self.block.memory[begin : self._filled])
        else:
            self.pieces[-1] = self.block.memory[self._copied_from : self._filled]
        return count
