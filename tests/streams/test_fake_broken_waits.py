"""Presets whose driver forgets waits: what the waits are for is seen at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from helpers.fake_cuda import LEGACY, PENDING, FakeCuda
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import Driver

Pin = Callable[[int], np.ndarray]


@pytest.mark.parametrize("preset", ["", "forgets_host_waits"], ids=["the driver", "one that forgets"])
@pytest.mark.parametrize("wait", ["cuEventSynchronize", "cuEventQuery"])
def test_a_wait_of_the_host_that_is_forgotten_leaves_the_copy_in_flight(
    fake: FakeCuda, driver: Driver, pinned: Pin, preset: str, wait: str
):
    if preset:
        fake.preset(preset)
    x, host, event = DeviceArray(np.arange(4, dtype=np.uint8)), pinned(4), driver.event()
    driver("cuMemcpyDtoHAsync", host.ctypes.data, x.pointer, 4, LEGACY)
    driver("cuEventRecord", event, LEGACY)
    while driver.code(wait, event) != 0:
        pass
    assert host.tolist() == ([PENDING] * 4 if preset else [0, 1, 2, 3])
    fake.drain()
    assert host.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("preset", ["", "forgets_stream_waits"], ids=["the driver", "one that forgets"])
def test_a_wait_of_a_stream_that_is_forgotten_orders_nothing(fake: FakeCuda, driver: Driver, pinned: Pin, preset: str):
    if preset:
        fake.preset(preset)
    producing, copying, event = driver.stream(), driver.stream(), driver.event()
    x, host = DeviceArray(np.zeros(4, np.uint8)), pinned(4)
    x.write_later([1, 2, 3, 4], stream=producing)
    driver("cuEventRecord", event, producing)
    driver("cuStreamWaitEvent", copying, event, 0)
    driver("cuMemcpyDtoHAsync", host.ctypes.data, x.pointer, 4, copying)
    driver("cuStreamSynchronize", copying)
    assert host.tolist() == ([0] * 4 if preset else [1, 2, 3, 4])
    fake.drain()
