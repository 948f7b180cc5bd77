"""The public class: a conversion that is under way."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, Generic, NoReturn, SupportsIndex, TypeVar, cast

from tensorferry._errors import ArgumentError, TransferTimeout
from tensorferry._plan.plan import Plan
from tensorferry._transfer.arrival import Arrival
from tensorferry._transfer.awaiting import awaited
from tensorferry._transfer.background import background
from tensorferry._transfer.futures import future_of
from tensorferry._transfer.once import Failure, Once, Value
from tensorferry._transfer.pending import Pending
from tensorferry._transfer.stats import TransferStats

__all__ = ["Transfer"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

logger = logging.getLogger("tensorferry")


class Transfer(Generic[T_co]):
    """A conversion under way. The names are those of ``concurrent.futures.Future``; any thread may use it.

    Made by the asynchronous conversions, never by hand. The device works whether or not anybody looks; to drop a
    transfer is safe. What the device answers is never lost: an error is raised by ``result``, and logged by the logger
    "tensorferry" when the transfer is dropped before anybody asked. In a forked child, what had not arrived before the
    fork is a DeviceError. It cannot be pickled or copied.

    Examples
    --------
    >>> from tensorferry._plan.plan import Plan
    >>> from tensorferry._transfer.transfer import Transfer
    >>> transfer = Transfer.completed([1, 2], Plan("same object", "no tensor", (), 0, 0, (), True, True))
    >>> transfer.done(), transfer.result()
    (True, [1, 2])
    """

    __slots__ = ("__weakref__", "_arrival", "_delivered", "_known_stats", "_once", "_plan")

    def __init__(
        self, pending: Pending | None, finish: Callable[[], T_co] | None, plan: Plan, stats: TransferStats
    ) -> None:
        # `finish` makes the result when the device is done, in the first thread that needs it. It runs once, or again
        # after what is no Exception has ended it (Ctrl-C).
        self._delivered = False
        self._arrival = Arrival(pending)
        self._once: Once[T_co] = Once(finish)
        self._plan = plan
        self._known_stats = stats

    @staticmethod
    def completed(value: T, plan: Plan, stats: TransferStats | None = None) -> Transfer[T]:
        """Return a transfer that is done: for host memory, and for devices that were waited for."""
        now = time.monotonic()
        known = stats or TransferStats(0, 0, False, now)
        if known.finished_at is None:
            known = replace(known, finished_at=now)
        transfer: Transfer[T] = Transfer(None, None, plan, known)
        transfer._once = Once(None, Value(value))
        return transfer

    @property
    def plan(self) -> Plan:
        """What was done, and why."""
        return self._plan

    @property
    def stats(self) -> TransferStats:
        """Its figures of this moment; asks nobody."""
        finished_at = self._arrival.finished_at
        return replace(
            self._known_stats,
            finished_at=self._known_stats.finished_at if finished_at is None else finished_at,
            wait_s=self._arrival.wait_s,
        )

    def done(self) -> bool:
        """Is the device done, or has it failed? Never blocks and never raises."""
        done = self._is_settled() or self._arrival.ask()
        background.reap_when_off()
        return done

    def running(self) -> bool:
        """Is the device still at it? Never blocks."""
        return not self.done()

    def cancel(self) -> bool:
        """Return False: what a device was given cannot be taken back."""
        return False

    def cancelled(self) -> bool:
        """Return False: see ``cancel``."""
        return False

    def result(self, timeout: float | None = None) -> T_co:
        """Wait for the result, without the GIL, and return it: the same object each time.

        Where the last step is done on the host (a cast, a copy into given memory), the first caller does it.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most; None for as long as it takes. It is not looked at during the step on the host.

        Raises
        ------
        TransferTimeout
            When the time is up. The transfer goes on and stays valid, as it does after Ctrl-C.
        ArgumentError
            For a timeout that is no number.
        Exception
            What the device answered, or the step on the host raised: the same error each time.
        """
        kept = self._waited(timeout, "result")
        if isinstance(kept, Value):
            return kept.value
        self._delivered = True
        try:
            raise kept.error.with_traceback(None)
        finally:
            del self, kept  # the error holds this frame: no cycle

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Wait as ``result`` does and return the error, or None where there is a result.

        Raises
        ------
        TransferTimeout
            When the time is up. The transfer goes on and stays valid.
        ArgumentError
            For a timeout that is no number.
        """
        kept = self._waited(timeout, "exception")
        self._delivered = True
        return kept.error if isinstance(kept, Failure) else None

    def add_done_callback(self, fn: Callable[[Transfer[T_co]], object], /) -> None:
        """Call ``fn(transfer)`` once when the device is done or has failed.

        It is called by the internal thread, in the order of registration: be short there. When the transfer is done
        already and nothing is registered before it, it is called at once, in this thread. Without the internal thread
        (``options(background=False)``), by the next call that asks for any transfer. What it raises is logged by the
        logger "tensorferry" and goes no further. None is called once the interpreter is about to end.

        Parameters
        ----------
        fn : callable
            Takes the transfer, whose ``result`` no longer waits for the device.

        Raises
        ------
        ArgumentError
            For what cannot be called.
        """
        if not callable(fn):
            raise ArgumentError(
                f"add_done_callback({fn!r})", "that cannot be called", "pass a function of one argument, the transfer"
            )
        self._arrival.call_when_done(partial(_call, fn, self))

    def future(self) -> Future[T_co]:
        """Return a new ``concurrent.futures.Future`` that completes with this transfer, for ``as_completed`` and such.

        The internal thread completes it, and makes the result then where nobody has done so.
        """
        return future_of(self)

    def __await__(self) -> Generator[Any, None, T_co]:
        """Wait under asyncio; the loop goes on. Each await stands for itself: to cancel one leaves the transfer valid.

        Large results whose last step is done on the host are finished in the loop's default executor.

        Raises
        ------
        ArgumentError
            Where no asyncio loop runs; under trio, write ``await trio.to_thread.run_sync(transfer.result)``.
        """
        return awaited(self)

    def __repr__(self) -> str:
        """Size and state; never blocks."""
        if self._once.kept is None and not self._arrival.ask():
            state = "in flight"
        else:
            error = self._once.kept.error if isinstance(self._once.kept, Failure) else self._arrival.error
            state = "done" if error is None else f"failed with {type(error).__name__}"
        return f"<Transfer of {self._known_stats.nbytes:,} bytes, {state}>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse: what is in flight belongs to this process and has one owner of its result."""
        raise ArgumentError(
            "a Transfer to be pickled or copied",
            "it stands for work of a device in this process",
            "pass on transfer.result()",
        )

    def __del__(self) -> None:
        """Leave what is in flight alone; see that its error is logged."""
        arrival = getattr(self, "_arrival", None)  # __init__ may have failed
        if arrival is None or self._delivered or isinstance(self._once.kept, Value):
            return
        error = None if self._once.kept is None else self._once.kept.error
        arrival.report(f"a Transfer of {self._known_stats.nbytes:,} bytes", error)

    def _is_settled(self) -> bool:
        return self._once.kept is not None

    def _settle(self, deadline: float | None) -> bool:
        # Until `deadline`: wait for the device, then for whoever makes the result.
        if self._is_settled():
            return True
        if not self._arrival.wait(deadline):
            return False
        if self._arrival.error is None:
            return self._once.make(deadline)
        self._once.fail(self._arrival.error)
        return True

    def _waited(self, timeout: float | None, name: str) -> Value[T_co] | Failure:
        if self._once.kept is not None:
            return self._once.kept
        start = time.monotonic()
        deadline = _deadline(start, timeout, name)
        try:
            settled = self._settle(deadline)
        finally:
            self._arrival.add_wait(time.monotonic() - start)
        background.reap_when_off()
        if not settled:
            raise TransferTimeout(
                f"{name}(timeout={timeout})",
                f"the transfer of {self._known_stats.nbytes:,} bytes is not done yet",
                "ask again: it goes on and stays valid",
            )
        return self._outcome()

    def _outcome(self) -> Value[T_co] | Failure:
        self._settle(None)
        return cast("Value[T_co] | Failure", self._once.kept)

    def _note_delivery(self) -> None:
        self._delivered = True


def _call(fn: Callable[[Transfer[T]], object], transfer: Transfer[T]) -> None:
    if background.over:
        return
    try:
        fn(transfer)
    except BaseException as error:
        # Ctrl-C and sys.exit() belong to the main thread, wherever they meet it.
        if not isinstance(error, Exception) and threading.current_thread() is threading.main_thread():
            raise
        logger.error("the callback %r of %r failed: %s", fn, transfer, error, exc_info=error)


def _deadline(start: float, timeout: float | None, name: str) -> float | None:
    if timeout is None:
        return None
    try:
        seconds = math.nan if isinstance(timeout, (str, bytes)) else float(timeout)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if math.isnan(seconds):
        raise ArgumentError(f"{name}(timeout={timeout!r})", "that is no number of seconds", "pass a float, or None")
    return None if seconds >= threading.TIMEOUT_MAX else start + seconds
