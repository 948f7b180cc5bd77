"""Failures on demand: before a call does anything, after it was accepted, when work runs, and for good."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from helpers.fake_cuda import ALL_SCHEDULES, LEGACY, FakeCuda, as_test
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import Driver

Pin = Callable[[int], np.ndarray]
OUT_OF_MEMORY, DEINITIALIZED, ILLEGAL_ADDRESS, LAUNCH_FAILED = 2, 4, 700, 719


def test_the_nth_call_fails_and_only_that(fake: FakeCuda, driver: Driver):
    fake.fault("cuEventCreate", OUT_OF_MEMORY, nth=2)
    assert [driver.code_of_get("cuEventCreate", after=(2,)) for _ in range(4)] == [0, OUT_OF_MEMORY, 0, 0]
    assert fake.live("events") == 3


def test_a_failure_after_acceptance_has_done_the_work(fake: FakeCuda, driver: Driver):
    fake.fault("cuEventCreate", OUT_OF_MEMORY, after_acceptance=True)
    assert driver.code_of_get("cuEventCreate", after=(2,)) == OUT_OF_MEMORY
    assert fake.live("events") == 1


def test_every_call_can_fail(fake: FakeCuda, driver: Driver):
    fake.fault("cuStreamQuery", OUT_OF_MEMORY, nth=0)
    assert [driver.code("cuStreamQuery", LEGACY) for _ in range(3)] == [OUT_OF_MEMORY] * 3
    fake.clear_faults()
    assert driver.code("cuStreamQuery", LEGACY) == 0


def test_a_fault_of_any_call_counts_all_of_them(fake: FakeCuda, driver: Driver):
    fake.fault("*", OUT_OF_MEMORY, nth=3)
    codes = [driver.code("cuStreamQuery", LEGACY), driver.code_of_get("cuCtxGetCurrent")]
    assert [*codes, driver.code("cuStreamQuery", LEGACY)] == [0, 0, OUT_OF_MEMORY]


def test_an_error_that_sticks_comes_from_every_later_call(fake: FakeCuda, driver: Driver):
    event = driver.event()
    fake.fault("cuEventRecord", ILLEGAL_ADDRESS)
    assert driver.code("cuEventRecord", event, LEGACY) == ILLEGAL_ADDRESS
    assert driver.code("cuEventQuery", event) == ILLEGAL_ADDRESS
    assert driver.code_of_get("cuEventCreate", after=(2,)) == ILLEGAL_ADDRESS
    assert driver.code("cuEventDestroy", event) == ILLEGAL_ADDRESS
    assert driver.code_of_get("cuCtxGetCurrent") == 0  # the stack still works
    driver("cuDevicePrimaryCtxReset", 0)
    driver.context()
    assert driver.code_of_get("cuEventCreate", after=(2,)) == 0


@pytest.mark.parametrize("kind", ALL_SCHEDULES)
def test_an_error_of_running_work_surfaces_at_a_later_call(fake: FakeCuda, driver: Driver, pinned: Pin, kind: str):
    array, host = DeviceArray(np.ones(4, np.uint8)), pinned(4)
    stream, event = driver.stream(), driver.event()
    fake.fault("execution", LAUNCH_FAILED)
    with fake.held():
        fake.schedule(kind, 1)
        driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 4, stream)
        driver("cuEventRecord", event, stream)
    assert driver.code("cuEventSynchronize", event) == LAUNCH_FAILED
    assert driver.code_of_get("cuEventCreate", after=(2,)) == LAUNCH_FAILED
    assert set(host.tolist()) == {0xA5}
    assert fake.live("pending") == 0


def test_a_driver_that_shuts_down_stays_down(fake: FakeCuda, driver: Driver):
    fake.fault("*", DEINITIALIZED, nth=2)
    codes = [driver.code_of_get("cuCtxGetCurrent") for _ in range(4)]
    assert codes == [0, DEINITIALIZED, DEINITIALIZED, DEINITIALIZED]
    assert driver.code_of_get("cuDriverGetVersion") == DEINITIALIZED
    fake.clear_faults()
    assert driver.code_of_get("cuCtxGetCurrent") == 0


def test_calls_of_the_test_itself_neither_fail_nor_count(fake: FakeCuda, driver: Driver):
    fake.fault("cuEventCreate", OUT_OF_MEMORY)
    with as_test():
        assert driver.code_of_get("cuEventCreate", after=(2,)) == 0
    assert driver.code_of_get("cuEventCreate", after=(2,)) == OUT_OF_MEMORY


def test_the_trace_names_calls_and_what_they_worked_on(fake: FakeCuda, driver: Driver, pinned: Pin):
    array, host = DeviceArray(np.zeros(8, np.uint8)), pinned(16)
    stream, event = driver.stream(), driver.event()
    fake.clear_trace()
    driver("cuMemcpyDtoHAsync", host.ctypes.data + 4, array.pointer + 2, 6, stream)
    driver("cuEventRecord", event, stream)
    with as_test():
        driver("cuEventSynchronize", event)
    assert fake.trace() == [
        "cuMemcpyDtoHAsync bytes=6 from=device#1+2 to=host#1+4 stream=stream#1",
        "cuEventRecord event=event#1 stream=stream#1",
    ]
    assert fake.trace(of_test=True)[2] == "test: cuEventSynchronize event#1"
    assert fake.call_counts() == {"cuMemcpyDtoHAsync": 1, "cuEventRecord": 1}


def test_the_capture_mode_belongs_to_the_thread_and_is_exchanged(fake: FakeCuda, driver: Driver):
    mode = ctypes.c_int(2)
    driver("cuThreadExchangeStreamCaptureMode", ctypes.addressof(mode))
    assert mode.value == 0
    driver("cuThreadExchangeStreamCaptureMode", ctypes.addressof(mode))
    assert mode.value == 2
    status = driver.get(ctypes.c_int, "cuStreamIsCapturing", LEGACY)
    assert status == 0
