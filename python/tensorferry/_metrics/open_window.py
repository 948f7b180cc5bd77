"""The window that steps are logged into, and its way to the delivery once it is complete."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tensorferry._metrics.arguments import closed, not_larger, step_number
from tensorferry._metrics.combining import Aggregations
from tensorferry._metrics.delivery import Delivery
from tensorferry._metrics.window import Window

__all__ = ["OpenWindow"]


class OpenWindow:
    """The one open window of a log, if there is one. All that is logged at once is between `enter` and `leave`.

    Parameters
    ----------
    delivery : Delivery
        Where a window goes when it is complete.
    aggregations : Aggregations
        What becomes of the values of several steps.
    every : int
        How many steps are one window.
    add_totals : callable
        Adds what devices have kept for a window that ends.

    Attributes
    ----------
    lock : threading.RLock
        Whoever holds it waits for no other thread's sink, which may log itself.
    last_step : int
        The newest one, -1 before the first.
    is_closed : bool
        No step is taken any more.
    """

    def __init__(
        self, delivery: Delivery, aggregations: Aggregations, every: int, add_totals: Callable[[Window], None]
    ) -> None:
        self._delivery, self._aggregations, self._every = delivery, aggregations, every
        self._add_totals = add_totals
        self._window: Window | None = None
        self.lock = threading.RLock()
        self.last_step = -1
        self.is_closed = False

    @property
    def is_there(self) -> bool:
        """Is a window open?"""
        return self._window is not None

    def enter(self, step: int | None) -> None:
        """Take the lock, at a moment when there is room for the window that this step may end."""
        self.lock.acquire()
        while not self._delivery.has_room() and self._is_ended_by(step):
            self.lock.release()
            self._delivery.wait_for_room()
            self.lock.acquire()

    def leave(self) -> None:
        """Let go of the lock."""
        self.lock.release()

    def _is_ended_by(self, step: int | None) -> bool:
        window = self._window
        is_full = window is not None and window.steps >= self._every and not self.is_closed
        return is_full and (step is None or step != self.last_step)

    def at(self, step: int | None) -> tuple[Window, Window | None]:
        """Return the window that the step belongs to, and the one before it where that is complete now."""
        if self.is_closed:
            raise closed()
        window, last = self._window, self.last_step
        number = last + 1 if step is None else step
        if type(number) is not int:
            number = step_number(step)
        if number == last and window is not None:
            return window, None
        if number <= last:
            raise not_larger(number, last, window is not None)
        self.last_step = number
        if window is not None and window.steps < self._every:
            window.next_step(number)
            return window, None
        self._window = Window(number, self._aggregations)
        if window is not None:
            self._add_totals(window)
        return self._window, window

    def end(self, deadline: float | None) -> bool:
        """Put the window that is open, complete or not; False when that was not possible in time."""
        while True:
            # A sink that another thread's log() has called keeps the lock.
            if not self.lock.acquire(timeout=-1 if deadline is None else max(0.0, deadline - time.monotonic())):
                return False
            try:
                window = self._window
                if window is None:
                    return True
                if self._delivery.has_room():
                    self._window = None
                    self._add_totals(window)
                    self._delivery.put(window)
                    return True
            finally:
                self.lock.release()
            if not self._delivery.wait_for_room(deadline):
                return False

    def forget(self) -> None:
        """Begin anew in a forked child."""
        self.lock, self._window = threading.RLock(), None
