"""One file, written from front to back: headers, tensors, and corrections of what was written before."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from tensorferry._io.batch import Batch
from tensorferry._io.checksum import RunningSum
from tensorferry._io.medium import Medium
from tensorferry._io.options import SaveOptions
from tensorferry._io.pipeline import Block, Pipeline, write_fully
from tensorferry._io.readable import Readable

__all__ = ["Sink"]

_Array = np.ndarray[Any, Any]

_SMALL_NBYTES = 64 << 10  # pieces below this are copied together where they could not wait for others
_AT_ONCE_NBYTES = 8 << 20
_MANY_PIECES = 8  # to put the next ones together takes a while
_WORTH_RESERVING_NBYTES = 1 << 20


class Sink:
    """Bytes on their way to an open file.

    Memory of the caller may be written after a call returned; :meth:`settle` ends that.

    Parameters
    ----------
    fd : int
        The file, open to write.
    path : str
        Its path, to open it again.
    options : SaveOptions
        How to write.
    pipeline : Pipeline
        Blocks and thread, shared with other files.
    total_nbytes : int, optional
        The size of the file, where it is known; reserved at once, so that a full disk is noticed before anything is
        written.

    Attributes
    ----------
    position : int
        How many bytes were appended.
    """

    def __init__(
        self, fd: int, path: str, options: SaveOptions, pipeline: Pipeline, total_nbytes: int | None = None
    ) -> None:
        self._fd = fd
        self._options = options
        self._pipeline = pipeline
        self.position = 0
        self._batch = Batch()
        self._reserved = 0
        self._borrows = False
        self._sums = False
        if (total_nbytes or 0) >= _WORTH_RESERVING_NBYTES:
            assert total_nbytes is not None
            if options.system.allocate(fd, total_nbytes):
                self._reserved = total_nbytes
        self.medium = Medium(fd, path, options, total_nbytes)

    def append(self, data: bytes) -> None:
        """Append bytes of ours, such as a header."""
        self._append_memory(np.frombuffer(data, np.uint8))

    def append_tensor(self, tensor: Readable, sums: Sequence[RunningSum] = ()) -> None:
        """Append the bytes of a tensor, and tell them to every sum."""
        if tensor.nbytes == 0:
            return
        self._sums = bool(sums)
        if tensor.memory is not None:
            self._append_in_place(tensor.memory, sums)
        elif tensor.stream is not None:
            self._append_stream(tensor.stream(), sums)
        else:
            self._append_pieces(tensor, sums)

    def patch(self, offset: int, data: bytes) -> None:
        """Write again what was appended before; waits for everything."""
        self._flush()
        self._pipeline.drain()
        write_fully(self._options, self._fd, [data], offset)

    def settle(self) -> None:
        """Let no memory of the caller be needed any more: wait for its writes, copy what waits to be written."""
        if self._batch.lent_nbytes >= _SMALL_NBYTES:
            self._flush()
        else:
            lent = self._batch.pop_lent()
            self.position -= sum(piece.size for piece in lent)
            for piece in lent:
                self._copy(piece)
        if self._borrows:
            self._pipeline.drain()
            self._borrows = False

    def finish(self, *, flush: bool = True) -> None:
        """Wait for everything, and for the disk itself where the save is durable, unless the caller does that."""
        self._flush()
        self._pipeline.drain()
        if self._reserved > self.position:
            self._options.system.truncate(self._fd, self.position)
        if self._options.durable and flush:
            self._options.system.fsync(self._fd)
        self.close()

    def close(self) -> None:
        """Let go of what was opened besides the file."""
        self.medium.close()

    def _append_in_place(self, memory: _Array, sums: Sequence[RunningSum]) -> None:
        for start in range(0, memory.size, _AT_ONCE_NBYTES):
            piece = memory[start : start + _AT_ONCE_NBYTES]
            for running in sums:
                running.update(piece)
            self._append_memory(piece)

    def _append_stream(self, pieces: Iterator[_Array], sums: Sequence[RunningSum]) -> None:
        for piece in pieces:
            for running in sums:
                running.update(piece)
            self._append_memory(piece)
            self.settle()

    def _append_memory(self, piece: _Array) -> None:
        """Append bytes that lie somewhere, from there if that is allowed."""
        if self.medium.wants_blocks:
            self._copy(piece)
            return
        self.position += piece.size
        self._batch.lend(piece)
        if self._batch.is_full:
            self._flush()

    def _append_pieces(self, tensor: Readable, sums: Sequence[RunningSum]) -> None:
        """Append a tensor that has to be packed, converted or fetched, in pieces."""
        arriving: deque[tuple[Any, Block | None, _Array]] = deque()
        most = max(1, self._pipeline.most_blocks - 3)
        if tensor.is_on_device:
            self._pipeline.want_pinned()

        def arrive() -> None:
            transfer, block, data = arriving.popleft()
            if transfer is not None:
                transfer.result()
            for running in sums:
                running.update(data)
            self._append_block(block, data)

        for index, shape in tensor.pieces(self._pipeline.block_nbytes):
            nbytes = math.prod(shape) * tensor.dtype.itemsize
            block = self._pipeline.take() if nbytes <= self._pipeline.block_nbytes else None
            data = np.empty(nbytes, np.uint8) if block is None else block.memory[:nbytes]
            transfer = tensor.fill(index, data.view(tensor.dtype).reshape(shape))
            arriving.append((transfer, block, data))
            if transfer is None or len(arriving) >= most:
                arrive()
        while arriving:
            arrive()

    def _append_block(self, block: Block | None, data: _Array) -> None:
        if self.medium.wants_blocks or data.size < _SMALL_NBYTES:
            self._copy(data)
            if block is not None:
                self._pipeline.give(block)
            return
        self._flush()
        self.position += data.size
        self._write([data], block, data.size, overlap=True)

    def _copy(self, data: _Array) -> None:
        """Append bytes that will not stay where they are."""
        done = 0
        while done < data.size:
            if self._batch.block is None:
                self._batch.block = self._pipeline.take()
            count = self._batch.copy(data[done:])
            self.position += count
            done += count
            if self._batch.is_full:
                self._flush()

    def _flush(self) -> None:
        batch, self._batch = self._batch, Batch()
        if batch.pieces:
            self._borrows |= batch.is_lent
            overlap = self._sums or batch.block is not None or len(batch.pieces) >= _MANY_PIECES
            self._write(batch.pieces, batch.block, batch.nbytes, overlap=overlap)
        elif batch.block is not None:
            self._pipeline.give(batch.block)

    def _write(self, pieces: list[_Array], block: Block | None, nbytes: int, *, overlap: bool) -> None:
        """Write what ends at the present position; `overlap` when the next bytes take the caller time to prepare."""
        overlap = overlap and not self.medium.is_on_trial
        self._pipeline.run(partial(self.medium.write, pieces, self.position - nbytes), block, nbytes, overlap=overlap)
        self._pipeline.wrote(nbytes)
