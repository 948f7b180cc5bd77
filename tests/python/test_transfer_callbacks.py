"""Callbacks and futures of a Transfer: who calls them, in which order, and what becomes of their errors."""

from __future__ import annotations

import concurrent.futures
import threading

import pytest

import tensorferry as ferry
from helpers.transfers import INTERNAL_THREAD, PendingDouble, transfer_of

LOST = ferry.DeviceError("device 0", "an earlier operation failed", "restart the process")


def test_callbacks_are_called_once_with_the_transfer_in_order_on_the_internal_thread():
    transfer, pending = transfer_of(lambda: "value")
    seen = []
    for i in range(20):
        transfer.add_done_callback(
            lambda given, i=i: seen.append((i, given is transfer, given.result(), threading.current_thread().name))
        )
    assert seen == []
    pending.finish()
    assert seen == [(i, True, "value", INTERNAL_THREAD) for i in range(20)]
    pending.call_what_waits()
    assert len(seen) == 20


def test_after_the_end_a_callback_is_called_at_once_in_the_callers_thread():
    transfer, pending = transfer_of(lambda: "value")
    pending.finish()
    seen = []
    transfer.add_done_callback(lambda given: seen.append((given.result(), threading.get_ident())))
    assert seen == [("value", threading.get_ident())]


def test_a_callback_that_comes_while_others_are_due_keeps_its_place():
    transfer, pending = transfer_of(lambda: "value")
    seen = []
    transfer.add_done_callback(lambda _: seen.append("first"))
    pending.finish(calls=False)
    assert transfer.result() == "value"
    transfer.add_done_callback(lambda _: seen.append("second"))
    assert seen == []
    pending.call_what_waits()
    assert seen == ["first", "second"]
    transfer.add_done_callback(lambda _: seen.append("third"))
    assert seen == ["first", "second", "third"]


def test_a_callback_that_comes_just_as_the_others_were_called_is_called_at_once():
    class EndsWhileAsked(PendingDouble):
        ends = False

        def done(self) -> bool:
            before = super().done()
            if self.ends:
                self.finish()
            return before

    pending = EndsWhileAsked()
    transfer, _ = transfer_of(lambda: "value", pending)
    seen = []
    transfer.add_done_callback(lambda _: seen.append("first"))
    pending.ends = True
    transfer.add_done_callback(lambda _: seen.append("second"))
    assert seen == ["first", "second"]


def test_a_callback_may_register_another_which_comes_last():
    transfer, pending = transfer_of(lambda: "value")
    seen = []
    transfer.add_done_callback(
        lambda given: (seen.append("a"), given.add_done_callback(lambda _: seen.append("nested")))
    )
    transfer.add_done_callback(lambda _: seen.append("b"))
    pending.finish()
    assert seen == ["a", "b", "nested"]


def test_callbacks_are_called_when_the_device_fails():
    transfer, pending = transfer_of(lambda: "value")
    seen = []
    transfer.add_done_callback(lambda given: seen.append(given.exception()))
    pending.fail(LOST)
    assert seen == [LOST]


def test_work_that_cannot_be_watched_has_failed():
    class Unwatchable(PendingDouble):
        def add_callback(self, call) -> None:
            raise LOST

    transfer, _ = transfer_of(lambda: "value", Unwatchable())
    seen = []
    transfer.add_done_callback(lambda given: seen.append(given.exception()))
    assert seen == [LOST]


@pytest.mark.parametrize("error", [ValueError("mine"), SystemExit(3)], ids=["ValueError", "SystemExit"])
def test_an_error_of_a_callback_is_logged_and_stops_no_other(caplog, error):
    def raises(_: object) -> None:
        raise error

    transfer, pending = transfer_of(lambda: "value")
    seen = []
    transfer.add_done_callback(raises)
    transfer.add_done_callback(lambda _: seen.append("called"))
    pending.finish()
    assert seen == ["called"]
    assert [(record.name, record.exc_info[1]) for record in caplog.records] == [("tensorferry", error)]
    assert transfer.result() == "value"


def test_an_error_of_a_callback_that_is_called_at_once_is_logged_too(caplog):
    transfer, pending = transfer_of(lambda: "value")
    pending.finish()
    transfer.add_done_callback(lambda _: 1 / 0)
    assert "division by zero" in caplog.text
    assert isinstance(caplog.records[0].exc_info[1], ZeroDivisionError)


def test_ctrl_c_in_a_callback_reaches_the_main_thread_after_the_others_were_called():
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    transfer, pending = transfer_of(lambda: "value")
    seen = []
    transfer.add_done_callback(interrupted)
    transfer.add_done_callback(lambda _: seen.append("called"))
    pending.finish(calls=False)
    with pytest.raises(KeyboardInterrupt):
        pending.call_what_waits()
    assert seen == ["called"]


def test_a_transfer_with_callbacks_lives_until_they_are_called():
    transfer, pending = transfer_of(lambda: "value")
    seen = []
    transfer.add_done_callback(lambda given: seen.append(given.result()))
    del transfer
    pending.finish()
    assert seen == ["value"]


@pytest.mark.parametrize("fn", [None, 3, "f"], ids=repr)
def test_what_cannot_be_called_is_refused(fn):
    transfer, _ = transfer_of(lambda: "value")
    with pytest.raises(ferry.ArgumentError, match="cannot be called"):
        transfer.add_done_callback(fn)


def test_a_future_completes_with_the_transfer():
    transfer, pending = transfer_of(lambda: [1])
    future = transfer.future()
    assert isinstance(future, concurrent.futures.Future)
    assert (future.running(), future.cancel(), future.done()) == (True, False, False)
    with pytest.raises(concurrent.futures.TimeoutError):
        future.result(0)
    pending.finish()
    assert future.result(0) is transfer.result(0)
    assert transfer.future().result(0) is transfer.result(0)


def test_futures_complete_together_with_others():
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        transfers = [transfer_of(lambda i=i: i) for i in range(4)]
        futures = [transfer.future() for transfer, _ in transfers]
        other = executor.submit(lambda: "other")
        for _, pending in reversed(transfers):
            pending.finish_soon(0.01)
        finished, unfinished = concurrent.futures.wait([*futures, other], timeout=10)
    assert (len(finished), unfinished) == (5, set())
    assert [future.result() for future in concurrent.futures.as_completed(futures, 0)] != []
    assert [future.result(0) for future in futures] == [0, 1, 2, 3]


@pytest.mark.parametrize("where", ["device", "last step"])
def test_a_future_gets_the_error(where):
    def finish() -> None:
        raise LOST

    transfer, pending = transfer_of(finish)
    future = transfer.future()
    if where == "device":
        pending.fail(LOST)
    else:
        pending.finish()
    assert future.exception(0) is LOST
    with pytest.raises(ferry.DeviceError) as caught:
        future.result(0)
    assert caught.value is transfer.exception() is LOST


def test_a_future_whose_last_step_is_interrupted_does_not_wait_for_ever():
    def interrupted() -> None:
        raise KeyboardInterrupt

    transfer, pending = transfer_of(interrupted)
    future = transfer.future()
    pending.finish(calls=False)
    with pytest.raises(KeyboardInterrupt):
        pending.call_what_waits()
    assert isinstance(future.exception(0), KeyboardInterrupt)
