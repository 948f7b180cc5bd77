"""Contexts of the fake driver: the stack of each thread, and the lives of primary contexts."""

from __future__ import annotations

import ctypes
import threading
import time

import numpy as np
import pytest

from helpers.fake_cuda import LEGACY, FakeCuda
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import Driver
from helpers.subprocess import stdout_of

NOT_INITIALIZED, INVALID_DEVICE, INVALID_CONTEXT, IS_DESTROYED = 3, 101, 201, 709


def state(driver: Driver, device: int = 0) -> int:
    """1 if the device's primary context is active."""
    flags, active = ctypes.c_uint(9), ctypes.c_int(9)
    driver("cuDevicePrimaryCtxGetState", device, ctypes.addressof(flags), ctypes.addressof(active))
    return active.value


def context_id(driver: Driver, context: int | None = None) -> int:
    return int(driver.get(ctypes.c_ulonglong, "cuCtxGetId", context))


def test_nothing_works_before_the_driver_is_initialised(fake: FakeCuda):
    driver = Driver()
    assert driver.code_of_get("cuDeviceGetCount") == NOT_INITIALIZED
    assert driver.code_of_get("cuCtxGetCurrent") == NOT_INITIALIZED
    assert driver.get(ctypes.c_int, "cuDriverGetVersion") == 13000


def test_a_primary_context_lives_while_somebody_retains_it(fake: FakeCuda):
    driver = Driver()
    driver("cuInit", 0)
    assert state(driver) == 0
    context = driver.context()
    assert context == driver.context()
    assert (state(driver), fake.live("primary_contexts"), fake.live("contexts_activated")) == (1, 1, 1)
    driver("cuDevicePrimaryCtxRelease", 0)
    assert state(driver) == 1
    driver("cuDevicePrimaryCtxRelease", 0)
    assert (state(driver), fake.live("primary_contexts")) == (0, 0)
    assert driver.code("cuDevicePrimaryCtxRelease", 0) == INVALID_CONTEXT
    assert fake.violations() == ["a primary context was released that nobody had retained"]
    fake.clear_violations()


def test_retaining_a_context_that_a_framework_made_active_activates_nothing(fake: FakeCuda):
    fake.use_device(0)
    driver = Driver()
    driver.context()
    assert fake.live("contexts_activated") == 0


def test_a_reset_kills_every_handle_and_the_context_gets_another_id(fake: FakeCuda, driver: Driver):
    context = driver.context()
    before = context_id(driver)
    stream, event, pointer = driver.stream(), driver.event(), driver.alloc(8)
    driver("cuDevicePrimaryCtxReset", 0)
    assert driver.context() == context
    assert context_id(driver) != before
    assert (fake.live("streams"), fake.live("events"), fake.live("device_bytes")) == (0, 0, 0)
    assert driver.code("cuEventRecord", event, LEGACY) != 0
    assert driver.code("cuStreamQuery", stream) != 0
    assert driver.code("cuMemFree", pointer) != 0
    assert len(fake.violations()) == 3
    fake.clear_violations()


def test_work_in_a_dead_context_is_refused(fake: FakeCuda, driver: Driver):
    driver("cuDevicePrimaryCtxRelease", 0)
    assert driver.code("cuStreamQuery", LEGACY) == IS_DESTROYED
    assert driver.code_of_get("cuEventCreate", after=(0,)) == IS_DESTROYED


def test_contexts_are_pushed_and_popped_in_order(fake: FakeCuda):
    fake.preset("two_devices")
    driver = Driver()
    first, second = driver.context(0), driver.context(1)
    driver("cuCtxPushCurrent", first)
    assert driver.get_handle("cuCtxGetCurrent") == first
    assert driver.get(ctypes.c_int, "cuCtxGetDevice") == 0
    assert fake.live("pushed_contexts") == 1
    assert driver.get_handle("cuCtxPopCurrent") == first
    assert driver.get_handle("cuCtxGetCurrent") == second
    assert fake.live("pushed_contexts") == 0


def test_each_thread_has_a_stack_of_its_own(fake: FakeCuda, driver: Driver):
    seen: list[int | None] = []
    thread = threading.Thread(target=lambda: seen.append(driver.get_handle("cuCtxGetCurrent")))
    thread.start()
    thread.join(timeout=60)
    assert seen == [None]
    assert driver.get_handle("cuCtxGetCurrent") is not None


def test_a_thread_that_ends_with_a_context_pushed_is_reported(fake: FakeCuda, driver: Driver):
    context = driver.context()
    thread = threading.Thread(target=lambda: driver("cuCtxPushCurrent", context))
    thread.start()
    thread.join(timeout=60)
    patience = time.monotonic() + 60
    while fake.live("pushed_contexts") and time.monotonic() < patience:
        time.sleep(0.001)  # the thread itself ends after Python has seen it end
    assert fake.violations() == ["a thread ended with 1 contexts left pushed"]
    assert fake.live("pushed_contexts") == 0
    fake.clear_violations()


def test_popping_what_was_not_pushed_and_replacing_what_was_are_reported(fake: FakeCuda, driver: Driver):
    context = driver.context()
    driver("cuCtxPopCurrent", None)
    assert driver.code("cuCtxPopCurrent", None) == INVALID_CONTEXT
    driver("cuCtxPushCurrent", context)
    driver("cuCtxSetCurrent", context)
    driver("cuCtxPopCurrent", None)
    assert fake.violations() == [
        "a context was popped that this thread had not pushed",
        "a context was popped from an empty stack",
        "cuCtxSetCurrent replaced a context that was pushed",
    ]
    fake.clear_violations()


@pytest.mark.parametrize("name", ["cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset"])
def test_devices_that_are_not_there_are_refused(fake: FakeCuda, driver: Driver, name: str):
    assert driver.code(name, 1) == INVALID_DEVICE
    assert driver.code(name, -1) == INVALID_DEVICE


def test_devices_differ_by_identity(fake: FakeCuda):
    fake.preset("two_devices")
    driver = Driver()
    driver("cuInit", 0)
    uuids, buses = set(), set()
    for device in range(driver.get(ctypes.c_int, "cuDeviceGetCount")):
        uuid, bus = ctypes.create_string_buffer(16), ctypes.create_string_buffer(20)
        driver("cuDeviceGetUuid", uuid, device)
        driver("cuDeviceGetPCIBusId", bus, 20, device)
        uuids.add(uuid.raw)
        buses.add(bus.value)
    assert len(uuids) == 2
    assert buses == {b"0000:01:00.0", b"0000:02:00.0"}
    assert driver.code_of_get("cuDeviceGetAttribute", after=(9999, 0)) == 1


def test_a_forked_child_has_no_driver_and_the_parent_keeps_its_own():
    printed = stdout_of("""
        import os
        import numpy as np
        from helpers.fake_cuda import fake_cuda
        from helpers.fake_cuda_driver import Driver
        from helpers.fake_cuda_arrays import DeviceArray
        fake, driver = fake_cuda(), Driver()
        fake.schedule("threaded", 1)
        driver.context()
        child = os.fork()
        if child == 0:
            codes = [driver.code("cuInit", 0), driver.code_of_get("cuCtxGetCurrent"), driver.code("cuStreamQuery", 1)]
            fake.reset()  # whatever the parent's threads did
            os._exit(0 if codes == [3, 3, 3] else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), driver.code("cuStreamQuery", 1), flush=True)
    """)
    assert printed == "0 0"


def test_arrays_may_die_after_the_driver_was_reset(fake: FakeCuda):
    array = DeviceArray(np.zeros(4, np.uint8))
    fake.reset()
    other = DeviceArray(np.ones(4, np.uint8))
    del array
    assert other.peek().tolist() == [1] * 4
