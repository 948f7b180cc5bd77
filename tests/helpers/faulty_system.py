"""An operating system that fails on demand: one of its calls, the n-th time, or short and interrupted writes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tensorferry._io.system import System

__all__ = ["FAILING", "FaultySystem", "InterruptedSystem", "names_of", "temporary_files"]

# The calls that can fail, with what each may say; reading and closing are not among them.
FAILING: tuple[str, ...] = (
    "open_new",
    "make_folder",
    "open_folder",
    "pwritev",
    "allocate",
    "truncate",
    "fsync",
    "start_writeback",
    "set_mode",
    "lock",
    "replace",
    "rename_new",
    "exchange",
)


class FaultySystem(System):
    """Counts the calls of ``FAILING``, and lets the one with number `fails_at` raise an ``OSError`` with `code`."""

    def __init__(self, fails_at: int = -1, code: int = 0, *, before: Callable[[str], None] | None = None) -> None:
        self.calls: list[str] = []
        self.failed_in = ""  # the name of the thread
        self._lock = threading.Lock()
        self._fails_at = fails_at
        self._code = code
        self._before = before

    def __getattribute__(self, name: str) -> Any:
        real = object.__getattribute__(self, name)
        if name not in FAILING:
            return real

        def counted(*arguments: Any) -> Any:
            with self._lock:
                number = len(self.calls)
                self.calls.append(name)
            if self._before is not None:
                self._before(name)
            if number == self._fails_at:
                self.failed_in = threading.current_thread().name
                raise OSError(self._code, os.strerror(self._code))
            return real(*arguments)

        return counted


class InterruptedSystem(System):
    """Every write is interrupted first, and then takes no more than `at_most` bytes."""

    def __init__(self, at_most: int) -> None:
        self.writes = 0
        self._at_most = at_most
        self._interrupts = True

    def pwritev(self, fd: int, pieces: Any, offset: int) -> int:
        self._interrupts = not self._interrupts
        if not self._interrupts:
            raise InterruptedError
        self.writes += 1
        return super().pwritev(fd, _first(pieces, self._at_most), offset)


def _first(pieces: Sequence[memoryview], nbytes: int) -> list[memoryview]:
    """Return no more than that many bytes, over as many pieces as it takes."""
    first = []
    for piece in pieces:
        first.append(piece[:nbytes])
        nbytes -= len(first[-1])
    return [piece for piece in first if len(piece)]


def names_of(folder: Path) -> list[str]:
    """Return all names in a folder, sorted, hidden ones included."""
    return sorted(os.listdir(folder))


def temporary_files(folder: Path) -> list[str]:
    """Return what a save has left that is no result."""
    return [name for name in names_of(folder) if "ferry-tmp" in name]
