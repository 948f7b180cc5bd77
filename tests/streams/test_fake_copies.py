"""Copies of the fake driver: values, the order they keep, and what an early reader sees."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from helpers.fake_cuda import ALL_SCHEDULES, LEGACY, PENDING, FakeCuda, as_test
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import Copy2D, Driver

Pin = Callable[[int], np.ndarray]


def test_an_early_reader_of_a_copy_to_the_host_sees_poison(fake: FakeCuda, driver: Driver, pinned: Pin):
    source = DeviceArray(np.arange(64, dtype=np.uint8))
    host = pinned(64)
    stream, event = driver.stream(), driver.event()
    driver("cuMemcpyDtoHAsync", host.ctypes.data, source.pointer, 64, stream)
    driver("cuEventRecord", event, stream)
    assert set(host.tolist()) == {PENDING}
    driver("cuEventSynchronize", event)
    assert host.tolist() == list(range(64))


@pytest.mark.parametrize("kind", ALL_SCHEDULES)
@pytest.mark.parametrize("seed", range(5))
def test_a_stream_keeps_its_order(fake: FakeCuda, driver: Driver, pinned: Pin, kind: str, seed: int):
    fake.schedule(kind, seed)
    array = DeviceArray(np.zeros(8, np.uint8))
    host = pinned(16)
    stream, event = driver.stream(), driver.event()
    for value, at in ((1, 0), (2, 8)):
        array.write_later(value, stream=stream)
        driver("cuMemcpyDtoHAsync", host.ctypes.data + at, array.pointer, 8, stream)
    array.write_later(3, stream=stream)
    driver("cuEventRecord", event, stream)
    driver("cuEventSynchronize", event)
    assert host.tolist() == [1] * 8 + [2] * 8
    assert array.peek().tolist() == [3] * 8


def copy_behind_a_kernel(fake: FakeCuda, driver: Driver, pinned: Pin, *, wait: bool) -> list[int]:
    """A kernel writes ones in one stream, a copy in another reads; with the wait between them or without."""
    array = DeviceArray(np.zeros(4, np.uint8))
    host = pinned(4)
    producer, copier = driver.stream(), driver.stream()
    written, copied = driver.event(), driver.event()
    array.write_later(1, stream=producer)
    driver("cuEventRecord", written, producer)
    if wait:
        driver("cuStreamWaitEvent", copier, written, 0)
    driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 4, copier)
    driver("cuEventRecord", copied, copier)
    driver("cuEventSynchronize", copied)
    values: list[int] = host.tolist()
    fake.drain()
    driver("cuMemHostUnregister", host.ctypes.data)
    return values


@pytest.mark.parametrize("kind", ALL_SCHEDULES)
def test_a_wait_orders_streams_under_every_schedule(fake: FakeCuda, driver: Driver, pinned: Pin, kind: str):
    for seed in range(10):
        fake.schedule(kind, seed)
        assert copy_behind_a_kernel(fake, driver, pinned, wait=True) == [1] * 4


def test_a_missing_wait_is_seen_always_when_lazy_and_often_when_shuffled(fake: FakeCuda, driver: Driver, pinned: Pin):
    assert [copy_behind_a_kernel(fake, driver, pinned, wait=False) for _ in range(10)] == [[0] * 4] * 10
    seen = 0
    for seed in range(40):
        fake.schedule("shuffled", seed)
        seen += copy_behind_a_kernel(fake, driver, pinned, wait=False) == [0] * 4
    assert 5 <= seen <= 39  # sometimes luck hides the mistake: that is why there are many seeds


def test_shuffled_runs_repeat_by_seed_and_reach_every_order(fake: FakeCuda, driver: Driver, pinned: Pin):
    orders = []
    for seed in (*range(100), *range(100)):
        fake.reset()
        driver.context()
        fake.schedule("shuffled", seed)
        copy_behind_a_kernel(fake, driver, pinned, wait=False)
        orders.append(fake.order())
    assert orders[:100] == orders[100:]
    assert len(set(orders)) == 6  # two streams with two pieces of work each: 4! / (2! 2!)


def test_a_pageable_destination_blocks_until_the_copy_is_done_and_is_reported(fake: FakeCuda, driver: Driver):
    source = DeviceArray(np.arange(8, dtype=np.uint8))
    host = np.zeros(8, np.uint8)
    stream = driver.stream()
    driver("cuMemcpyDtoHAsync", host.ctypes.data, source.pointer, 8, stream)
    assert host.tolist() == list(range(8))
    assert fake.live("pageable_waits") == 1
    assert fake.violations() == ["cuMemcpyDtoHAsync was given pageable host memory"]
    fake.clear_violations()


def test_a_pageable_source_is_read_at_the_call_and_is_reported(fake: FakeCuda, driver: Driver):
    target = DeviceArray(np.zeros(4, np.uint8))
    host = np.full(4, 7, np.uint8)
    driver("cuMemcpyHtoDAsync", target.pointer, host.ctypes.data, 4, LEGACY)
    host[:] = 9
    assert target.peek().tolist() == [0] * 4
    fake.drain()
    assert target.peek().tolist() == [7] * 4
    assert fake.violations() == ["cuMemcpyHtoDAsync was given pageable host memory"]
    fake.clear_violations()


def test_a_pinned_source_is_read_in_stream_order(fake: FakeCuda, driver: Driver, pinned: Pin):
    target = DeviceArray(np.zeros(4, np.uint8))
    host = pinned(4)
    host[:] = 7
    driver("cuMemcpyHtoDAsync", target.pointer, host.ctypes.data, 4, driver.stream())
    host[:] = 9
    fake.drain()
    assert target.peek().tolist() == [9] * 4


def test_the_test_itself_may_copy_pageable_memory(fake: FakeCuda, driver: Driver):
    source = DeviceArray(np.arange(4, dtype=np.uint8))
    host = np.zeros(4, np.uint8)
    with as_test():
        driver("cuMemcpyDtoHAsync", host.ctypes.data, source.pointer, 4, LEGACY)
    assert host.tolist() == [0, 1, 2, 3]
    assert "cuMemcpyDtoHAsync" not in fake.calls()


def test_device_copies_and_fills(fake: FakeCuda, driver: Driver):
    source, target = DeviceArray(np.arange(8, dtype=np.uint8)), DeviceArray(np.zeros(8, np.uint8))
    stream = driver.stream()
    driver("cuMemcpyDtoDAsync", target.pointer + 2, source.pointer, 4, stream)
    driver("cuMemsetD8Async", target.pointer, 5, 1, stream)
    fake.drain()
    assert target.peek().tolist() == [5, 0, 0, 1, 2, 3, 0, 0]


def pitched(source: DeviceArray, host: np.ndarray, **changes: int) -> Copy2D:
    """Two rows of four bytes: 16 apart on the device, 8 apart on the host, which is at (0, 1)."""
    made = Copy2D(src_type=2, src_device=source.pointer, src_pitch=16, src_x=1, dst_type=1, dst_host=host.ctypes.data)
    made.dst_pitch, made.dst_y, made.width, made.height = 8, 1, 4, 2
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_a_pitched_copy_takes_rows_and_touches_nothing_between(fake: FakeCuda, driver: Driver, pinned: Pin):
    source = DeviceArray(np.arange(32, dtype=np.uint8))
    host = pinned(24)
    copy = pitched(source, host)
    driver("cuMemcpy2DAsync", ctypes.addressof(copy), driver.stream())
    assert host.reshape(3, 8)[1].tolist() == [PENDING] * 4 + [0] * 4
    fake.drain()
    assert host.reshape(3, 8).tolist() == [[0] * 8, [1, 2, 3, 4] + [0] * 4, [17, 18, 19, 20] + [0] * 4]


def test_a_pitched_copy_past_the_end_of_the_device_memory_is_refused(fake: FakeCuda, driver: Driver, pinned: Pin):
    source = DeviceArray(np.arange(32, dtype=np.uint8))
    host = pinned(24)
    too_far, too_narrow = pitched(source, host, src_y=1), pitched(source, host, src_pitch=3)
    assert driver.code("cuMemcpy2DAsync", ctypes.addressof(too_far), LEGACY) == 1
    assert "is not one piece of device memory" in fake.violations()[0]
    assert driver.code("cuMemcpy2DAsync", ctypes.addressof(too_narrow), LEGACY) == 1
    fake.clear_violations()
