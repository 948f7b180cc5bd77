"""The end of the process: what is still to be delivered gets a moment, and what is lost is told."""

from __future__ import annotations

import atexit
import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorferry._metrics.log import Log

__all__ = ["forget", "remember", "run_before_others", "tell"]

PATIENCE_S = 5.0

_open_logs: dict[int, Log] = {}
_registered = False


def remember(log: Log) -> None:
    """Let it be flushed at exit, whoever forgets it, until it is closed."""
    global _registered
    _open_logs[id(log)] = log
    if not _registered:
        _registered = True
        atexit.register(_finish)
        os.register_at_fork(after_in_child=_forget_parents_work)


def forget(log: Log) -> None:
    """It was closed."""
    _open_logs.pop(id(log), None)


def run_before_others() -> None:
    """Come before everything that was registered until now, such as the end of torch and of our own threads."""
    atexit.unregister(_finish)
    atexit.register(_finish)


def tell(line: str) -> None:
    """Say on stderr what was lost."""
    print(f"tensorferry: {line}", file=sys.stderr)


def _finish() -> None:
    deadline = time.monotonic() + PATIENCE_S
    for log in list(_open_logs.values()):
        for line in log.finish(deadline):
            tell(line)


def _forget_parents_work() -> None:
    for log in _open_logs.values():
        log.forget()
