"""``Transfer`` on a device: many at once, waiting, callbacks, asyncio, failures of the device."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from concurrent.futures import as_completed
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import STAGING_NBYTES, allow_abandoned, fresh, settle, until
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import DeviceArray, TableArray

ILLEGAL_ADDRESS = 700
MOST_IN_FLIGHT = 256


def pending() -> Any:
    """An array whose values are still to be written."""
    made = TableArray(np.zeros(4, np.float32))
    made.write_later([1, 2, 3, 4])
    return made


def after_a_fault(fake: FakeCuda, x: Any) -> Any:
    """A transfer whose device meets an illegal address."""
    allow_abandoned(1)
    with fake.held():
        transfer = ferry.to_numpy_async(x)
        fake.fault("execution", ILLEGAL_ADDRESS, 0)
    return transfer


def test_thousands_in_flight_stay_within_bounds(any_schedule: FakeCuda):
    fake = any_schedule
    sources = [TableArray(np.full(8, i, np.int32)) for i in range(20)]
    transfers, most_events, most_registrations, most_memory = [], 0, 0, 0
    for i in range(3000):
        transfers.append(ferry.to_numpy_async(sources[i % 20]))
        if i % 100 == 0:
            most_events = max(most_events, fake.live("events"))
            most_registrations = max(most_registrations, fake.live("host_registrations"))
            most_memory = max(most_memory, fake.live("device_bytes"))
    for i, transfer in enumerate(transfers):
        assert transfer.result().tolist() == [i % 20] * 8
    assert most_memory <= STAGING_NBYTES + 20 * 32
    assert most_registrations <= 4
    assert most_events <= 3000 + 600  # one for each transfer that nobody has asked yet, and what is idle


def test_a_full_queue_makes_the_caller_wait_and_nobody_else(fake: FakeCuda):
    x = TableArray(np.arange(8))
    ferry.to_numpy_async(x).result()
    made: list[Any] = []

    def produce() -> None:
        for _ in range(2 * MOST_IN_FLIGHT):
            made.append(ferry.to_numpy_async(x))

    with fake.held():
        thread = threading.Thread(target=produce)
        thread.start()
        assert until(lambda: len(made) == MOST_IN_FLIGHT)
        time.sleep(0.05)
        assert len(made) == MOST_IN_FLIGHT
    thread.join(60)
    assert len(made) == 2 * MOST_IN_FLIGHT
    assert all(transfer.result().tolist() == list(range(8)) for transfer in made)


def test_dropped_transfers_give_back_what_they_held(any_schedule: FakeCuda):
    fake = any_schedule
    before = fake.live("device_bytes")
    for i in range(200):
        ferry.to_numpy_async([TableArray(np.full(16, i)), TableArray(np.zeros(3))])
    gc.collect()
    assert until(lambda: settle(fake) is None and fake.live("device_bytes") - before in (0, STAGING_NBYTES))


def test_the_result_is_the_same_object_each_time_and_for_every_thread(any_schedule: FakeCuda):
    x = pending()
    transfer = ferry.to_numpy_async({"x": x})
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(transfer.result())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found[0]["x"].tolist() == [1, 2, 3, 4]
    assert all(result is found[0] for result in [*found, transfer.result()])
    assert not found[0]["x"].flags.writeable


def test_a_result_outlives_its_transfer_and_the_next_ones(any_schedule: FakeCuda):
    kept = []
    for i in range(50):
        x = TableArray(np.zeros(10, np.int32))
        x.write_later(np.full(10, i))
        kept.append(ferry.to_numpy_async(x).result())
    assert [array.tolist() for array in kept] == [[i] * 10 for i in range(50)]


def test_a_timeout_leaves_the_transfer_valid(fake: FakeCuda):
    x = pending()
    with fake.held():
        transfer = ferry.to_numpy_async(x)
        started = time.monotonic()
        with pytest.raises(ferry.TransferTimeout, match="16 bytes"):
            transfer.result(timeout=0.05)
        with pytest.raises(TimeoutError):
            transfer.exception(timeout=0)
        assert time.monotonic() - started < 30
        assert transfer.running()
        assert repr(transfer) == "<Transfer of 16 bytes, in flight>"
    assert transfer.result(timeout=30).tolist() == [1, 2, 3, 4]
    assert transfer.exception() is None
    assert transfer.done()
    assert transfer.stats.wait_s >= 0.05


@pytest.mark.parametrize("background", [True, False], ids=["with the thread", "without it"])
def test_callbacks_come_once_and_in_order(any_schedule: FakeCuda, background: bool):
    x = pending()
    with ferry.options(background=background):
        called: list[Any] = []
        with any_schedule.held():
            transfers = [ferry.to_numpy_async(x) for _ in range(5)]
            for number, transfer in enumerate(transfers):
                transfer.add_done_callback(lambda t, n=number: called.append((n, t.result().tolist())))
                transfer.add_done_callback(lambda t, n=number: called.append((n, "second")))
            assert called == []
        transfers[-1].result()
        assert until(lambda: all(t.done() for t in transfers) and len(called) == 10)
        for number in range(5):
            assert [what for n, what in called if n == number] == [[1, 2, 3, 4], "second"]


def test_to_python_the_internal_thread_is_one_thread(fake: FakeCuda):
    own, seen = threading.local(), []

    def callback(_: object) -> None:
        own.calls = getattr(own, "calls", 0) + 1
        seen.append((own.calls, threading.current_thread()))

    for number in range(5):
        with fake.held():
            transfer = ferry.to_numpy_async(pending())
            transfer.add_done_callback(callback)
        assert until(lambda number=number: len(seen) > number)
    assert [calls for calls, _ in seen] == [1, 2, 3, 4, 5]
    assert len({thread for _, thread in seen}) == 1
    assert seen[0][1] is not threading.current_thread()


def test_futures_complete(any_schedule: FakeCuda):
    x = pending()
    transfers = [ferry.to_numpy_async(x) for _ in range(4)]
    futures = [transfer.future() for transfer in transfers]
    assert [future.result().tolist() for future in as_completed(futures, timeout=30)] == [[1, 2, 3, 4]] * 4


def test_await_leaves_the_loop_running(fake: FakeCuda):
    x = pending()

    async def both() -> tuple[Any, int]:
        ticks = 0
        transfer = ferry.to_numpy_async(x)

        async def wait() -> Any:
            return await transfer

        waiting = asyncio.ensure_future(wait())
        while not waiting.done():
            ticks += 1
            if ticks == 20:
                fake.library.fake_hold(0)
            await asyncio.sleep(0.001)
        return waiting.result(), ticks

    fake.library.fake_hold(1)
    try:
        result, ticks = asyncio.run(asyncio.wait_for(both(), 30))
    finally:
        fake.library.fake_hold(0)
    assert result.tolist() == [1, 2, 3, 4]
    assert ticks >= 20


def test_host_tensors_of_a_nest_are_snapshots(any_schedule: FakeCuda):
    x = pending()
    host = np.arange(3)
    transfer = ferry.to_numpy_async({"x": x, "host": host, "copied": np.ascontiguousarray(host[::-1])})
    assert transfer.result()["x"].tolist() == [1, 2, 3, 4]
    assert transfer.result()["copied"].tolist() == [2, 1, 0]


def test_a_failure_of_the_device_is_raised_each_time(any_schedule: FakeCuda):
    x = pending()
    transfer = after_a_fault(any_schedule, x)
    with pytest.raises(ferry.DeviceError, match="700") as first:
        transfer.result()
    with pytest.raises(ferry.DeviceError) as again:
        transfer.result()
    assert again.value is first.value
    assert transfer.exception() is first.value
    assert transfer.done()
    assert repr(transfer) == "<Transfer of 16 bytes, failed with DeviceError>"
    assert transfer.future().exception() is first.value


def test_callbacks_and_await_learn_of_a_failure(fake: FakeCuda):
    x = pending()
    called: list[Any] = []
    transfer = after_a_fault(fake, x)
    transfer.add_done_callback(lambda t: called.append(t.exception()))
    assert until(lambda: len(called) == 1)
    assert isinstance(called[0], ferry.DeviceError)

    async def wait() -> Any:
        return await transfer

    with pytest.raises(ferry.DeviceError):
        asyncio.run(wait())


def test_the_error_of_a_dropped_transfer_is_logged(fake: FakeCuda, caplog: pytest.LogCaptureFixture):
    x = pending()
    with caplog.at_level(logging.ERROR, logger="tensorferry"):
        after_a_fault(fake, x)
        gc.collect()
        assert until(lambda: "nobody asked for its error" in caplog.text)


def test_to_numpy_raises_what_the_device_met_and_names_it(any_schedule: FakeCuda, kind: Any):
    x = kind(np.ones(4))
    allow_abandoned(1)
    any_schedule.fault("execution", ILLEGAL_ADDRESS, 0)
    x.write_later(np.zeros(4))
    with pytest.raises(ferry.DeviceError, match="700"):
        ferry.to_numpy(x)


@pytest.mark.parametrize("call", ["to_numpy", "to_numpy_async"])
def test_after_a_reset_of_the_device_everything_works_again(any_schedule: FakeCuda, call: str):
    x = pending()
    with pytest.raises(ferry.DeviceError):
        after_a_fault(any_schedule, x).result()
    with pytest.raises(ferry.DeviceError):
        ferry.to_numpy(x)
    fresh()
    y = TableArray(np.arange(5))
    array = ferry.to_numpy(y) if call == "to_numpy" else ferry.to_numpy_async(y).result()
    assert array.tolist() == [0, 1, 2, 3, 4]


def test_a_result_from_before_a_reset_stays(any_schedule: FakeCuda):
    x = pending()
    kept, kept_of_transfer = ferry.to_numpy(x), ferry.to_numpy_async([x]).result()[0]
    fresh()
    for value in range(20):
        ferry.to_numpy_async(TableArray(np.full(4, value, np.float32))).result()
    assert kept.tolist() == kept_of_transfer.tolist() == [1, 2, 3, 4]


def test_a_transfer_across_a_reset_fails_clearly(fake: FakeCuda):
    transfer = ferry.to_numpy_async(DeviceArray(np.arange(4)))
    assert transfer.result().tolist() == [0, 1, 2, 3]  # of a foreign producer: was waited for
    with ferry.options(background=False):
        allow_abandoned(1)
        transfer = ferry.to_numpy_async(TableArray(np.arange(4)))
        fresh()
        with pytest.raises(ferry.DeviceError, match="reset"):
            transfer.result()
