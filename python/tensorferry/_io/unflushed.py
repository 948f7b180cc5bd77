"""Files that are written and not on the disk yet: the system brings them there while the next ones are written."""

from __future__ import annotations

import contextlib
from collections import deque

from tensorferry._io.system import System

__all__ = ["Unflushed"]

_MOST = 64  # open at once


class Unflushed:
    """Open files that are to be flushed; waiting for each as it is written would take twice the time."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._fds: deque[int] = deque()

    def add(self, fd: int, nbytes: int) -> None:
        """Take over a file of that size; let it be brought to the disk, without waiting unless too many are open."""
        self._fds.append(fd)
        self._system.start_writeback(fd, 0, nbytes)
        while len(self._fds) > _MOST:
            self._flush_first()

    def flush(self) -> None:
        """Wait until all of them are on the disk, and close them."""
        while self._fds:
            self._flush_first()

    def close(self) -> None:
        """Close them without waiting. Never raises."""
        while self._fds:
            with contextlib.suppress(OSError):
                self._system.close(self._fds.popleft())

    def _flush_first(self) -> None:
        fd = self._fds.popleft()
        try:
            self._system.fsync(fd)
        finally:
            self._system.close(fd)
