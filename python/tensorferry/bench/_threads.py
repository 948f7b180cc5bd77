"""The same number of threads for every candidate, whichever library it belongs to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["available_cores", "equal_threads"]

# What each library calls its own count. tensorferry follows torch's; NumPy copies and casts with one thread.
_SETTERS = {"torch": ("get_num_threads", "set_num_threads"), "cv2": ("getNumThreads", "setNumThreads")}


def available_cores() -> int:
    """Return on how many cores this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def equal_threads(count: int) -> Iterator[None]:
    """Let every library that is loaded by now use `count` threads inside, and as many as before afterwards."""
    before: list[tuple[Any, int]] = []
    try:
        for module, (get, put) in _SETTERS.items():
            loaded = sys.modules.get(module)
            if loaded is not None:
                before.append((getattr(loaded, put), getattr(loaded, get)()))
                getattr(loaded, put)(count)
        yield
    finally:
        for restore, threads in before:
            restore(threads)
