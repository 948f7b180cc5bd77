"""When the device is done with a transfer: asking, waiting, and calling what waits for it."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

from tensorferry._errors import DeviceError
from tensorferry._transfer.background import background
from tensorferry._transfer.pending import Pending

__all__ = ["Arrival", "seconds_left"]

logger = logging.getLogger("tensorferry")

# A signal's handler runs in the main thread between two calls of the native side.
_LONGEST_SLICE_S = 0.1


def seconds_left(deadline: float | None) -> float | None:
    """Return how long it is until `deadline`, at least 0; None for ever."""
    return None if deadline is None else max(0.0, deadline - time.monotonic())


class Arrival:
    """The device's side of one transfer. Any thread; no lock is held while the native side or a callback runs.

    Parameters
    ----------
    pending : Pending or None
        The work; None when there is nothing to wait for.
    """

    __slots__ = ("_calls", "_lock", "_pending", "_pid", "_runs", "_watched", "error", "finished_at", "wait_s")

    def __init__(self, pending: Pending | None) -> None:
        self._pending = pending  # None as soon as the end is known
        self._pid = os.getpid()
        # Re-entrant: a finaliser or a signal's handler may ask in the very thread that holds it.
        self._lock = threading.RLock()
        self._calls: dict[object, Callable[[], None]] = {}
        self._watched = False  # the native side will call, or has called
        self._runs = False  # what is queued will be called
        self.error: Exception | None = None
        self.finished_at: float | None = None
        self.wait_s = 0.0  # what callers have waited

    def ask(self) -> bool:
        """Is the device done, or has it failed? Never waits."""
        pending = self._current()
        if pending is None:
            return True
        try:
            done = pending.done()
        except Exception as error:
            self._note_end(error)
            return True
        if done:
            self._note_end(None)
        return done

    def wait(self, deadline: float | None) -> bool:
        """Wait until the device is done or has failed; False when the time is up. Ctrl-C leaves it valid."""
        in_main_thread = threading.get_ident() == threading.main_thread().ident
        while not self.ask():
            left = seconds_left(deadline)
            if left == 0:
                return False
            if in_main_thread:
                left = _LONGEST_SLICE_S if left is None else min(left, _LONGEST_SLICE_S)
            pending = self._pending
            try:
                if pending is not None and pending.wait(left):
                    self._note_end(None)
            except Exception as error:
                self._note_end(error)
        return True

    def call_when_done(self, call: Callable[[], None]) -> object | None:
        """Queue `call`, or call it at once when the device is done and nothing is queued before it.

        Returns
        -------
        object or None
            What ``forget`` takes; None when it was called at once.
        """
        done = self.ask()
        key = object()
        with self._lock:
            queued = self._runs or not (done or self._watched)
            if queued:
                self._calls[key] = call
                self._runs = True
            watch, self._watched = queued and not self._watched, queued or self._watched
        if watch:
            self._watch()
        if queued:
            return key
        call()
        return None

    def add_wait(self, seconds: float) -> None:
        """Count what a caller has waited."""
        with self._lock:
            self.wait_s += seconds

    def forget(self, key: object) -> None:
        """Take back what was queued, where it was not called yet."""
        with self._lock:
            self._calls.pop(key, None)

    def report(self, what: str, error: Exception | None = None) -> None:
        """Log `error`, or that of the device now or when it comes: nobody is left to be told otherwise."""
        if self._pid != os.getpid() or sys.is_finalizing():
            return
        if error is None:
            self.call_when_done(partial(self._log_failure, what))
        else:
            _log(what, error)

    def _log_failure(self, what: str) -> None:
        if self.error is not None:
            _log(what, self.error)

    def _current(self) -> Pending | None:
        if self._pid != os.getpid():
            self._become_a_childs()
        return self._pending

    def _become_a_childs(self) -> None:
        self._lock = threading.RLock()  # another thread of the parent may have held the old one
        if self.error is None:
            self.error = DeviceError(
                "a Transfer of the parent process",
                "a device cannot be used after os.fork(), so its result never arrives in the child",
                'ask for result() before the fork, or start workers by multiprocessing\'s "spawn" method',
            )
        self._calls, self._watched, self._runs, self._pending = {}, True, False, None
        self._pid = os.getpid()

    def _note_end(self, error: Exception | None) -> None:
        with self._lock:
            pending = self._pending  # let go of without the lock
            if pending is None:
                return
            self.finished_at = time.monotonic()
            # The frames of a traceback would keep this object alive, and what they hold.
            self.error = None if error is None else error.with_traceback(None)
            self._pending = None

    def _watch(self) -> None:
        pending = self._pending
        try:
            if pending is not None:
                pending.add_callback(self._run_calls)
                return
        except Exception as error:
            self._note_end(error)
        self._run_calls()

    def _run_calls(self) -> None:
        self.ask()
        interrupt: BaseException | None = None
        while True:
            with self._lock:
                if background.over:
                    self._calls.clear()
                if not self._calls:
                    self._runs = False
                    break
                call = self._calls.pop(next(iter(self._calls)))
            try:
                call()
            except BaseException as error:
                # Those queued behind it are called all the same.
                interrupt = error
        if interrupt is not None:
            raise interrupt


def _log(what: str, error: Exception) -> None:
    logger.error("%s was dropped and nobody asked for its error: %s", what, error, exc_info=error)
