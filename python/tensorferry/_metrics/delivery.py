"""From a log to its sinks, in order: at once where that costs nothing, else by a thread that runs as long as needed."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

from tensorferry._metrics.latest import MetricStep
from tensorferry._metrics.sending_out import SendingOut
from tensorferry._metrics.window import Window
from tensorferry._transfer.background import background

__all__ = ["Delivery"]

# A sink that takes longer is called by the thread from then on: at once, or when it did so three times in a while.
_SLOW_S, _VERY_SLOW_S, _STRIKES = 0.002, 0.02, 3
_FORGIVEN_PER_CALL = 0.01
_IDLE_S = 2.0  # then the thread ends
_SLICE_S = 0.1
_MOST_SPARES = 4


class Delivery:
    """The steps that are complete and not with their sinks yet.

    Steps whose values are all on the host are handed over by the caller of ``log``, as long as that is quick. Any
    thread may call.

    Parameters
    ----------
    out : SendingOut
        The sinks.
    depth : int
        How many steps may wait.
    on_full : {"wait", "drop", "grow"}
        What happens to one more.

    Attributes
    ----------
    dropped, delivered : int
        Steps so far.
    latest : MetricStep
        The newest one whose values have arrived.
    spares : list of dict
        Values of steps before it, whose memory may be used again where nobody else holds them.
    """

    def __init__(self, out: SendingOut, depth: int, on_full: str) -> None:
        self._out, self._depth, self._on_full = out, depth, on_full
        self._changed = threading.Condition()
        self._queue: deque[Window] = deque()
        self._sending: int | None = None  # the thread that is at it
        self._thread: threading.Thread | None = None
        self._strikes = 0.0
        self.dropped = self.delivered = 0
        self.latest = MetricStep(None, {})
        self.spares: list[dict[str, Any]] = []

    @property
    def waiting(self) -> int:
        """How many steps are not with their sinks yet."""
        return len(self._queue)

    @property
    def first_waiting(self) -> int | None:
        """The number of the oldest of them."""
        try:
            return self._queue[0].step
        except IndexError:
            return None

    def put(self, window: Window) -> None:
        """Take one more step, or drop it where ``on_full`` says so. Never waits for room: see `wait_for_room`."""
        if not (window.expected or self._queue or self._thread or self._strikes >= _STRIKES) and self._send_now(window):
            if self._queue:  # another thread has put one meanwhile, or the sink itself
                self._advance()
            return
        with self._changed:
            mine = self._sending == threading.get_ident()  # a sink that logs must not wait for itself
            if self._on_full == "drop" and len(self._queue) >= self._depth and not mine:
                self.dropped += 1
                return
            self._queue.append(window)
        if not mine:
            self._advance()

    def sends_here(self) -> bool:
        """Is the calling thread inside of a sink?"""
        with self._changed:
            return self._sending == threading.get_ident()

    def has_room(self) -> bool:
        """May one more step be put? Where ``on_full`` does not ask to wait, and for a sink that logs itself, always."""
        return self._on_full != "wait" or len(self._queue) < self._depth or self.sends_here()

    def wait_for_room(self, deadline: float | None = None) -> bool:
        """Wait until there is; False when the time is up. Holds no lock that a sink at work may need."""
        while not self.has_room():
            if self._thread is None and self._sending is None:
                self._wait_for_first(deadline)
            else:
                with self._changed:
                    if len(self._queue) >= self._depth:
                        self._changed.wait(_SLICE_S if deadline is None else min(_SLICE_S, _left(deadline) or 0.0))
            if _is_over(deadline):
                return self.has_room()
        return True

    def flush(self, deadline: float | None) -> bool:
        """Wait until every step is with its sinks; False when the time is up."""
        with self._changed:
            mine = self._sending == threading.get_ident()
        while not mine and (self._queue or self._sending is not None):
            if not self._queue:  # another thread is sending the last one
                with self._changed:
                    if self._sending is not None and not self._changed.wait(_left(deadline)) and _is_over(deadline):
                        return False
            elif self._uses_thread():
                self._start()
                with self._changed:
                    if self._queue and not self._changed.wait(_left(deadline)) and _is_over(deadline):
                        return False
            elif not self._wait_for_first(deadline):
                return False
        return True

    def newest(self) -> MetricStep:
        """Return the newest step whose values have arrived. Never waits."""
        with self._changed:
            done = [window for window in self._queue if window.done()]
            if done:
                self.latest = MetricStep(done[-1].step, dict(done[-1].values()))
            return self.latest

    def forget(self) -> None:
        """Begin anew in a forked child: what waits is the parent's."""
        self._changed = threading.Condition()
        self._queue, self._sending, self._thread = deque(), None, None
        self._out.forget()

    def _uses_thread(self) -> bool:
        with self._changed:
            expects = any(window.expects for window in self._queue)
            return background.on and (expects or self._strikes >= _STRIKES or self._thread is not None)

    def _advance(self) -> None:
        if self._uses_thread():
            self._start()
            return
        while self._queue and self._queue[0].done():
            if not self._send_first():
                return

    def _wait_for_first(self, deadline: float | None) -> bool:
        # In slices: a signal's handler runs in the main thread between two waits.
        soon = time.monotonic() + _SLICE_S
        limit = soon if deadline is None else min(soon, deadline)
        try:
            first = self._queue[0]
        except IndexError:
            return True
        if first.wait(limit) and not self._send_first():  # another thread is sending it
            with self._changed:
                self._changed.wait(_left(limit))
        return not (self._queue and _is_over(deadline))

    def _start(self) -> None:
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tensorferry metrics", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            while True:
                with self._changed:
                    if not self._queue and not self._changed.wait_for(lambda: self._queue, _IDLE_S):
                        self._thread = None
                        return
                    first = self._queue[0]
                first.wait(None)
                if not self._send_first():
                    time.sleep(_SLOW_S)
        except BaseException:  # such as a sink's sys.exit(): the next step starts another thread
            with self._changed:
                self._thread = None
            raise

    def _send_now(self, window: Window) -> bool:
        """Send a step past the empty queue; False when another thread is at one before it."""
        with self._changed:
            if self._sending is not None or self._queue:
                return False
            self._sending = threading.get_ident()
            values = self._arrived(window)
        self._send(window, values)
        return True

    def _send_first(self) -> bool:
        """Send the oldest step, whose values are there; False when another thread is at it."""
        with self._changed:
            if self._sending is not None or not self._queue:
                return False
            self._sending = threading.get_ident()
            window = self._queue[0]
            values = self._arrived(window)
        self._send(window, values)
        return True

    def _arrived(self, window: Window) -> dict[str, Any]:
        values = window.values()
        if self.latest.step is None or window.step >= self.latest.step:
            if self.latest.values is not values:
                self.spares.append(self.latest.values)
                del self.spares[:-_MOST_SPARES]
            self.latest = MetricStep(window.step, values)
        return values

    def _send(self, window: Window, values: dict[str, Any]) -> None:
        began = time.perf_counter()
        try:
            if window.error is not None:
                self._out.note_loss(window.step, window.error)
            if window.expected:
                self._out.check_arrived(window.step, values)
            self._out.send(window.step, values)
        finally:
            self._judge(time.perf_counter() - began)
            with self._changed:
                if self._queue and self._queue[0] is window:
                    self._queue.popleft()
                self.delivered += 1
                self._sending = None
                self._changed.notify_all()

    def _judge(self, seconds: float) -> None:
        if seconds < _SLOW_S:
            self._strikes = max(0.0, self._strikes - _FORGIVEN_PER_CALL)
        else:
            self._strikes += _STRIKES if seconds > _VERY_SLOW_S else 1


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline
