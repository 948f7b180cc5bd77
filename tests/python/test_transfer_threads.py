"""Many threads on one Transfer, Ctrl-C while it is waited for, and the child of a fork."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import tensorferry as ferry
from helpers.subprocess import stdout_of
from helpers.transfers import PendingDouble, transfer_of

THREADS = 16
LOST = ferry.DeviceError("device 0", "an earlier operation failed", "restart the process")


def in_threads(task: Callable[[int], None], count: int = THREADS) -> list[threading.Thread]:
    threads = [threading.Thread(target=task, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    return threads


def join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def test_one_thread_makes_the_result_and_all_get_it():
    made: list[object] = []

    def finish() -> object:
        made.append(object())
        time.sleep(0.05)
        return made[-1]

    transfer, pending = transfer_of(finish)
    got: list[object] = []
    threads = in_threads(lambda _: got.append(transfer.result(20)))
    pending.finish()
    join(threads)
    assert len(made) == 1
    assert got == made * THREADS


def test_all_threads_get_the_error_of_the_device():
    transfer, pending = transfer_of(lambda: None)
    got: list[object] = []
    threads = in_threads(lambda _: got.append(transfer.exception(20)))
    pending.fail(LOST)
    join(threads)
    assert got == [LOST] * THREADS


def test_the_time_is_up_also_while_another_thread_makes_the_result():
    going, may_end = threading.Event(), threading.Event()

    def finish() -> str:
        going.set()
        may_end.wait(20)
        return "value"

    transfer, pending = transfer_of(finish)
    pending.finish()
    threads = in_threads(lambda _: transfer.result(), 1)
    going.wait(20)
    with pytest.raises(ferry.TransferTimeout):
        transfer.result(0.02)
    assert repr(transfer) == "<Transfer of 4,096 bytes, done>"
    may_end.set()
    assert transfer.result(20) == "value"
    join(threads)


def test_figures_add_what_all_threads_have_waited():
    transfer, pending = transfer_of(lambda: None)
    threads = in_threads(lambda _: transfer.result(), 4)
    thread = pending.finish_soon(0.1)
    join([*threads, thread])
    assert 0.2 < transfer.stats.wait_s < 4 * 10


def test_each_callback_is_called_once_however_threads_register_and_finish():
    for _ in range(50):
        transfer, pending = transfer_of(lambda: "value")
        counts = [0] * THREADS

        def register(i: int, transfer=transfer, counts=counts) -> None:
            def count(_: object) -> None:
                counts[i] += 1

            transfer.add_done_callback(count)

        threads = in_threads(register)
        pending.finish()
        join(threads)
        pending.call_what_waits()
        assert counts == [1] * THREADS


def test_threads_may_drop_transfers_while_they_end():
    for _ in range(20):
        transfers = [transfer_of(lambda: None) for _ in range(50)]
        pendings = [pending for _, pending in transfers]
        results: list[object] = []
        thread = threading.Thread(target=transfers.clear)
        thread.start()
        for pending in pendings:
            pending.finish()
            results.append(pending.done())
        thread.join()
        assert results == [True] * 50


@contextmanager
def on_alarm(handler: Callable[[int, object], None], after_s: float = 0) -> Iterator[None]:
    """Handle SIGALRM inside; it comes by itself where a time is given."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, after_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def ctrl_c(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


class DeafWait(PendingDouble):
    """Waits like native code: nothing but the end of the time wakes it, so a signal is seen afterwards.

    The first wait rings the alarm, however late it begins.
    """

    def wait(self, timeout: float | None) -> bool:
        """Wait with signals held back."""
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        if not self.waits:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
        try:
            return super().wait(timeout)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)


def test_ctrl_c_interrupts_the_wait_of_the_main_thread_and_leaves_it_valid():
    transfer, pending = transfer_of(lambda: "value", DeafWait())
    start = time.monotonic()
    with on_alarm(ctrl_c), pytest.raises(KeyboardInterrupt):
        transfer.result()
    assert time.monotonic() - start < 30
    assert pending.waits != []
    assert max(pending.waits) <= 0.1
    assert not transfer.done()
    pending.finish()
    assert transfer.result() == "value"


def test_other_threads_wait_in_one_piece():
    transfer, pending = transfer_of(lambda: "value")
    threads = in_threads(lambda _: transfer.result(), 1)
    while not pending.waits:
        time.sleep(0.001)
    pending.finish()
    join(threads)
    assert pending.waits == [None]


def test_ctrl_c_in_the_last_step_leaves_it_to_the_next_caller():
    calls = []

    def finish() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return "value"

    transfer, pending = transfer_of(finish)
    pending.finish()
    with pytest.raises(KeyboardInterrupt):
        transfer.result()
    assert transfer.result() == "value"
    assert len(calls) == 2


def test_a_signals_handler_may_ask_the_transfer_that_is_waited_for():
    transfer, pending = transfer_of(lambda: "value")
    seen = []

    def handler(_number: int, _frame: object) -> None:
        transfer.add_done_callback(lambda given: seen.append(given.result()))
        seen.append((transfer.done(), repr(transfer)))
        pending.finish()

    with on_alarm(handler, after_s=0.05):
        assert transfer.result(20) == "value"
    assert seen == [(False, "<Transfer of 4,096 bytes, in flight>"), "value"]


def test_a_forked_child_gets_a_clear_error_and_keeps_what_had_arrived():
    printed = stdout_of("""
        import os, sys, threading, time, weakref
        from helpers.transfers import transfer_of
        flying, pending = transfer_of(lambda: "value")
        arrived, other = transfer_of(lambda: "arrived")
        unfinished, third = transfer_of(lambda: "not made")
        other.finish(); third.finish()
        assert arrived.result() == "arrived" and unfinished.done()
        flying.add_done_callback(lambda _: print("called in", "parent" if os.getpid() == parent else "child"))
        parent = os.getpid()
        # The locks that another thread of the parent holds at the fork stay locked in the child.
        hold, held = threading.Event(), threading.Event()
        def holder():
            with flying._arrival._lock, unfinished._arrival._lock, unfinished._once._making:
                held.set(); hold.wait()
        thread = threading.Thread(target=holder); thread.start(); held.wait()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            for transfer in (flying, unfinished):
                try:
                    transfer.result()
                except RuntimeError as error:
                    print(type(error).__name__, "os.fork()" in str(error))
                assert transfer.done() and transfer.exception() is not None
            print(arrived.result(), repr(flying))
            flying.add_done_callback(lambda given: print("at once", type(given.exception()).__name__))
            dropped = weakref.ref(flying)
            del flying, unfinished, transfer
            print("dropped", dropped() is None)
            sys.stdout.flush()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        hold.set(); thread.join()
        pending.finish()
        print(flying.result(), unfinished.result())
    """)
    assert printed.splitlines() == [
        "DeviceError True",
        "DeviceError True",
        "arrived <Transfer of 4,096 bytes, failed with DeviceError>",
        "at once DeviceError",
        "dropped True",
        "called in parent",
        "value not made",
    ]


def test_a_child_that_drops_what_its_parent_waits_for_says_nothing():
    printed = stdout_of("""
        import os
        from helpers.transfers import transfer_of
        from tensorferry import DeviceError
        transfer, pending = transfer_of(lambda: "value")
        pending.fail(DeviceError("a", "b", "c"))
        child = os.fork()
        if child == 0:
            del transfer
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(transfer.exception())
    """)
    assert printed == "a: b; c"
