"""Streams of the fake driver: barriers of the legacy stream, special handles, queries, full queues."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from helpers.fake_cuda import LEGACY, PER_THREAD, FakeCuda
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import NOT_READY, Driver

Pin = Callable[[int], np.ndarray]
INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE = 1, 201, 400


def value_seen(driver: Driver, pinned: Pin, *, writer: int, reader: int) -> int:
    """A kernel writes 1 in one stream, then a copy reads in another, nobody waits. The value read: 0 is too early."""
    array = DeviceArray(np.zeros(1, np.uint8))
    host = pinned(1)
    event = driver.event()
    array.write_later(1, stream=writer)
    driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 1, reader)
    driver("cuEventRecord", event, reader)
    driver("cuEventSynchronize", event)
    driver("cuCtxSynchronize")
    return int(host[0])


def test_blocking_streams_and_the_legacy_stream_wait_for_each_other(fake: FakeCuda, driver: Driver, pinned: Pin):
    blocking = driver.stream(blocking=True)
    assert value_seen(driver, pinned, writer=LEGACY, reader=blocking) == 1
    assert value_seen(driver, pinned, writer=blocking, reader=LEGACY) == 1
    assert value_seen(driver, pinned, writer=LEGACY, reader=PER_THREAD) == 1
    assert value_seen(driver, pinned, writer=PER_THREAD, reader=LEGACY) == 1


def test_non_blocking_streams_and_the_legacy_stream_do_not(fake: FakeCuda, driver: Driver, pinned: Pin):
    free = driver.stream()
    assert value_seen(driver, pinned, writer=LEGACY, reader=free) == 0
    assert value_seen(driver, pinned, writer=free, reader=LEGACY) == 0


def test_two_blocking_streams_do_not_wait_for_each_other(fake: FakeCuda, driver: Driver, pinned: Pin):
    one, other = driver.stream(blocking=True), driver.stream(blocking=True)
    assert value_seen(driver, pinned, writer=one, reader=other) == 0


def test_the_per_thread_stream_is_another_one_in_each_thread(fake: FakeCuda, driver: Driver, pinned: Pin):
    array = DeviceArray(np.zeros(1, np.uint8))

    def write_in_another_thread() -> None:
        fake.use_device(0)
        array.write_later(1, stream=PER_THREAD)

    thread = threading.Thread(target=write_in_another_thread)
    thread.start()
    thread.join(timeout=60)
    host, event = pinned(1), driver.event()
    driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 1, PER_THREAD)
    driver("cuEventRecord", event, PER_THREAD)
    driver("cuEventSynchronize", event)
    assert host[0] == 0
    fake.drain()


def test_null_is_the_legacy_stream_or_the_threads_own_as_the_symbol_was_asked_for(fake: FakeCuda, driver: Driver):
    own = Driver(flags=2)
    array = DeviceArray(np.zeros(1, np.uint8))
    array.write_later(1, stream=LEGACY)
    assert driver.code("cuStreamQuery", 0) == NOT_READY
    fake.drain()
    assert own.code("cuStreamQuery", 0) == 0
    assert own.find("cuStreamQuery", 7000, 2)[1] != own.find("cuStreamQuery", 7000, 1)[1]
    assert fake.violations() == ["a NULL stream handle was passed"]
    fake.clear_violations()


def test_special_handles_belong_to_the_current_context(fake: FakeCuda):
    fake.preset("two_devices")
    driver = Driver()
    first, second = driver.context(0), driver.context(1)
    assert driver.get_handle("cuStreamGetCtx", LEGACY) == second
    driver("cuCtxPushCurrent", first)
    assert driver.get_handle("cuStreamGetCtx", LEGACY) == first
    driver("cuCtxPopCurrent", None)
    driver("cuCtxSetCurrent", None)
    assert driver.code_of_get("cuStreamGetCtx", LEGACY) == INVALID_CONTEXT


def test_a_query_puts_off_a_few_times_and_then_work_gets_done(fake: FakeCuda, driver: Driver):
    array = DeviceArray(np.zeros(1, np.uint8))
    stream, event = driver.stream(), driver.event()
    array.write_later(1, stream=stream)
    driver("cuEventRecord", event, stream)
    answers = [driver.is_done(event) for _ in range(6)]
    assert answers == [False, False, False, True, True, True]
    assert array.peek().tolist() == [1]
    assert fake.live("queries") == 6


@pytest.mark.parametrize("kind", ["lazy", "shuffled", "threaded"])
def test_nothing_is_done_while_the_device_is_held(fake: FakeCuda, driver: Driver, kind: str):
    fake.schedule(kind, 3)
    array = DeviceArray(np.zeros(1, np.uint8))
    stream, event = driver.stream(), driver.event()
    done: list[float] = []

    def wait() -> None:
        driver("cuEventSynchronize", event)
        done.append(time.monotonic())

    with fake.held():
        array.write_later(1, stream=stream)
        driver("cuEventRecord", event, stream)
        waiter = threading.Thread(target=wait)
        waiter.start()
        assert not any(driver.is_done(event) for _ in range(20))
        time.sleep(0.05)
        released = time.monotonic()
    waiter.join(timeout=60)
    assert done[0] >= released
    assert array.peek().tolist() == [1]


def test_a_full_queue_makes_the_submit_block(fake: FakeCuda, driver: Driver):
    fake.preset("short_queue")
    array = DeviceArray(np.zeros(1, np.uint8))
    stream = driver.stream()
    for value in range(1, 5):
        array.write_later(value, stream=stream)
    assert (fake.live("blocked_submits"), array.peek()[0]) == (0, 0)
    array.write_later(5, stream=stream)
    assert (fake.live("blocked_submits"), array.peek()[0]) == (1, 1)
    fake.drain()


def test_a_destroyed_stream_finishes_its_work_and_its_handle_is_dead(fake: FakeCuda, driver: Driver):
    array = DeviceArray(np.zeros(1, np.uint8))
    stream = driver.stream()
    array.write_later(1, stream=stream)
    driver("cuStreamDestroy", stream)
    assert fake.live("streams") == 0
    fake.drain()
    assert array.peek().tolist() == [1]
    assert driver.code("cuStreamQuery", stream) == INVALID_HANDLE
    assert fake.violations() == ["stream#1 was used after it was destroyed"]
    fake.clear_violations()


def test_addresses_of_destroyed_streams_recur_when_told_to(fake: FakeCuda, driver: Driver):
    kept, first = driver.stream(), driver.stream()
    driver("cuStreamDestroy", first)
    assert driver.stream() not in (kept, first)
    fake.preset("handles_recur")
    second = driver.stream()
    driver("cuStreamDestroy", second)
    assert driver.stream() == second


def test_unknown_handles_and_flags_are_refused(fake: FakeCuda, driver: Driver):
    assert driver.code("cuStreamQuery", 0x1234560) == INVALID_HANDLE
    assert driver.code_of_get("cuStreamCreateWithPriority", after=(2, 0)) == INVALID_VALUE
    assert driver.code("cuStreamDestroy", LEGACY) == INVALID_HANDLE
    assert fake.violations() == ["an unknown stream handle was used"]
    fake.clear_violations()
