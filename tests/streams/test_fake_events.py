"""Events of the fake driver: what a record captures, and who may use it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import NOT_READY, Driver

Pin = Callable[[int], np.ndarray]
INVALID_VALUE, INVALID_HANDLE, IS_DESTROYED = 1, 400, 709
BLOCKING_SYNC, DISABLE_TIMING = 1, 2


def test_an_event_that_was_never_recorded_is_done(fake: FakeCuda, driver: Driver):
    stream, event = driver.stream(), driver.event()
    array = DeviceArray(np.zeros(1, np.uint8))
    array.write_later(1, stream=stream)
    assert driver.is_done(event)
    driver("cuEventSynchronize", event)
    driver("cuStreamWaitEvent", driver.stream(), event, 0)
    assert array.peek()[0] == 0
    fake.drain()


def test_recording_again_leaves_earlier_waits_on_the_old_state(fake: FakeCuda, driver: Driver, pinned: Pin):
    producer, slow, reader = driver.stream(), driver.stream(), driver.stream()
    event, read = driver.event(), driver.event()
    array, other = DeviceArray(np.zeros(1, np.uint8)), DeviceArray(np.zeros(1, np.uint8))
    host = pinned(1)
    array.write_later(1, stream=producer)
    driver("cuEventRecord", event, producer)
    driver("cuStreamWaitEvent", reader, event, 0)
    other.write_later(1, stream=slow)
    driver("cuEventRecord", event, slow)
    driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 1, reader)
    driver("cuEventRecord", read, reader)
    driver("cuEventSynchronize", read)
    assert host[0] == 1  # the reader waited for the producer
    assert other.peek()[0] == 0  # and not for the other stream
    assert driver.code("cuEventQuery", event) == NOT_READY
    fake.drain()


def test_a_wait_on_a_reused_event_is_the_mistake_it_is_on_a_real_driver(fake: FakeCuda, driver: Driver, pinned: Pin):
    producer, other, reader = driver.stream(), driver.stream(), driver.stream()
    event, read = driver.event(), driver.event()
    array, host = DeviceArray(np.zeros(1, np.uint8)), pinned(1)
    array.write_later(1, stream=producer)
    driver("cuEventRecord", event, producer)
    driver("cuEventRecord", event, other)
    driver("cuStreamWaitEvent", reader, event, 0)
    driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 1, reader)
    driver("cuEventRecord", read, reader)
    driver("cuEventSynchronize", read)
    assert host[0] == 0
    fake.drain()


def test_destroying_an_event_leaves_waits_on_it_alone(fake: FakeCuda, driver: Driver, pinned: Pin):
    producer, reader = driver.stream(), driver.stream()
    event, read = driver.event(), driver.event()
    array, host = DeviceArray(np.zeros(1, np.uint8)), pinned(1)
    array.write_later(1, stream=producer)
    driver("cuEventRecord", event, producer)
    driver("cuStreamWaitEvent", reader, event, 0)
    driver("cuEventDestroy", event)
    assert fake.live("events") == 1
    driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 1, reader)
    driver("cuEventRecord", read, reader)
    driver("cuEventSynchronize", read)
    assert host[0] == 1


def test_a_destroyed_event_is_not_used_again_unnoticed(fake: FakeCuda, driver: Driver):
    event = driver.event()
    driver("cuEventDestroy", event)
    assert driver.code("cuEventQuery", event) == INVALID_HANDLE
    assert fake.violations() == ["event#1 was used after it was destroyed"]
    fake.clear_violations()


def test_waits_are_counted_by_how_they_wait(fake: FakeCuda, driver: Driver):
    spinning, sleeping = driver.event(DISABLE_TIMING), driver.event(DISABLE_TIMING | BLOCKING_SYNC)
    for event in (spinning, sleeping, sleeping):
        driver("cuEventSynchronize", event)
    assert (fake.live("busy_waits"), fake.live("blocking_waits")) == (1, 2)


def test_a_stream_may_wait_for_another_device(fake: FakeCuda, pinned: Pin):
    fake.preset("two_devices")
    driver = Driver()
    first, second = driver.context(0), driver.context(1)
    there, event = driver.stream(), driver.event()
    array = DeviceArray(np.zeros(1, np.uint8), device=1)
    array.write_later(1, stream=there)
    driver("cuEventRecord", event, there)
    driver("cuCtxSetCurrent", first)
    here, read, host = driver.stream(), driver.event(), pinned(1)
    driver("cuStreamWaitEvent", here, event, 0)
    driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 1, here)
    driver("cuEventRecord", read, here)
    driver("cuEventSynchronize", read)
    assert host[0] == 1
    assert first != second


def test_an_event_is_not_recorded_in_a_stream_of_another_context(fake: FakeCuda):
    fake.preset("two_devices")
    driver = Driver()
    driver.context(0)
    event = driver.event()
    driver.context(1)
    assert driver.code("cuEventRecord", event, driver.stream()) == INVALID_HANDLE
    assert fake.violations() == ["event#1 was recorded in a stream of another context"]
    fake.clear_violations()


def test_events_without_timing_have_no_elapsed_time(fake: FakeCuda, driver: Driver):
    stream, untimed = driver.stream(), driver.event()
    timed = [driver.event(0), driver.event(0)]
    for event in (*timed, untimed):
        driver("cuEventRecord", event, stream)
    driver("cuStreamSynchronize", stream)
    elapsed = ctypes.c_float(-1)
    assert driver.code("cuEventElapsedTime", ctypes.addressof(elapsed), timed[0], timed[1]) == 0
    assert elapsed.value >= 0
    assert driver.code("cuEventElapsedTime", ctypes.addressof(elapsed), timed[0], untimed) == INVALID_HANDLE


def test_a_context_event_covers_every_stream_of_the_context(fake: FakeCuda, driver: Driver):
    array = DeviceArray(np.zeros(1, np.uint8))
    event = driver.event()
    array.write_later(1, stream=driver.stream())
    driver("cuCtxRecordEvent", driver.get_handle("cuCtxGetCurrent"), event)
    driver("cuEventSynchronize", event)
    assert array.peek()[0] == 1


@pytest.mark.parametrize("flags", [8, 64])
def test_unknown_flags_are_refused(fake: FakeCuda, driver: Driver, flags: int):
    assert driver.code_of_get("cuEventCreate", after=(flags,)) == INVALID_VALUE
    assert driver.code("cuEventRecordWithFlags", driver.event(), driver.stream(), 1) == INVALID_VALUE
