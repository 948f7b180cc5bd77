"""One array of a Zarr group that grows: its last chunk waits in memory until it is full."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorferry._io.format import Target
from tensorferry._io.growing import RowKind
from tensorferry._io.readable import Readable
from tensorferry._io.slab_values import slab_values
from tensorferry._io.zarr_format import TAG

__all__ = ["GrowingZarrArray"]

_Array = np.ndarray[Any, Any]


class GrowingZarrArray:
    """One array. Rows wait until a chunk is full; the last chunk is written again when more come."""

    def __init__(self, target: Target, array: Any, kind: RowKind) -> None:
        self.array = array
        self.kind = kind
        self._target = target
        notes = dict(array.attrs[TAG])
        self.together: str = notes["grows"]
        self._rows = kind.rows  # that were appended
        self._whole = kind.rows  # of them, how many are given to the library
        self._step = int(array.chunks[0])
        self._chunk = np.empty((self._step, *kind.shape), array.dtype)
        self._sums = target.options.sums()
        waiting = kind.rows % self._step
        if array.shape[0] != kind.rows or "crc32c" in notes:
            notes.pop("crc32c", None)
            array.attrs[TAG] = {**notes, "rows": kind.rows}
            array.resize((kind.rows, *kind.shape))
        for start in range(0, kind.rows if self._sums else 0, self._step):
            self._sums[0].update(_bytes_of(array[start : min(start + self._step, kind.rows)]))
        if waiting:
            self._chunk[:waiting] = array[kind.rows - waiting : kind.rows]

    def append(self, tensor: Readable) -> None:
        """Append rows."""
        row_nbytes = math.prod(self.kind.shape) * self.kind.dtype.itemsize
        limit = max(row_nbytes, self._chunk.nbytes)
        for _, values in slab_values(tensor, limit):
            for running in self._sums:
                running.update(_bytes_of(values))
            self._take(values.view(self._chunk.dtype))

    def _take(self, values: _Array) -> None:
        done = 0
        while done < len(values):
            at = self._rows % self._step
            count = min(len(values) - done, self._step - at)
            self._chunk[at : at + count] = values[done : done + count]
            self._rows += count
            done += count
            if self._rows % self._step == 0:
                self._write(self._rows - self._step)

    def flush(self) -> None:
        """Write the rows that wait, and note how many there are."""
        if self._rows > self._whole:
            self._write(self._rows - (self._rows % self._step or self._step))

    def finish(self) -> None:
        """Write what is left, and the sum of everything."""
        self.flush()
        if self._sums:
            self.array.attrs[TAG] = {**self.array.attrs[TAG], "crc32c": self._sums[0].text}

    def _write(self, start: int) -> None:
        self.array.resize((self._rows, *self.kind.shape))
        self.array[start : self._rows] = self._chunk[: self._rows - start]
        self._target.pipeline.wrote((self._rows - self._whole) * self._chunk[:1].nbytes)
        self._whole = self._rows
        self.array.attrs[TAG] = {**self.array.attrs[TAG], "rows": self._rows}


def _bytes_of(values: _Array) -> _Array:
    flat: _Array = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return flat
