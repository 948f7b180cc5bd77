"""The internal thread that finishes transfers: when it runs, and what happens where it does not."""

from __future__ import annotations

import atexit
import os
import threading
from typing import Protocol, cast

from tensorferry._native import core

__all__ = ["Background", "background"]


class Native(Protocol):
    """The functions of the native module that this needs."""

    def start_completion_thread(self) -> None:
        """Start the thread unless it runs."""

    def stop_completion_thread(self) -> None:
        """Let it end, and wait for that without the GIL."""

    def reap(self) -> None:
        """Let go of what is done and call what waits for it, in the calling thread. Never waits for a device."""


class Background:
    """When the internal thread runs. Any thread.

    It starts with the first transfer, sleeps while nothing is pending, and ends before the interpreter does. Switched
    off, its work is done by the next ``done``, ``result`` or ``exception`` of any transfer.

    Parameters
    ----------
    native : Native
        Whatever has the native functions; asked for none before the first transfer.
    """

    def __init__(self, native: Native) -> None:
        self._native = native
        self._lock = threading.RLock()
        self._reaping = threading.Lock()
        self._used = False
        self._runs = False
        self.on = True
        self.over = False  # no callback any more: the interpreter is about to end

    def begin_transfer(self) -> None:
        """Start the thread unless it runs, is switched off, or the interpreter is about to end."""
        if not self._used or (self.on and not self._runs):
            self._begin()

    def switch(self, on: bool) -> bool:
        """Switch the thread on or off, at once; returns what held before. Off waits for it to end."""
        with self._lock:
            before, self.on = self.on, on
        if on and self._used:
            self._begin()
        elif not on:
            self._stop()
            self.reap_when_off()
        return before

    def reap_when_off(self) -> None:
        """Do what the thread would do, where it does not; nothing while another call is at it."""
        if self.on or self.over or not self._used or not self._reaping.acquire(blocking=False):
            return
        try:
            self._native.reap()
        finally:
            self._reaping.release()

    def close(self) -> None:
        """Stop the thread for good; what is pending is abandoned, and no callback is called any more."""
        self.over = True
        self._stop()

    def _begin(self) -> None:
        with self._lock:
            if not self._used:
                self._used = True
                atexit.register(self.close)
                os.register_at_fork(after_in_child=self._forget)
            if self.on and not (self._runs or self.over):
                self._native.start_completion_thread()
                self._runs = True

    def _stop(self) -> None:
        with self._lock:
            stops, self._runs = self._runs, False
        if not stops:
            return
        self._native.stop_completion_thread()  # without the lock: a callback in that thread may begin a transfer
        with self._lock:
            if self._runs:  # begun again meanwhile, perhaps before the old thread had ended
                self._native.start_completion_thread()

    def _forget(self) -> None:
        # A child has no such thread, and the parent's may have held the locks.
        self._lock, self._reaping, self._runs = threading.RLock(), threading.Lock(), False


background = Background(cast(Native, core))
