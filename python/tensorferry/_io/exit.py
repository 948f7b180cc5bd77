"""What happens to writing in the background when the interpreter ends: it gets some time, and what is lost is said."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import warnings
import weakref
from typing import Protocol

from tensorferry._errors import FerryWarning

__all__ = ["EXIT_WAIT_S", "Unfinished", "expect", "forget", "warn", "warn_of_loss"]

logger = logging.getLogger("tensorferry")

EXIT_WAIT_S = 60.0

_lock = threading.Lock()
_unfinished: weakref.WeakSet[Unfinished] = weakref.WeakSet()
_registered = False


class Unfinished(Protocol):
    """Something that writes in the background."""

    def finish_at_exit(self, seconds: float) -> None:
        """Finish within that time or give up, and say what was lost. Never raises."""


def expect(work: Unfinished) -> None:
    """Let the end of the interpreter wait for `work`, all in all :data:`EXIT_WAIT_S` seconds."""
    global _registered
    with _lock:
        if not _registered:
            _registered = True
            atexit.register(_finish_all)
            os.register_at_fork(after_in_child=_forget_parents_work)
        _unfinished.add(work)


def forget(work: Unfinished) -> None:
    """Wait for it no more."""
    with _lock:
        _unfinished.discard(work)


def warn_of_loss(what: str, error: BaseException) -> None:
    """Warn of an error that nobody asked for."""
    warn(f"{what} failed, and nobody asked for its error: {str(error) or type(error).__name__}")


def warn(message: str) -> None:
    """Warn from a thread or finaliser of ours; where warnings are errors, nobody could catch it, and it is logged."""
    try:
        warnings.warn(message, FerryWarning, stacklevel=3)
    except FerryWarning:
        logger.error(message)


def _finish_all() -> None:
    deadline = time.monotonic() + EXIT_WAIT_S
    with _lock:
        left = list(_unfinished)
    for work in left:
        work.finish_at_exit(max(0.0, deadline - time.monotonic()))


def _forget_parents_work() -> None:
    global _lock, _unfinished
    _lock = threading.Lock()  # another thread of the parent may have held it
    _unfinished = weakref.WeakSet()
