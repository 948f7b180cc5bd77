"""One tensor on its way from who gives it to the thread that writes it."""

from __future__ import annotations

import math
import queue
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._errors import StreamError
from tensorferry._io.readable import Readable
from tensorferry._io.staging import Piece, StagingPool

__all__ = ["Handover", "require_values_now"]

_Array = np.ndarray[Any, Any]


class Handover:
    """A tensor in pieces: one thread fills them with its values, another one takes them in the order of the file.

    Parameters
    ----------
    pool : StagingPool
        Where the pieces come from.
    tensor : Readable
        What is handed over.
    """

    def __init__(self, pool: StagingPool, tensor: Readable) -> None:
        self._pool = pool
        self._tensor: Readable | None = tensor
        self._pieces: queue.SimpleQueue[tuple[Piece, Any] | BaseException | None] = queue.SimpleQueue()
        self.staged = replace(tensor, memory=None, filler=None, stream=self._arriving)

    def fill(self) -> None:
        """Copy the values, or enqueue that on their device; the tensor may change when this returns.

        Waits while everything is on loan. Whoever takes the pieces gets the error, too.

        Raises
        ------
        BaseException
            What the copy or the pool met.
        """
        tensor, self._tensor = self._tensor, None  # not kept any longer than needed
        assert tensor is not None
        try:
            if tensor.is_on_device:
                self._pool.want_pinned()
            if tensor.memory is not None:
                self._copy(tensor.memory)
            else:
                self._fetch(tensor)
        except BaseException as error:
            self._pieces.put(error)
            raise
        self._pieces.put(None)

    def _copy(self, memory: _Array) -> None:
        for start in range(0, memory.size, self._pool.block_nbytes):
            part = memory[start : start + self._pool.block_nbytes]
            piece = self._pool.take(part.size)
            np.copyto(piece.data, part)
            self._pieces.put((piece, None))

    def _fetch(self, tensor: Readable) -> None:
        for index, shape in tensor.pieces(self._pool.block_nbytes):
            piece = self._pool.take(math.prod(shape) * tensor.dtype.itemsize)
            try:
                transfer = tensor.fill(index, piece.data.view(tensor.dtype).reshape(shape))
                if transfer is not None and not hasattr(transfer, "result"):
                    raise _in_capture()
            except BaseException:
                self._pool.give(piece)
                raise
            self._pieces.put((piece, transfer))

    def _arriving(self) -> Iterator[_Array]:
        """Yield flat bytes; each stays until the next one is asked for."""
        while True:
            item = self._pieces.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            piece, transfer = item
            try:
                if transfer is not None:
                    transfer.result()
                yield piece.data
            finally:
                self._pool.give(piece)


def require_values_now(tensor: Readable) -> None:
    """Refuse a tensor of torch whose stream is being captured, before anything gets into the graph.

    Raises
    ------
    DeviceError
        Where that is so.
    """
    if tensor.is_on_device and tensor.filler is not None and _torch.is_tensor(tensor.filler.tensor):
        from tensorferry._device.capturing import refuse_in_capture

        refuse_in_capture("a tensor that is written to a file", tensor.filler.tensor.device.index, None)


def _in_capture() -> StreamError:
    return StreamError(
        "a tensor while its stream is captured into a CUDA graph",
        "a graph has no values before it is replayed, and a file is written once",
        "write it outside of the capture",
    )
