"""Transfers whose device is a plain Python object that the test finishes, from a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from tensorferry._plan.plan import Plan
from tensorferry._transfer.background import Background
from tensorferry._transfer.stats import TransferStats
from tensorferry._transfer.transfer import Transfer

__all__ = ["INTERNAL_THREAD", "PLAN", "NativeDouble", "PendingDouble", "transfer_of", "used_background"]

T = TypeVar("T")

PLAN = Plan("copy", "it lies on a device", ("copy",), 4096, 1, (), False, True)
INTERNAL_THREAD = "internal"


class PendingDouble:
    """Pending work that ends when `finish` or `fail` is called; counts what it is asked."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.waits: list[float | None] = []
        self.asked = 0
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._calls: list[Callable[[], None]] = []

    def done(self) -> bool:
        """Tell whether the test ended it; raise what the test said."""
        self.asked += 1
        return self._answer()

    def wait(self, timeout: float | None) -> bool:
        """Wait as the native side does."""
        self.waits.append(timeout)
        self._ended.wait(timeout)
        return self._answer()

    def add_callback(self, call: Callable[[], None]) -> None:
        """Keep `call` until the end; at once after it."""
        with self._lock:
            if not self._ended.is_set():
                self._calls.append(call)
                return
        call()

    def finish(self, *, calls: bool = True) -> None:
        """End it; the internal thread calls what waits, unless it does not run."""
        with self._lock:
            self._ended.set()
        if calls:
            errors: list[BaseException] = []

            def run() -> None:
                try:
                    self.call_what_waits()
                except BaseException as error:
                    errors.append(error)

            thread = threading.Thread(target=run, name=INTERNAL_THREAD)
            thread.start()
            thread.join(10)
            assert not thread.is_alive()
            assert errors == []  # nothing reaches the internal thread

    def fail(self, error: Exception, *, calls: bool = True) -> None:
        """End it with an error."""
        self.error = error
        self.finish(calls=calls)

    def finish_soon(self, delay_s: float = 0.05) -> threading.Thread:
        """End it from another thread after `delay_s` seconds."""

        def later() -> None:
            time.sleep(delay_s)
            self.finish()

        thread = threading.Thread(target=later)
        thread.start()
        return thread

    def call_what_waits(self) -> None:
        """Do what the internal thread does."""
        while self._calls:
            self._calls.pop(0)()

    def _answer(self) -> bool:
        if self._ended.is_set() and self.error is not None:
            raise self.error
        return self._ended.is_set()


def transfer_of(
    finish: Callable[[], T], pending: PendingDouble | None = None, nbytes: int = 4096
) -> tuple[Transfer[T], PendingDouble]:
    """Return a transfer in flight and the double that ends it."""
    pending = pending or PendingDouble()
    return Transfer(pending, finish, PLAN, TransferStats(nbytes, 1, False, time.monotonic())), pending


class NativeDouble:
    """The native functions behind the internal thread; keeps what was called."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.on_reap: Callable[[], None] = lambda: None
        self.on_stop: Callable[[], None] = lambda: None

    def start_completion_thread(self) -> None:
        """Note it."""
        self.calls.append("start")

    def stop_completion_thread(self) -> None:
        """Note it."""
        self.calls.append("stop")
        self.on_stop()

    def reap(self) -> None:
        """Note it, and do what the test wants done."""
        self.calls.append("reap")
        self.on_reap()


def used_background(native: NativeDouble, *, on: bool) -> Background:
    """Return a background that has seen a first transfer, its calls forgotten."""
    background = Background(native)
    background.begin_transfer()
    background.switch(on)
    native.calls.clear()
    return background
