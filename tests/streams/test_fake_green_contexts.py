"""Green contexts of the fake driver: their null stream is their own, the rest they share with the primary context."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from helpers.fake_cuda import LEGACY, FakeCuda
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import Driver

Pin = Callable[[int], Any]
INVALID_HANDLE, LAUNCH_FAILED, UNSUPPORTED = 400, 719, 900


def context_id(driver: Driver, context: int) -> int:
    return int(driver.get(ctypes.c_ulonglong, "cuCtxGetId", context))


def test_a_green_context_is_another_context_of_the_same_device(fake: FakeCuda, driver: Driver):
    primary, green = driver.context(), fake.green_context()
    assert green not in (None, primary)
    assert green == fake.green_context()
    driver("cuCtxPushCurrent", green)
    assert driver.get(ctypes.c_int, "cuCtxGetDevice") == 0
    assert driver.get_handle("cuStreamGetCtx", LEGACY) == green
    assert driver.get_handle("cuStreamGetCtx", driver.stream()) == green
    assert context_id(driver, green) != context_id(driver, primary)
    driver("cuCtxPopCurrent", None)
    assert driver.get_handle("cuStreamGetCtx", LEGACY) == primary


def test_null_streams_of_green_and_primary_do_not_wait_for_each_other(fake: FakeCuda, driver: Driver, pinned: Pin):
    green, host = fake.green_context(), pinned(1)
    array = DeviceArray(np.zeros(1, np.uint8))
    array.write_later(1, stream=LEGACY)  # in the primary context
    driver("cuCtxPushCurrent", green)
    driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 1, LEGACY)
    event = driver.event()
    driver("cuEventRecord", event, LEGACY)
    driver("cuEventSynchronize", event)
    driver("cuCtxPopCurrent", None)
    assert host[0] == 0
    fake.drain()


def test_with_the_preset_the_framework_works_in_the_green_context(fake: FakeCuda):
    fake.preset("green_context")
    fake.use_device(0)
    driver = Driver()
    assert driver.get_handle("cuCtxGetCurrent") == fake.green_context()
    array, event = DeviceArray(np.zeros(1, np.uint8)), driver.event()
    array.write_later(1, stream=LEGACY)
    driver("cuEventRecord", event, LEGACY)
    driver("cuEventSynchronize", event)
    assert array.peek()[0] == 1
    array.write_later(2, stream=LEGACY)
    driver.context()
    assert driver.code("cuStreamQuery", LEGACY) == 0  # the primary context's null stream has nothing to do
    fake.drain()


@pytest.mark.parametrize("share", [False, True], ids=["of their own", "shared"])
def test_events_of_green_and_primary_contexts(fake: FakeCuda, driver: Driver, share: bool):
    if share:
        fake.preset("green_contexts_share_events")
    event = driver.event()
    driver("cuCtxPushCurrent", fake.green_context())
    assert driver.code("cuEventRecord", event, LEGACY) == (0 if share else INVALID_HANDLE)
    driver("cuCtxPopCurrent", None)
    assert fake.violations() == ([] if share else ["event#1 was recorded in a stream of another context"])
    fake.clear_violations()


def test_calls_that_take_in_the_primary_context_take_in_its_green_one(fake: FakeCuda, driver: Driver):
    primary, green = driver.context(), fake.green_context()
    event, array = driver.event(), DeviceArray(np.zeros(1, np.uint8))
    driver("cuCtxPushCurrent", green)
    stream = driver.stream()
    driver("cuMemsetD8Async", array.pointer, 1, 1, stream)
    driver("cuCtxPopCurrent", None)
    driver("cuCtxRecordEvent", primary, event)
    driver("cuEventSynchronize", event)
    assert array.peek()[0] == 1
    driver("cuMemsetD8Async", array.pointer, 2, 1, stream)
    driver("cuCtxSynchronize")
    assert array.peek()[0] == 2
    fake.begin_capture(stream, "relaxed")
    assert driver.code("cuCtxSynchronize") == UNSUPPORTED
    assert fake.try_end_capture(stream) == (901, None)
    fake.clear_violations()


def test_a_green_context_takes_in_itself_only(fake: FakeCuda, driver: Driver):
    array = DeviceArray(np.zeros(1, np.uint8))
    array.write_later(1, stream=LEGACY)
    driver("cuCtxPushCurrent", fake.green_context())
    driver("cuCtxSynchronize")
    assert array.peek()[0] == 0
    driver("cuCtxPopCurrent", None)
    fake.drain()


def test_green_and_primary_contexts_fail_together_and_die_together(fake: FakeCuda, driver: Driver):
    green = fake.green_context()
    fake.fault("cuMemAlloc", LAUNCH_FAILED)
    assert driver.code_of_get("cuMemAlloc", after=(8,)) == LAUNCH_FAILED
    driver("cuCtxPushCurrent", green)
    assert driver.code("cuStreamQuery", LEGACY) == LAUNCH_FAILED
    driver("cuCtxPopCurrent", None)
    before = context_id(driver, green)
    driver("cuDevicePrimaryCtxReset", 0)
    assert context_id(driver, fake.green_context()) != before
    assert driver.code("cuStreamQuery", LEGACY) == 0


def test_a_green_context_retains_the_primary_one(fake: FakeCuda, driver: Driver):
    green = fake.green_context()
    driver("cuDevicePrimaryCtxRelease", 0)
    assert fake.live("primary_contexts") == 1
    driver("cuCtxSetCurrent", green)
    assert driver.code("cuStreamQuery", LEGACY) == 0


def test_memory_pinned_for_the_primary_context_alone_is_pinned_for_its_green_one(
    fake: FakeCuda, driver: Driver, pages: Pin
):
    host = pages(8)
    driver("cuMemHostRegister", host.ctypes.data, 8, 2)  # not portable
    driver("cuCtxPushCurrent", fake.green_context())
    source = DeviceArray(np.ones(8, np.uint8))
    driver("cuMemcpyDtoHAsync", host.ctypes.data, source.pointer, 8, LEGACY)
    driver("cuCtxPopCurrent", None)
    fake.drain()
    driver("cuMemHostUnregister", host.ctypes.data)
    assert host.tolist() == [1] * 8
    assert fake.live("pageable_copies") == 0
