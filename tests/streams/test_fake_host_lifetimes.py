"""What becomes of pinned host memory when its context dies."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from helpers.fake_cuda import FREED, LEGACY, FakeCuda
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import Driver

Pages = Callable[[int], Any]
INVALID_VALUE, NOT_REGISTERED = 1, 713
ENDS: dict[str, Callable[[Driver], None]] = {
    "reset": lambda driver: driver("cuDevicePrimaryCtxReset", 0),
    "released": lambda driver: driver("cuDevicePrimaryCtxRelease", 0),
}


@pytest.mark.parametrize("end", ENDS)
def test_registrations_drop_with_the_context_that_made_them(fake: FakeCuda, driver: Driver, pages: Pages, end: str):
    host = pages(4096)
    driver("cuMemHostRegister", host.ctypes.data, 4096, 3)
    host[:] = 5
    ENDS[end](driver)
    driver.context()
    assert (fake.live("host_registrations"), set(host.tolist())) == (0, {5})
    assert driver.code("cuMemHostUnregister", host.ctypes.data) == NOT_REGISTERED
    driver("cuMemHostRegister", host.ctypes.data, 4096, 3)
    driver("cuMemHostUnregister", host.ctypes.data)


def test_registrations_may_outlive_their_context(fake: FakeCuda, driver: Driver, pages: Pages):
    fake.preset("registrations_outlive_context")
    host = pages(4096)
    driver("cuMemHostRegister", host.ctypes.data, 4096, 3)
    driver("cuDevicePrimaryCtxReset", 0)
    driver.context()
    assert fake.live("host_registrations") == 1
    driver("cuMemHostUnregister", host.ctypes.data)


def test_memory_that_the_driver_allocated_goes_with_its_context(fake: FakeCuda, driver: Driver):
    at = driver.get_handle_after("cuMemHostAlloc", 16, 3)
    assert at is not None
    ctypes.memset(at, 1, 16)
    driver("cuDevicePrimaryCtxReset", 0)
    driver.context()
    assert ctypes.string_at(at, 16) == bytes([FREED]) * 16  # a real driver unmaps it
    assert (fake.live("host_registrations"), fake.live("host_bytes")) == (0, 0)
    assert driver.code("cuMemFreeHost", at) == INVALID_VALUE


def test_contexts_of_other_devices_keep_theirs(fake: FakeCuda, pages: Pages):
    fake.preset("two_devices")
    driver = Driver()
    driver.context(0)
    host = pages(4096)
    driver("cuMemHostRegister", host.ctypes.data, 4096, 3)
    driver.context(1)
    driver("cuDevicePrimaryCtxReset", 1)
    assert fake.live("host_registrations") == 1
    driver("cuMemHostUnregister", host.ctypes.data)


def test_a_reset_with_work_of_another_device_on_the_memory_is_reported(fake: FakeCuda, pages: Pages):
    fake.preset("two_devices")
    driver = Driver()
    driver.context(0)
    host = pages(4096)
    driver("cuMemHostRegister", host.ctypes.data, 4096, 3)
    driver.context(1)
    source = DeviceArray(np.zeros(8, np.uint8), device=1)
    driver("cuMemcpyDtoHAsync", host.ctypes.data, source.pointer, 8, LEGACY)
    driver("cuDevicePrimaryCtxReset", 0)
    fake.drain()
    assert set(host[:8].tolist()) == {0xA5}
    assert fake.violations() == ["host#1 went with its context with pending work: cuMemcpyDtoHAsync in legacy"]
    fake.clear_violations()
