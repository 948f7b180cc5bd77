"""A result that is made once, by the first thread that needs it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from tensorferry._transfer.arrival import seconds_left

__all__ = ["Failure", "Once", "Value"]

T = TypeVar("T")

logger = logging.getLogger("tensorferry")


@dataclass(frozen=True)
class Value(Generic[T]):
    """What was made."""

    value: T


@dataclass(frozen=True)
class Failure:
    """Why it could not be made."""

    error: Exception


class Once(Generic[T]):
    """Makes something at most once and keeps it, or the error. Any thread.

    Parameters
    ----------
    finish : callable or None
        Makes it. What is no ``Exception``, like KeyboardInterrupt, is not kept: the next caller starts it again.
    """

    __slots__ = ("_finish", "_making", "kept")

    def __init__(self, finish: Callable[[], T] | None, kept: Value[T] | None = None) -> None:
        self._finish = finish
        self._making = threading.RLock()
        self.kept: Value[T] | Failure | None = kept

    def make(self, deadline: float | None) -> bool:
        """Make it unless it is there, or wait for the thread that does; False when the time is up."""
        if self.kept is not None:
            return True
        left = seconds_left(deadline)
        if not self._making.acquire(timeout=-1 if left is None else left):
            return False
        try:
            finish = self._finish
            if self.kept is None and finish is not None:
                try:
                    self.kept = Value(finish())
                except Exception as error:
                    # Not with its traceback: the frames would keep alive what they hold, and this object.
                    logger.debug("the last step of a transfer failed", exc_info=True)
                    self.kept = Failure(error.with_traceback(None))
                self._finish = None
        finally:
            self._making.release()
        return True

    def fail(self, error: Exception) -> None:
        """Keep an error instead; takes no lock."""
        if self.kept is None:
            self.kept = Failure(error)
            self._finish = None
