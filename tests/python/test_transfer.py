"""What a Transfer answers: its result, its errors, its figures."""

from __future__ import annotations

import copy
import gc
import logging
import pickle
import re
import threading
import time
import weakref
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import tensorferry as ferry
from helpers.transfers import PLAN, PendingDouble, transfer_of
from tensorferry._transfer.stats import TransferStats
from tensorferry._transfer.transfer import Transfer

LOST = ferry.DeviceError("device 0", "an earlier operation failed", "restart the process")


def test_the_result_is_made_once_and_is_the_same_object_each_time():
    made = []

    def finish() -> np.ndarray:
        made.append(np.arange(3))
        return made[-1]

    transfer, pending = transfer_of(finish)
    assert (transfer.done(), transfer.running(), made) == (False, True, [])
    pending.finish()
    assert (transfer.done(), transfer.running(), made) == (True, False, [])
    first = transfer.result()
    assert first is transfer.result() is made[0]
    assert len(made) == 1
    assert transfer.exception() is None


def test_after_the_end_the_device_is_not_asked_again():
    transfer, pending = transfer_of(lambda: 1)
    pending.finish()
    assert transfer.done()
    asked = pending.asked
    assert (transfer.result(), transfer.done(), transfer.exception(0)) == (1, True, None)
    assert (pending.asked, pending.waits) == (asked, [])


def test_nothing_in_flight_can_be_cancelled():
    transfer, pending = transfer_of(lambda: "value")
    assert (transfer.cancel(), transfer.cancelled()) == (False, False)
    pending.finish()
    assert (transfer.cancel(), transfer.cancelled(), transfer.result()) == (False, False, "value")


@pytest.mark.parametrize("timeout", [0, -1, 0.02, np.float32(0.01)], ids=repr)
@pytest.mark.parametrize("name", ["result", "exception"])
def test_a_timeout_leaves_the_transfer_valid(name, timeout):
    transfer, pending = transfer_of(lambda: "value")
    start = time.monotonic()
    with pytest.raises(ferry.TransferTimeout, match=rf"^{name}\(timeout=.*4,096 bytes is not done yet; ask again"):
        getattr(transfer, name)(timeout=timeout)
    assert max(0, timeout) <= time.monotonic() - start < 30
    pending.finish()
    assert transfer.result(0) == "value"


def test_a_timeout_is_pythons_own_too_and_survives_pickling():
    transfer, _ = transfer_of(lambda: None)
    with pytest.raises(TimeoutError) as caught:
        transfer.result(0)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.given, error.why, error.instead) == caught.value.args
    assert (str(error), error.errno, error.filename) == (str(caught.value), None, None)


@pytest.mark.parametrize("timeout", ["1", b"1", float("nan"), [], 1j], ids=repr)
def test_what_is_no_number_of_seconds_is_refused(timeout):
    transfer, _ = transfer_of(lambda: None)
    with pytest.raises(ferry.ArgumentError, match="no number of seconds"):
        transfer.result(timeout)


@pytest.mark.parametrize("timeout", [None, float("inf"), 1e300, 3600], ids=repr)
def test_long_timeouts_wait_for_the_end(timeout):
    transfer, pending = transfer_of(lambda: "value")
    values: list[str] = []
    waiting = threading.Thread(target=lambda: values.append(transfer.result(timeout)))
    waiting.start()
    thread = pending.finish_soon()
    assert transfer.result(timeout) == "value"
    waiting.join(10)
    thread.join()
    assert values == ["value"]


def test_an_error_of_the_device_is_delivered_each_time_and_the_result_is_never_made():
    made = []
    transfer, pending = transfer_of(lambda: made.append(1))
    pending.fail(LOST)
    assert transfer.done()
    for _ in range(3):
        with pytest.raises(ferry.DeviceError) as caught:
            transfer.result()
        assert caught.value is LOST
        assert transfer.exception() is LOST
    assert made == []
    assert len(traceback_of(LOST)) <= 3  # it does not grow with each delivery


def traceback_of(error: BaseException) -> list[str]:
    names, trace = [], error.__traceback__
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    return names


def test_an_error_that_comes_while_somebody_waits_is_delivered():
    class FailingWait(PendingDouble):
        def wait(self, timeout: float | None) -> bool:
            raise LOST

    transfer, _ = transfer_of(lambda: None, FailingWait())
    assert transfer.exception() is LOST
    assert transfer.done()


def test_an_error_of_the_last_step_is_kept_and_its_frames_are_told_to_the_log(caplog):
    calls = []

    def cast_on_the_host() -> None:
        calls.append(1)
        raise ferry.PrecisionLossError("a tensor", "a value is lost", "choose a wider dtype")

    transfer, pending = transfer_of(cast_on_the_host)
    pending.finish()
    with caplog.at_level(logging.DEBUG, "tensorferry"), pytest.raises(ferry.PrecisionLossError) as caught:
        transfer.result()
    assert "in cast_on_the_host" in caplog.text
    assert transfer.exception() is caught.value
    with pytest.raises(ferry.PrecisionLossError) as again:
        transfer.result()
    assert again.value is caught.value
    assert traceback_of(again.value)[1:] == ["result"]
    assert calls == [1]


def test_a_completed_transfer_is_done_at_once():
    value = np.arange(3)
    transfer = Transfer.completed(value, PLAN)
    assert transfer.done()
    assert transfer.result(0) is value
    assert transfer.exception(0) is None
    assert transfer.plan is PLAN
    stats = transfer.stats
    assert (stats.nbytes, stats.driver_copies, stats.snapshot, stats.wait_s) == (0, 0, False, 0)
    assert stats.enqueued_at == stats.finished_at <= time.monotonic()
    assert transfer.future().result(0) is value
    given = TransferStats(8, 1, False, 1.0, 2.0)
    assert Transfer.completed(value, PLAN, given).stats == given
    begun = TransferStats(8, 1, False, time.monotonic())
    assert begun.enqueued_at <= Transfer.completed(value, PLAN, begun).stats.finished_at <= time.monotonic()


def test_figures_tell_when_it_ended_and_how_long_callers_waited():
    before = time.monotonic()
    transfer, pending = transfer_of(lambda: time.sleep(0.02))
    stats = transfer.stats
    assert (stats.nbytes, stats.driver_copies, stats.snapshot) == (4096, 1, False)
    assert (stats.finished_at, stats.wait_s) == (None, 0)
    assert before <= stats.enqueued_at <= time.monotonic()
    with pytest.raises(FrozenInstanceError):
        stats.nbytes = 1
    with pytest.raises(ferry.TransferTimeout):
        transfer.result(0.05)
    assert 0.05 <= transfer.stats.wait_s < 30
    pending.finish()
    assert transfer.done()
    finished_at = transfer.stats.finished_at
    assert stats.enqueued_at < finished_at <= time.monotonic()
    transfer.result()
    assert transfer.stats.finished_at == finished_at
    assert transfer.stats.wait_s >= 0.07
    waited = transfer.stats.wait_s
    transfer.result()
    assert transfer.stats.wait_s == waited


def test_repr_tells_the_state_and_never_blocks():
    def broken() -> None:
        raise ValueError

    transfer, pending = transfer_of(broken)
    assert repr(transfer) == "<Transfer of 4,096 bytes, in flight>"
    pending.finish()
    assert repr(transfer) == "<Transfer of 4,096 bytes, done>"
    assert isinstance(transfer.exception(), ValueError)
    assert repr(transfer) == "<Transfer of 4,096 bytes, failed with ValueError>"
    failed, pending = transfer_of(broken)
    pending.fail(LOST)
    assert repr(failed) == "<Transfer of 4,096 bytes, failed with DeviceError>"
    assert failed.exception() is LOST
    assert pending.waits == []


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps], ids=lambda call: call.__name__)
def test_pickling_and_copying_are_refused(duplicate):
    transfer, _ = transfer_of(lambda: None)
    with pytest.raises(ferry.ArgumentError, match=re.escape("pass on transfer.result()")) as caught:
        duplicate(transfer)
    assert isinstance(caught.value, TypeError)


def test_dropping_lets_go_of_everything_at_the_end_of_the_work():
    class Lease:
        pass

    def dropped(ends_first: bool) -> list[object]:
        lease = Lease()
        transfer, pending = transfer_of(lambda: lease)
        seen = [weakref.ref(lease), weakref.ref(transfer)]
        if ends_first:
            pending.finish()
            transfer.result()
        return [pending, *seen]

    gc.disable()  # by reference counts alone
    try:
        for ends_first in (True, False):
            pending, *seen = dropped(ends_first)
            assert [ref() for ref in seen] == [None, None]
            pending.finish()
    finally:
        gc.enable()


@pytest.mark.parametrize("fails_first", [True, False], ids=["fails before it is dropped", "fails afterwards"])
def test_an_error_that_nobody_asked_for_is_logged_once(caplog, fails_first):
    transfer, pending = transfer_of(lambda: None)
    if fails_first:
        pending.fail(LOST)
        assert transfer.done()
        assert caplog.records == []
    del transfer
    if not fails_first:
        assert caplog.records == []
        pending.fail(LOST)
    (record,) = caplog.records
    assert (record.name, record.levelno, record.exc_info[1]) == ("tensorferry", logging.ERROR, LOST)
    assert record.getMessage().startswith("a Transfer of 4,096 bytes was dropped and nobody asked for its error: ")


def test_an_error_of_the_last_step_that_nobody_asked_for_is_logged_once(caplog):
    def broken() -> None:
        raise ValueError("no such value")

    transfer, pending = transfer_of(broken)
    future = transfer.future()
    del transfer
    pending.finish()
    assert caplog.records == []
    del future
    (record,) = caplog.records
    assert "no such value" in record.getMessage()


def test_what_was_delivered_is_not_logged(caplog):
    transfer, pending = transfer_of(lambda: None)
    pending.fail(LOST)
    assert transfer.exception() is LOST
    del transfer
    transfer, pending = transfer_of(lambda: None)
    future = transfer.future()
    pending.fail(LOST)
    assert future.exception(0) is LOST
    del transfer, future
    transfer, pending = transfer_of(lambda: None)
    pending.fail(LOST)
    with pytest.raises(ferry.DeviceError):
        transfer.result()
    seen = weakref.ref(transfer)
    del transfer
    gc.collect()
    assert seen() is None
    transfer, pending = transfer_of(lambda: None)
    pending.finish()
    del transfer
    assert caplog.records == []
