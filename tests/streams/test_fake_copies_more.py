"""Copies between devices, batches of copies, and values written by a stream of the fake driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from helpers.fake_cuda import ALL_SCHEDULES, LEGACY, PENDING, PER_THREAD, FakeCuda, as_test
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import Driver

Pin = Callable[[int], Any]
INVALID_VALUE, INVALID_CONTEXT, NOT_SUPPORTED, UNSUPPORTED = 1, 201, 801, 900
STREAM, DURING_CALL, ANY = 1, 2, 3
NO_INDEX = 2**64 - 1


class Attributes(ctypes.Structure):
    """CUmemcpyAttributes."""

    _fields_ = (("order", ctypes.c_int), ("hints", ctypes.c_int * 4), ("flags", ctypes.c_uint))


def finish(driver: Driver, stream: int) -> None:
    event = driver.event()
    driver("cuEventRecord", event, stream)
    driver("cuEventSynchronize", event)


def batch(
    driver: Driver,
    copies: Sequence[tuple[int, int, int]],
    stream: int,
    *,
    orders: Sequence[int] = (STREAM,),
    firsts: Sequence[int] = (0,),
) -> tuple[int, int]:
    """Copy each (to, from, nbytes); the result, and the index of what failed."""
    to, source, nbytes = ((ctypes.c_uint64 * len(copies))(*column) for column in zip(*copies, strict=True))
    attributes = (Attributes * len(orders))(*[Attributes(order=order) for order in orders])
    starts, failed = (ctypes.c_size_t * len(firsts))(*firsts), ctypes.c_size_t(9)
    places = [ctypes.addressof(one) for one in (to, source, nbytes)]
    rest = [ctypes.addressof(attributes), ctypes.addressof(starts), len(orders), ctypes.addressof(failed)]
    return driver.code("cuMemcpyBatchAsync", *places, len(copies), *rest, stream), failed.value


@pytest.mark.parametrize("kind", ALL_SCHEDULES)
def test_a_peer_copy_moves_bytes_between_devices_in_stream_order(fake: FakeCuda, kind: str):
    fake.preset("two_devices")
    fake.schedule(kind, 1)
    driver = Driver()
    there, here = driver.context(1), driver.context(0)
    stream = driver.stream()
    source = DeviceArray(np.zeros(4, np.uint8), device=0, stream=stream)
    target = DeviceArray(np.zeros(4, np.uint8), device=1)
    source.write_later(3)
    driver("cuMemcpyPeerAsync", target.pointer, there, source.pointer, here, 4, stream)
    source.write_later(9)
    finish(driver, stream)
    assert target.peek().tolist() == [3] * 4


def test_a_peer_copy_names_the_contexts_of_its_memory(fake: FakeCuda):
    fake.preset("two_devices")
    driver = Driver()
    there, here = driver.context(1), driver.context(0)
    source, target = DeviceArray(np.zeros(4, np.uint8)), DeviceArray(np.zeros(4, np.uint8), device=1)
    stream = driver.stream()
    arguments = (target.pointer, here, source.pointer, here, 4, stream)
    assert driver.code("cuMemcpyPeerAsync", *arguments) == INVALID_VALUE
    assert driver.code("cuMemcpyPeerAsync", target.pointer, there, source.pointer, None, 4, stream) == INVALID_CONTEXT
    assert fake.violations() == ["cuMemcpyPeerAsync was given ctx#0 for device#2 of another device"]
    fake.clear_violations()


@pytest.mark.parametrize("seed", range(10))
def test_a_batch_runs_in_stream_order_but_in_any_order_inside(fake: FakeCuda, driver: Driver, pinned: Pin, seed: int):
    fake.schedule("shuffled", seed)
    stream, host = driver.stream(), pinned(6)
    arrays = [DeviceArray(np.zeros(2, np.uint8), stream=stream) for _ in range(3)]
    for i, array in enumerate(arrays):
        array.write_later(i + 1)
    copies = [(host.ctypes.data + 2 * i, array.pointer, 2) for i, array in enumerate(arrays)]
    assert batch(driver, copies, stream) == (0, NO_INDEX)
    for array in arrays:
        array.write_later(9)
    finish(driver, stream)
    assert host.tolist() == [1, 1, 2, 2, 3, 3]


def test_copies_of_a_batch_have_no_order_among_each_other(fake: FakeCuda, driver: Driver):
    stream, seen = driver.stream(), set()
    array = DeviceArray(np.arange(3, dtype=np.uint8))
    for seed in range(20):
        fake.schedule("shuffled", seed)
        assert batch(driver, [(array.pointer, array.pointer + i, 1) for i in (1, 2)], stream)[0] == 0
        finish(driver, stream)
        seen.add(int(array.peek()[0]))
    assert seen == {1, 2}


def test_the_order_of_a_source_is_as_its_attribute_says(fake: FakeCuda, driver: Driver, pinned: Pin):
    stream, host = driver.stream(), pinned(2)
    seen = set()
    for seed in range(20):
        fake.schedule("lazy", seed)
        targets = [DeviceArray(np.zeros(1, np.uint8)) for _ in range(4)]
        host[:] = 1
        copies = [(target.pointer, host.ctypes.data + i % 2, 1) for i, target in enumerate(targets)]
        assert batch(driver, copies, stream, orders=(STREAM, DURING_CALL, ANY), firsts=(0, 2, 3))[0] == 0
        host[:] = 2
        finish(driver, stream)
        values = [int(target.peek()[0]) for target in targets]
        assert values[:3] == [2, 2, 1]
        seen.add(values[3])
    assert seen == {1, 2}  # it may be read then or later


def test_an_early_reader_of_a_batch_sees_poison(fake: FakeCuda, driver: Driver, pinned: Pin):
    stream, host, source = driver.stream(), pinned(4), DeviceArray(np.zeros(4, np.uint8))
    assert batch(driver, [(host.ctypes.data, source.pointer, 4)], stream)[0] == 0
    assert host.tolist() == [PENDING] * 4
    finish(driver, stream)


def test_a_batch_is_refused_on_the_legacy_stream_only(fake: FakeCuda, driver: Driver):
    source, target = DeviceArray(np.ones(4, np.uint8)), DeviceArray(np.zeros(4, np.uint8))
    copies = [(target.pointer, source.pointer, 4)]
    assert batch(driver, copies, LEGACY)[0] == INVALID_VALUE
    with as_test():
        assert batch(driver, copies, 0)[0] == INVALID_VALUE
        assert batch(Driver(flags=2), copies, 0)[0] == 0
    assert batch(driver, copies, PER_THREAD)[0] == 0
    fake.drain()
    assert target.peek().tolist() == [1] * 4


def test_a_batch_refused_in_a_capture_is_silently_absent_from_the_graph(fake: FakeCuda, driver: Driver):
    stream = driver.stream()
    source, target = DeviceArray(np.ones(4, np.uint8)), DeviceArray(np.zeros(4, np.uint8))
    fake.begin_capture(stream)
    driver("cuMemsetD8Async", source.pointer, 5, 4, stream)
    assert batch(driver, [(target.pointer, source.pointer, 4)], stream)[0] == UNSUPPORTED
    assert driver.capture_status(stream) == 1
    fake.launch_graph(fake.end_capture(stream), stream)
    finish(driver, stream)
    assert (source.peek().tolist(), target.peek().tolist()) == ([5] * 4, [0] * 4)


def test_a_batch_checks_its_arguments_and_says_which_copy_is_wrong(fake: FakeCuda, driver: Driver):
    stream, source, target = driver.stream(), DeviceArray(np.ones(4, np.uint8)), DeviceArray(np.zeros(4, np.uint8))
    good, bad = (target.pointer, source.pointer, 4), (target.pointer, source.pointer, 400)
    assert batch(driver, [good, bad], stream) == (INVALID_VALUE, 1)
    assert len(fake.violations()) == 1
    fake.clear_violations()
    for orders, firsts in (((0,), (0,)), ((STREAM,), (1,)), ((STREAM, STREAM), (0, 2)), ((STREAM, ANY), (0, 0))):
        assert batch(driver, [good, good], stream, orders=orders, firsts=firsts) == (INVALID_VALUE, NO_INDEX)
    assert batch(driver, [good] * 50_001, stream)[0] == INVALID_VALUE
    fake.drain()
    assert target.peek().tolist() == [0] * 4


def test_the_newer_batch_is_another_function_under_the_same_name(fake: FakeCuda, driver: Driver):
    assert driver.find("cuMemcpyBatchAsync", 12080)[1] != driver.find("cuMemcpyBatchAsync", 13000)[1]
    fake.preset("driver_560")
    assert driver.find("cuMemcpyBatchAsync", 12060)[1] is None


@pytest.mark.parametrize("kind", ALL_SCHEDULES)
@pytest.mark.parametrize("differ", [False, True], ids=["one address", "two addresses"])
def test_a_stream_writes_a_value_behind_its_work(fake: FakeCuda, driver: Driver, pinned: Pin, kind: str, differ: bool):
    if differ:
        fake.preset("host_pointers_differ")
    fake.schedule(kind, 2)
    stream, host = driver.stream(), pinned(16)
    flag = host[8:12].view(np.uint32)
    place = driver.get(ctypes.c_uint64, "cuMemHostGetDevicePointer", after=(flag.ctypes.data, 0))
    source = DeviceArray(np.full(8, 3, np.uint8))
    driver("cuMemcpyDtoHAsync", host.ctypes.data, source.pointer, 8, stream)
    driver("cuStreamWriteValue32", stream, place, 0xABCDEF01, 0)
    while flag[0] != 0xABCDEF01:
        driver.code("cuStreamQuery", stream)
    assert host[:8].tolist() == [3] * 8
    fake.drain()


def test_written_values_are_replayed_as_they_were_captured(fake: FakeCuda, driver: Driver, pinned: Pin):
    stream, host = driver.stream(), pinned(4)
    fake.begin_capture(stream)
    driver("cuStreamWriteValue32", stream, host.ctypes.data, 7, 0)
    graph = fake.end_capture(stream)
    for _ in range(2):
        host[:] = 0
        fake.launch_graph(graph, stream)
        finish(driver, stream)
        assert host.view(np.uint32).tolist() == [7]


def test_where_values_may_not_be_written(fake: FakeCuda, driver: Driver, pinned: Pin):
    stream, host, array = driver.stream(), pinned(8), DeviceArray(np.zeros(8, np.uint8))
    assert driver.code("cuStreamWriteValue32", stream, host.ctypes.data + 2, 1, 0) == INVALID_VALUE
    assert driver.code("cuStreamWriteValue32", stream, host.ctypes.data, 1, 1) == INVALID_VALUE
    driver("cuStreamWriteValue32", stream, array.pointer, 1, 0)
    pageable = np.zeros(2, np.uint32)
    assert driver.code("cuStreamWriteValue32", stream, pageable.ctypes.data, 1, 0) == INVALID_VALUE
    assert len(fake.violations()) == 1
    fake.clear_violations()
    fake.preset("no_stream_writes")
    assert driver.code("cuStreamWriteValue32", stream, array.pointer, 1, 0) == NOT_SUPPORTED
    fake.drain()
