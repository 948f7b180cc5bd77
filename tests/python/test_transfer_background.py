"""The internal thread: when it is started and stopped, and who does its work where it is switched off."""

from __future__ import annotations

import threading

import pytest

from helpers.subprocess import stdout_of
from helpers.transfers import PLAN, NativeDouble, transfer_of, used_background
from tensorferry._transfer import arrival, awaiting
from tensorferry._transfer import transfer as transfer_module
from tensorferry._transfer.background import Background
from tensorferry._transfer.transfer import Transfer


def test_the_thread_starts_with_the_first_transfer_and_only_once():
    native = NativeDouble()
    made = Background(native)
    assert native.calls == []
    for _ in range(3):
        made.begin_transfer()
    assert native.calls == ["start"]


def test_importing_and_options_before_the_first_transfer_start_nothing():
    native = NativeDouble()
    made = Background(native)
    assert made.switch(False) is True
    assert made.switch(True) is False
    made.reap_when_off()
    assert native.calls == []
    made.switch(False)
    made.begin_transfer()
    assert native.calls == []  # what was set before the first use holds


def test_switching_off_stops_it_at_once_and_reaps_and_switching_on_starts_it():
    native = NativeDouble()
    made = used_background(native, on=True)
    assert made.switch(False) is True
    assert native.calls == ["stop", "reap"]
    made.begin_transfer()
    assert native.calls == ["stop", "reap"]
    assert made.switch(True) is False
    assert native.calls == ["stop", "reap", "start"]


def test_it_is_stopped_for_good_when_the_interpreter_ends():
    native = NativeDouble()
    made = used_background(native, on=True)
    made.close()
    made.begin_transfer()
    made.switch(True)
    made.close()
    assert native.calls == ["stop"]
    assert made.over


def test_a_callback_may_begin_a_transfer_while_the_thread_is_being_stopped():
    native = NativeDouble()
    made = used_background(native, on=True)

    def callback_on_the_internal_thread() -> None:
        thread = threading.Thread(target=made.begin_transfer)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()

    native.on_stop = callback_on_the_internal_thread
    made.close()
    assert native.calls == ["stop"]


def test_switched_on_again_while_it_is_being_stopped_it_runs_in_the_end():
    native = NativeDouble()
    made = used_background(native, on=True)
    native.on_stop = lambda: made.switch(True) and None
    made.switch(False)
    # The first start may find the old thread still there.
    assert native.calls == ["stop", "start", "start"]
    assert made.on


def test_one_call_reaps_at_a_time():
    native = NativeDouble()
    made = used_background(native, on=False)
    native.on_reap = made.reap_when_off
    made.reap_when_off()
    assert native.calls == ["reap"]


@pytest.fixture
def switched_off(monkeypatch: pytest.MonkeyPatch) -> NativeDouble:
    native = NativeDouble()
    made = used_background(native, on=False)
    for module in (arrival, awaiting, transfer_module):
        monkeypatch.setattr(module, "background", made)
    return native


@pytest.mark.parametrize("ask", ["done", "result", "exception"])
def test_without_the_thread_the_next_call_for_any_transfer_calls_what_waits(switched_off, ask):
    first, pending = transfer_of(lambda: "value")
    second, other = transfer_of(lambda: "other")
    switched_off.on_reap = pending.call_what_waits
    seen = []
    first.add_done_callback(lambda given: seen.append((given.result(), threading.get_ident())))
    pending.finish(calls=False)
    other.finish(calls=False)
    assert seen == []
    getattr(second, ask)()
    assert seen == [("value", threading.get_ident())]


def test_without_the_thread_a_future_completes_when_the_result_is_asked_for(switched_off):
    transfer, pending = transfer_of(lambda: "value")
    switched_off.on_reap = pending.call_what_waits
    future = transfer.future()
    pending.finish(calls=False)
    assert not future.done()
    assert transfer.result() == future.result(0) == "value"


def test_no_callback_is_called_once_the_interpreter_is_about_to_end(monkeypatch):
    made = used_background(NativeDouble(), on=True)
    for module in (arrival, awaiting, transfer_module):
        monkeypatch.setattr(module, "background", made)
    seen: list[object] = []
    transfer, pending = transfer_of(lambda: "value")
    transfer.add_done_callback(seen.append)
    other, other_pending = transfer_of(lambda: "value")
    future = other.future()
    future.add_done_callback(seen.append)
    made.close()
    other_pending.finish()
    pending.finish()
    transfer.add_done_callback(seen.append)
    Transfer.completed(1, PLAN).add_done_callback(seen.append)
    assert seen == []
    assert transfer.result(0) == "value"


PROGRAM = """
    import atexit, sys, threading, time
    from tensorferry._native import core
    from helpers.transfers import NativeDouble, transfer_of
    native = NativeDouble()
    for name in ("start_completion_thread", "stop_completion_thread", "reap"):
        setattr(core, name, getattr(native, name))
    atexit.register(lambda: print("after", native.calls, transfer.result(), pending.waits))
    from tensorferry._transfer.background import background
    background.begin_transfer()
    transfer, pending = transfer_of(lambda: "value")
"""


def test_at_exit_the_thread_is_stopped_after_the_users_own_hooks_and_results_stay():
    printed = stdout_of(
        PROGRAM
        + """
    transfer.add_done_callback(lambda _: print("called"))
    atexit.register(lambda: print("before", native.calls))
    native.on_stop = lambda: print("stopping")
    atexit.register(pending.finish)
    """
    )
    assert printed.splitlines() == ["called", "before ['start']", "stopping", "after ['start', 'stop'] value []"]


def test_transfers_in_flight_at_exit_are_left_alone():
    printed = stdout_of(
        PROGRAM
        + """
    kept = [transfer_of(lambda: None) for _ in range(10)]
    for one, _ in kept:
        one.add_done_callback(lambda _: print("never"))
    pending.finish()
    def late():
        for _, one in kept:
            one.finish()
    native.on_stop = late
    """
    )
    assert printed == "after ['start', 'stop'] value []"


def test_a_daemon_thread_that_waits_at_exit_does_not_hold_the_process():
    printed = stdout_of(
        PROGRAM
        + """
    other, never = transfer_of(lambda: None)
    threading.Thread(target=other.result, daemon=True).start()
    while not never.waits:
        time.sleep(0.001)
    pending.finish()
    """
    )
    assert printed == "after ['start', 'stop'] value []"


def test_a_child_of_a_fork_starts_without_the_thread():
    printed = stdout_of(
        PROGRAM
        + """
    import os
    pending.finish()
    with background._lock:
        child = os.fork()
    if child == 0:
        background.begin_transfer()
        print(native.calls, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    """
    )
    assert printed.splitlines() == ["['start', 'start']", "after ['start', 'stop'] value []"]


def test_the_native_thread_runs_when_it_should():
    printed = stdout_of("""
        import tensorferry as ferry
        from tensorferry._native import core
        from tensorferry._transfer.background import background
        runs = [core.completion_thread_runs()]
        background.begin_transfer(); runs.append(core.completion_thread_runs())
        with ferry.options(background=False):
            background.begin_transfer(); runs.append(core.completion_thread_runs())
        runs.append(core.completion_thread_runs())
        print(runs)
        import atexit
        atexit._run_exitfuncs()
        print(core.completion_thread_runs())
    """)
    assert printed.splitlines() == ["[False, True, False, True]", "False"]
