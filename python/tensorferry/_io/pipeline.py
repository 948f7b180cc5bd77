"""Blocks of memory between tensors and files, and the thread that writes them while the next ones are filled."""

from __future__ import annotations

import errno
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry._io.options import SaveOptions

__all__ = ["ALIGNMENT", "Block", "Pipeline", "write_fully"]

_Array = np.ndarray[Any, Any]

ALIGNMENT = 4096  # of memory, offsets and sizes, for writes past the page cache
_LARGEST_BLOCK_NBYTES = 8 << 20
_LEAST_BLOCKS = 4
_WORTH_A_THREAD_NBYTES = 1 << 20
_WAITING_WRITES = 4


@dataclass(eq=False)
class Block:
    """Memory that is filled, written, and filled again."""

    memory: _Array

    @property
    def nbytes(self) -> int:
        """Its size, a multiple of the alignment."""
        return int(self.memory.size)


@dataclass(frozen=True)
class _Job:
    write: Callable[[], None]
    block: Block | None


class Pipeline:
    """What the files of one save share: the blocks, and the thread that writes.

    The calling thread fills blocks and asks for writes; it waits for a block when all are in use, so that no more than
    ``max_staging_nbytes`` are. What needs no preparation is written by the calling thread itself.

    Attributes
    ----------
    block_nbytes : int
        Size of a block.
    blocks_made : int
        How many blocks were needed so far.
    written_nbytes : int
        How many bytes of tensors and headers were handed to files so far.
    total_nbytes : int or None
        How many bytes of tensors there will be, where that is known; for the caller, who hears of the progress.
    """

    def __init__(self, options: SaveOptions, *, has_thread: bool = True) -> None:
        self._progress = options.progress
        self.total_nbytes: int | None = None
        self.written_nbytes = 0
        share = options.max_staging_nbytes // _LEAST_BLOCKS
        self.block_nbytes = min(share, _LARGEST_BLOCK_NBYTES) // ALIGNMENT * ALIGNMENT
        self.most_blocks = options.max_staging_nbytes // self.block_nbytes
        self.blocks_made = 0
        self._pinned = False
        self._has_thread = has_thread
        self._free: queue.SimpleQueue[Block] = queue.SimpleQueue()
        self._jobs: queue.Queue[_Job | None] = queue.Queue(_WAITING_WRITES)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def want_pinned(self) -> None:
        """Let the blocks that are made from now on be pinned: a device will copy into them."""
        self._pinned = True

    def take(self) -> Block:
        """Return a block; waits until one is written when all are in use."""
        try:
            return self._free.get_nowait()
        except queue.Empty:
            pass
        if self.blocks_made < self.most_blocks:
            self.blocks_made += 1
            return Block(self._new_memory())
        return self._free.get()

    def give(self, block: Block) -> None:
        """Let a block be filled again."""
        self._free.put(block)

    def run(self, write: Callable[[], None], block: Block | None, nbytes: int, *, overlap: bool) -> None:
        """Write now, or behind the caller's back where it has something else to do meanwhile.

        Parameters
        ----------
        write : callable
            Writes; raises ``OSError``.
        block : Block or None
            To be given back after that.
        nbytes : int
            How many bytes will be written.
        overlap : bool
            Will the caller prepare something else now?

        Raises
        ------
        OSError
            That this or an earlier write met.
        """
        self._raise_error()
        if overlap and self._has_thread and nbytes >= _WORTH_A_THREAD_NBYTES:
            self._start()
            self._jobs.put(_Job(write, block))
            return
        try:
            write()
        finally:
            if block is not None:
                self.give(block)

    def wrote(self, nbytes: int) -> None:
        """Count bytes that were handed over, and tell the caller."""
        self.written_nbytes += nbytes
        if self._progress is not None:
            self._progress(self.written_nbytes, self.total_nbytes)

    def drain(self) -> None:
        """Wait until everything that was asked for is written.

        Raises
        ------
        OSError
            That a write met.
        """
        self._jobs.join()
        self._raise_error()

    def close(self) -> None:
        """Let the thread end, after what it has begun; what still waits is dropped. Never raises."""
        if self._thread is None:
            return
        self._error = self._error or InterruptedError(errno.EINTR, "the save was given up")
        self._jobs.put(None)
        self._thread.join()
        self._thread = None

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="tensorferry-writer", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            job: _Job | None = self._jobs.get()
            try:
                if job is None:
                    return
                if self._error is None:
                    job.write()
            except BaseException as error:  # raised again in the calling thread
                self._error = error
            finally:
                if job is not None and job.block is not None:
                    self.give(job.block)
                job = None  # which may hold memory of the caller
                self._jobs.task_done()

    def _new_memory(self) -> _Array:
        if self._pinned:
            from tensorferry._memory.pinned_arrays import empty_pinned

            memory: _Array = empty_pinned((self.block_nbytes + ALIGNMENT,), np.uint8, "C")
        else:
            memory = np.empty(self.block_nbytes + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        return memory[start : start + self.block_nbytes]


def write_fully(options: SaveOptions, fd: int, pieces: Sequence[Any], offset: int) -> None:
    """Write all bytes of `pieces`, flat arrays or ``bytes``, one after the other, however many calls that takes.

    Raises
    ------
    OSError
        What the system says; ``EIO`` when it writes nothing and gives no reason.
    """
    left = [memoryview(piece) for piece in pieces if len(piece)]
    while left:
        try:
            wrote = options.system.pwritev(fd, left, offset)
        except InterruptedError:
            continue
        if wrote <= 0:
            raise OSError(errno.EIO, "the system wrote nothing and gave no reason")
        offset += wrote
        left = _after(left, wrote)


def _after(pieces: list[memoryview], nbytes: int) -> list[memoryview]:
    """Return what of `pieces` follows their first `nbytes`."""
    for position, piece in enumerate(pieces):
        if nbytes < len(piece):
            return [piece[nbytes:], *pieces[position + 1 :]]
        nbytes -= len(piece)
    return []
