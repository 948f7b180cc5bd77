"""How bytes go to one file: through the page cache, or past it where that was measured to be faster."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorferry._io.options import SaveOptions
from tensorferry._io.pipeline import ALIGNMENT, write_fully

__all__ = ["TRIAL_NBYTES", "Medium", "known_choices"]

_Array = np.ndarray[Any, Any]

TRIAL_NBYTES = 32 << 20  # written each way before the choice
_WORTH_A_TRIAL_NBYTES = 8 * TRIAL_NBYTES
_WRITEBACK_NBYTES = 32 << 20

# By device number of the file system: was writing past its page cache faster? Kept for the process.
known_choices: dict[int, bool] = {}
_lock = threading.Lock()


class Medium:
    """Writes to one open file, and chooses how.

    Only a durable save has a choice: without a flush, the page cache is always faster. It is made by the first large
    durable save on a file system, which writes its first pieces both ways and takes the time.

    Attributes
    ----------
    wants_blocks : bool
        Shall everything come in whole, aligned blocks? Otherwise it is written from where it lies.
    is_direct : bool
        Do bytes go past the page cache, or did they until the file was finished?
    reason : str
        Why bytes go the way they go.
    """

    def __init__(self, fd: int, path: str, options: SaveOptions, total_nbytes: int | None) -> None:
        self._fd = fd
        self._options = options
        self._direct_fd: int | None = None
        self._trial: dict[bool, list[float]] | None = None
        self._device = 0
        self._dirty_from = 0
        self.is_direct = False
        self._is_refused = False
        self.reason = "the page cache takes it; nobody waits for the disk"
        if options.durable:
            self._choose(path, total_nbytes)

    def _choose(self, path: str, total_nbytes: int | None) -> None:
        self.reason = "too little to measure which way is faster"
        self._device = os.fstat(self._fd).st_dev
        faster = known_choices.get(self._device)
        large = total_nbytes is not None and total_nbytes >= _WORTH_A_TRIAL_NBYTES
        if faster is False:
            self.reason = "measured faster on this file system"
        elif faster or large:
            self._direct_fd = self._options.system.open_direct(path)
            if self._direct_fd is None:
                self.reason = "this file system has no direct I/O"
            elif faster is None:
                self._trial = {False: [0.0, 0.0], True: [0.0, 0.0]}
            else:
                self.is_direct, self.reason = True, "measured faster on this file system"

    @property
    def wants_blocks(self) -> bool:
        """Shall everything come in whole, aligned blocks?"""
        return self._direct_fd is not None and not self._is_refused

    @property
    def is_on_trial(self) -> bool:
        """Are the two ways being measured? Then one write at a time, please."""
        return self._trial is not None

    def write(self, pieces: Sequence[_Array], offset: int) -> None:
        """Write pieces that follow each other from an offset on."""
        if self._trial is not None:
            self._write_on_trial(pieces, offset)
        elif not self._write_directly(pieces, offset):
            self._write_buffered(pieces, offset)

    def _write_directly(self, pieces: Sequence[_Array], offset: int) -> bool:
        """Write past the page cache; False where that is not possible, and from then on never again."""
        if self._direct_fd is None or self._is_refused or not _is_aligned(pieces, offset):
            return False
        try:
            write_fully(self._options, self._direct_fd, pieces, offset)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._is_refused, self.is_direct = True, False
            self.reason = f"this file system refuses direct I/O of blocks of {ALIGNMENT:,} bytes"
            with _lock:
                known_choices[self._device] = False
            return False
        return True

    def _write_buffered(self, pieces: Sequence[_Array], offset: int) -> None:
        write_fully(self._options, self._fd, pieces, offset)
        end = offset + _nbytes_of(pieces)
        if self._options.durable and end - self._dirty_from >= _WRITEBACK_NBYTES:
            start = min(self._dirty_from, offset)
            self._options.system.start_writeback(self._fd, start, end - start)
            self._dirty_from = end

    def _write_on_trial(self, pieces: Sequence[_Array], offset: int) -> None:
        assert self._trial is not None
        assert self._direct_fd is not None
        direct = self._trial[False][0] >= TRIAL_NBYTES
        began = time.perf_counter()
        nbytes = _nbytes_of(pieces)
        if not (direct and self._write_directly(pieces, offset)):
            write_fully(self._options, self._fd, pieces, offset)
            if self._trial[False][0] + nbytes >= TRIAL_NBYTES:
                self._options.system.fsync(self._fd)
        tally = self._trial[direct]
        tally[0] += nbytes
        tally[1] += time.perf_counter() - began
        if self._trial[True][0] >= TRIAL_NBYTES:
            self._decide(self._trial)

    def _decide(self, trial: dict[bool, list[float]]) -> None:
        direct, buffered = (trial[way][0] / max(trial[way][1], 1e-9) for way in (True, False))
        self._trial = None
        if self._is_refused:
            return
        self._dirty_from = int(trial[True][0] + trial[False][0])
        with _lock:
            known_choices[self._device] = direct > buffered
        self.reason = f"measured just now: direct {direct / 1e9:.2f} GB/s, buffered {buffered / 1e9:.2f} GB/s"
        self.is_direct = direct > buffered
        if not self.is_direct:
            self.close()

    def close(self) -> None:
        """Close what it opened; the file itself stays open."""
        if self._direct_fd is not None:
            self._options.system.close(self._direct_fd)
            self._direct_fd = None


def _nbytes_of(pieces: Sequence[_Array]) -> int:
    return sum(piece.size for piece in pieces)


def _is_aligned(pieces: Sequence[_Array], offset: int) -> bool:
    numbers = [offset, *(number for piece in pieces for number in (piece.size, piece.ctypes.data))]
    return not any(number % ALIGNMENT for number in numbers)
