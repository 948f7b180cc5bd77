"""How streams join a capture of the fake driver, and how captures are kept apart."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from helpers.fake_cuda import ALL_SCHEDULES, LEGACY, FakeCuda
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import Driver

Pin = Callable[[int], np.ndarray]
INVALID_VALUE, UNSUPPORTED, INVALIDATED, MERGE = 1, 900, 901, 902
UNMATCHED, UNJOINED, ISOLATION = 903, 904, 905
NONE, ACTIVE, BROKEN = range(3)


def order(driver: Driver, later: int, earlier: int) -> int:
    """Let a stream wait for another by an event; the answer of the wait."""
    event = driver.event()
    driver("cuEventRecord", event, earlier)
    return driver.code("cuStreamWaitEvent", later, event, 0)


@pytest.mark.parametrize("kind", ALL_SCHEDULES)
@pytest.mark.parametrize("seed", range(5))
def test_a_forked_stream_joins_and_its_work_is_replayed_in_order(
    fake: FakeCuda, driver: Driver, pinned: Pin, kind: str, seed: int
):
    fake.schedule(kind, seed)
    origin, side, host = driver.stream(), driver.stream(), pinned(2)
    array = DeviceArray(np.zeros(2, np.uint8), stream=origin)
    fake.begin_capture(origin)
    driver("cuMemsetD8Async", array.pointer, 1, 2, origin)
    assert order(driver, side, origin) == 0
    assert driver.capture_status(side) == ACTIVE
    driver("cuMemsetD8Async", array.pointer + 1, 2, 1, side)
    assert order(driver, origin, side) == 0
    driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 2, origin)
    graph = fake.end_capture(origin)
    assert (driver.capture_status(side), array.peek().tolist()) == (NONE, [0, 0])
    fake.launch_graph(graph, origin)
    done = driver.event()
    driver("cuEventRecord", done, origin)
    driver("cuEventSynchronize", done)
    assert host.tolist() == [1, 2]


def test_a_forked_stream_with_work_must_be_joined(fake: FakeCuda, driver: Driver):
    origin, side, pointer = driver.stream(), driver.stream(), driver.alloc(8)
    fake.begin_capture(origin)
    assert order(driver, side, origin) == 0
    driver("cuMemsetD8Async", pointer, 1, 8, side)
    assert fake.try_end_capture(origin) == (UNJOINED, None)
    assert (driver.capture_status(origin), driver.capture_status(side), fake.live("graphs")) == (NONE, NONE, 0)
    assert fake.captures() == ["stream#1 global ended unjoined"]


def test_a_forked_stream_without_work_need_not_be_joined(fake: FakeCuda, driver: Driver):
    origin, side = driver.stream(), driver.stream()
    fake.begin_capture(origin)
    assert order(driver, side, origin) == 0
    assert fake.end_capture(origin) != 0


@pytest.mark.parametrize("spares", [False, True], ids=["destroyed", "spared"])
def test_a_joined_stream_cannot_end_the_capture(fake: FakeCuda, driver: Driver, spares: bool):
    if spares:
        fake.preset("wrong_ends_spare")
    origin, side = driver.stream(), driver.stream()
    fake.begin_capture(origin)
    assert order(driver, side, origin) == 0
    assert fake.try_end_capture(side) == (UNMATCHED, None)
    assert driver.capture_status(origin) == (ACTIVE if spares else BROKEN)
    assert fake.try_end_capture(origin)[0] == (0 if spares else INVALIDATED)


def test_two_captures_do_not_merge(fake: FakeCuda, driver: Driver):
    one, other = driver.stream(), driver.stream()
    fake.begin_capture(one, "relaxed")
    fake.begin_capture(other, "relaxed")
    assert order(driver, one, other) == MERGE
    assert (driver.capture_status(one), driver.capture_status(other)) == (BROKEN, BROKEN)
    assert fake.try_end_capture(one) == fake.try_end_capture(other) == (INVALIDATED, None)
    assert fake.violations() == [
        f"cuStreamWaitEvent stream=stream#1 event=event#1 invalidated the capture of stream#{i}" for i in (2, 1)
    ]
    fake.clear_violations()


def test_a_capture_does_not_wait_for_work_outside(fake: FakeCuda, driver: Driver):
    stream, outside = driver.stream(), driver.stream()
    fake.begin_capture(stream)
    assert order(driver, stream, outside) == ISOLATION
    assert fake.try_end_capture(stream) == (INVALIDATED, None)
    assert fake.violations() == ["cuStreamWaitEvent stream=stream#1 event=event#1 invalidated the capture of stream#1"]
    fake.clear_violations()
    fake.drain()


@pytest.mark.parametrize(("preset", "code"), [("driver_580", ISOLATION), ("unrecorded_waits_are_empty", 0)])
def test_waiting_in_a_capture_for_an_event_never_recorded(fake: FakeCuda, driver: Driver, preset: str, code: int):
    fake.preset(preset)
    stream = driver.stream()
    fake.begin_capture(stream)
    assert driver.code("cuStreamWaitEvent", stream, driver.event(), 0) == code
    assert driver.capture_status(stream) == (BROKEN if code else ACTIVE)
    fake.try_end_capture(stream)
    fake.clear_violations()


def test_waiting_for_an_event_of_a_broken_capture_joins_nothing(fake: FakeCuda, driver: Driver):
    stream, idle, event = driver.stream(), driver.stream(), driver.event()
    fake.begin_capture(stream, "relaxed")
    driver("cuEventRecord", event, stream)
    assert driver.code("cuStreamQuery", stream) == UNSUPPORTED
    assert driver.code("cuStreamWaitEvent", idle, event, 0) == INVALID_VALUE
    assert driver.capture_status(idle) == NONE
    assert fake.try_end_capture(stream) == (INVALIDATED, None)
    fake.clear_violations()


def test_the_legacy_stream_does_not_join(fake: FakeCuda, driver: Driver):
    stream, event = driver.stream(), driver.event()
    fake.begin_capture(stream)
    driver("cuEventRecord", event, stream)
    assert driver.code("cuStreamWaitEvent", LEGACY, event, 0) == UNSUPPORTED
    assert fake.try_end_capture(stream) == (INVALIDATED, None)
    assert len(fake.violations()) == 1
    fake.clear_violations()


def test_a_shared_copy_stream_that_waits_pulls_other_peoples_copies_into_the_graph(
    fake: FakeCuda, driver: Driver, pinned: Pin
):
    stream, shared, event, host = driver.stream(), driver.stream(), driver.event(), pinned(8)
    foreign = DeviceArray(np.arange(8, dtype=np.uint8))
    fake.begin_capture(stream)
    driver("cuEventRecord", event, stream)
    driver("cuStreamWaitEvent", shared, event, 0)
    host[:] = 77
    driver("cuMemcpyDtoHAsync", host.ctypes.data, foreign.pointer, 8, shared)
    fake.drain()
    assert host.tolist() == [77] * 8  # it never ran
    assert fake.try_end_capture(stream) == (UNJOINED, None)


def test_work_before_a_capture_and_after_it_keeps_the_order_of_the_stream(fake: FakeCuda, driver: Driver, pinned: Pin):
    stream, host, event = driver.stream(), pinned(4), driver.event()
    array = DeviceArray(np.zeros(4, np.uint8), stream=stream)
    array.write_later(1)
    fake.begin_capture(stream)
    array.write_later(2)
    graph = fake.end_capture(stream)
    driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 4, stream)
    fake.launch_graph(graph, stream)
    driver("cuEventRecord", event, stream)
    driver("cuEventSynchronize", event)
    assert (host.tolist(), array.peek().tolist()) == ([1] * 4, [2] * 4)


def test_a_producer_orders_the_consumers_stream_as_events_would(fake: FakeCuda, driver: Driver):
    stream, outside = driver.stream(), driver.stream()
    array = DeviceArray(np.zeros(4, np.uint8), stream=stream)
    fake.begin_capture(stream)
    array.__dlpack__(stream=outside)
    assert driver.capture_status(outside) == ACTIVE
    uncaptured = DeviceArray(np.zeros(4, np.uint8), stream=driver.stream())
    with pytest.raises(AssertionError, match="905"):
        uncaptured.__dlpack__(stream=stream)
    assert fake.try_end_capture(stream) == (INVALIDATED, None)
    assert fake.violations() == []  # it was not the product
