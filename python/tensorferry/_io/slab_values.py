"""The values of a tensor, part by part in C order, for libraries that take arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorferry._io.readable import Readable
from tensorferry._io.slabs import Index, slabs

__all__ = ["slab_values"]

_Array = np.ndarray[Any, Any]


def slab_values(tensor: Readable, limit_nbytes: int) -> Iterator[tuple[Index, _Array]]:
    """Yield index and values of parts of at most that size, or of one element.

    Each array stays as it is until the next one is asked for.
    """
    parts = slabs(tensor.shape, tensor.dtype.itemsize, limit_nbytes)
    if tensor.memory is not None:
        start = 0
        for index, shape in parts:
            stop = start + math.prod(shape) * tensor.dtype.itemsize
            yield index, tensor.memory[start:stop].view(tensor.dtype).reshape(shape)
            start = stop
        return
    pieces = None if tensor.stream is None else _Joined(tensor.stream())
    memory = np.empty(min(tensor.nbytes, max(limit_nbytes, tensor.dtype.itemsize)), np.uint8)
    for index, shape in parts:
        flat = memory[: math.prod(shape) * tensor.dtype.itemsize]
        values = flat.view(tensor.dtype).reshape(shape)
        if pieces is not None:
            pieces.read_into(flat)
        else:
            transfer = tensor.fill(index, values)
            if transfer is not None:
                transfer.result()
        yield index, values
    if pieces is not None:
        pieces.require_end()


class _Joined:
    """Bytes that come in pieces, read in pieces of other sizes."""

    def __init__(self, pieces: Iterator[_Array]) -> None:
        self._pieces = pieces
        self._left = np.empty(0, np.uint8)

    def read_into(self, out: _Array) -> None:
        done = 0
        while done < out.size:
            if not self._left.size:
                self._left = next(self._pieces)
            count = min(out.size - done, self._left.size)
            out[done : done + count] = self._left[:count]
            self._left = self._left[count:]
            done += count

    def require_end(self) -> None:
        """Let the last piece be given back."""
        for piece in self._pieces:
            assert piece.size == 0
