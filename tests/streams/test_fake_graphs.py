"""Graphs of the fake driver: replays with frozen parameters, in the order of streams, under every schedule."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

import numpy as np
import pytest

from helpers.fake_cuda import ALL_SCHEDULES, PENDING, FakeCuda
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import Copy2D, Driver

Pin = Callable[[int], np.ndarray]
INVALID_VALUE = 1


def wait_for(driver: Driver, stream: int) -> None:
    event = driver.event()
    driver("cuEventRecord", event, stream)
    driver("cuEventSynchronize", event)
    driver("cuEventDestroy", event)


def captured(fake: FakeCuda, stream: int, work: Callable[[], None]) -> int:
    """Capture what `work` enqueues, and return the graph."""
    fake.begin_capture(stream)
    work()
    return fake.end_capture(stream)


@pytest.mark.parametrize("kind", ALL_SCHEDULES)
@pytest.mark.parametrize("seed", range(5))
def test_replays_carry_what_is_there_when_they_run(fake: FakeCuda, driver: Driver, pinned: Pin, kind: str, seed: int):
    fake.schedule(kind, seed)
    stream, host = driver.stream(), pinned(8)
    array = DeviceArray(np.zeros(8, np.uint8), stream=stream)
    graph = captured(fake, stream, lambda: driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 8, stream))
    assert host.tolist() == [0] * 8
    for value in (1, 2, 3):
        array.write_later(value)
        fake.launch_graph(graph, stream)
        array.write_later(99)
        wait_for(driver, stream)
        assert host.tolist() == [value] * 8


def test_parameters_are_those_of_the_capture(fake: FakeCuda, driver: Driver):
    stream = driver.stream()
    array = DeviceArray(np.zeros(6, np.uint8), stream=stream)
    value = DeviceArray(np.full(2, 5, np.uint8), stream=stream)
    rows = Copy2D(
        src_type=2,
        src_device=value.pointer,
        src_pitch=1,
        dst_type=2,
        dst_device=array.pointer,
        dst_pitch=3,
        width=1,
        height=2,
    )

    def work() -> None:
        driver("cuMemcpy2DAsync", ctypes.addressof(rows), stream)
        driver("cuMemcpyDtoDAsync", array.pointer + 1, value.pointer, 2, stream)
        driver("cuMemsetD8Async", array.pointer + 5, 7, 1, stream)

    graph = captured(fake, stream, work)
    rows.dst_device = rows.src_device = 0
    fake.launch_graph(graph, stream)
    wait_for(driver, stream)
    assert array.peek().tolist() == [5, 5, 5, 5, 0, 7]


def test_a_producers_kernel_is_captured_with_its_values(fake: FakeCuda, driver: Driver):
    stream = driver.stream()
    array = DeviceArray(np.zeros(4, np.uint8), stream=stream)
    values = np.arange(4, dtype=np.uint8)
    graph = captured(fake, stream, lambda: array.write_later(values))
    values[:] = 9
    assert array.peek().tolist() == [0] * 4
    fake.launch_graph(graph, stream)
    wait_for(driver, stream)
    assert array.peek().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("poisons", [False, True], ids=["as the last left it", "poisoned"])
def test_an_early_reader_of_a_replay_sees_old_values_or_poison(
    fake: FakeCuda, driver: Driver, pinned: Pin, poisons: bool
):
    if poisons:
        fake.preset("replays_poison")
    stream, host, source = driver.stream(), pinned(4), DeviceArray(np.arange(4, dtype=np.uint8))
    host[:] = 7
    graph = captured(fake, stream, lambda: driver("cuMemcpyDtoHAsync", host.ctypes.data, source.pointer, 4, stream))
    assert host.tolist() == [7] * 4
    fake.launch_graph(graph, stream)
    assert host.tolist() == [PENDING if poisons else 7] * 4
    wait_for(driver, stream)
    assert host.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(30))
def test_launches_of_one_executable_do_not_overlap_even_in_two_streams(fake: FakeCuda, driver: Driver, seed: int):
    fake.schedule("shuffled", seed)
    streams = [driver.stream(), driver.stream()]
    a, b = DeviceArray(np.zeros(1, np.uint8)), DeviceArray(np.ones(1, np.uint8))
    middle = DeviceArray(np.zeros(1, np.uint8))

    def swap() -> None:
        for to, from_ in ((middle, a), (a, b), (b, middle)):
            driver("cuMemcpyDtoDAsync", to.pointer, from_.pointer, 1, streams[0])

    graph = captured(fake, streams[0], swap)
    for i in range(4):
        fake.launch_graph(graph, streams[i % 2])
    fake.drain()
    assert (a.peek()[0], b.peek()[0]) == (0, 1)  # interleaved they would be lost
    fake.launch_graph(graph, streams[0])
    fake.drain()
    assert (a.peek()[0], b.peek()[0]) == (1, 0)


def test_branches_of_a_graph_run_in_no_order(fake: FakeCuda, driver: Driver):
    origin, side, fork, join = driver.stream(), driver.stream(), driver.event(), driver.event()
    array = DeviceArray(np.zeros(1, np.uint8), stream=origin)

    def work() -> None:
        driver("cuEventRecord", fork, origin)
        driver("cuStreamWaitEvent", side, fork, 0)
        driver("cuMemsetD8Async", array.pointer, 1, 1, origin)
        driver("cuMemsetD8Async", array.pointer, 2, 1, side)  # a race
        driver("cuEventRecord", join, side)
        driver("cuStreamWaitEvent", origin, join, 0)

    graph, seen = captured(fake, origin, work), set()
    for seed in range(20):
        fake.schedule("shuffled", seed)
        fake.launch_graph(graph, origin)
        wait_for(driver, origin)
        seen.add(int(array.peek()[0]))
    assert seen == {1, 2}


def test_a_launch_inside_a_capture_becomes_part_of_it(fake: FakeCuda, driver: Driver):
    stream = driver.stream()
    array = DeviceArray(np.zeros(2, np.uint8), stream=stream)
    inner = captured(fake, stream, lambda: driver("cuMemsetD8Async", array.pointer, 1, 2, stream))

    def work() -> None:
        driver("cuMemsetD8Async", array.pointer, 2, 2, stream)
        fake.launch_graph(inner, stream)
        driver("cuMemsetD8Async", array.pointer, 3, 1, stream)

    outer = captured(fake, stream, work)
    fake.destroy_graph(inner)
    fake.launch_graph(outer, stream)
    wait_for(driver, stream)
    assert array.peek().tolist() == [3, 1]


def test_external_events_are_recorded_and_waited_for_by_each_replay(fake: FakeCuda, driver: Driver):
    stream, outside, started, done = driver.stream(), driver.stream(), driver.event(), driver.event()
    first, second = DeviceArray(np.zeros(1, np.uint8)), DeviceArray(np.zeros(1, np.uint8))

    def work() -> None:
        driver("cuStreamWaitEvent", stream, started, 1)
        driver("cuMemcpyDtoDAsync", second.pointer, first.pointer, 1, stream)
        driver("cuEventRecordWithFlags", done, stream, 1)
        driver("cuMemsetD8Async", first.pointer, 9, 1, stream)

    graph = captured(fake, stream, work)
    assert driver.is_done(done)  # not recorded by the capture
    first.write_later(5, stream=outside)
    driver("cuEventRecord", started, outside)
    fake.launch_graph(graph, stream)
    driver("cuEventSynchronize", done)
    assert (second.peek()[0], first.peek()[0]) == (5, 5)
    fake.drain()
    assert first.peek()[0] == 9
    assert driver.code("cuEventRecordWithFlags", done, stream, 1) == INVALID_VALUE  # outside of captures
    assert driver.code("cuStreamWaitEvent", stream, done, 1) == INVALID_VALUE


def test_threads_replay_while_another_captures(fake: FakeCuda, driver: Driver):
    fake.schedule("threaded", 3)
    stream, other = driver.stream(), driver.stream()
    array, counted = DeviceArray(np.zeros(8, np.uint8)), []
    graph = captured(fake, stream, lambda: driver("cuMemsetD8Async", array.pointer, 1, 8, stream))

    def replay() -> None:
        Driver().context()
        for _ in range(50):
            fake.launch_graph(graph, stream)
        counted.append(50)

    thread = threading.Thread(target=replay)
    thread.start()
    for _ in range(50):
        fake.begin_capture(other)
        fake.destroy_graph(fake.end_capture(other))
    thread.join(timeout=60)
    wait_for(driver, stream)
    assert (counted, array.peek().tolist()) == ([50], [1] * 8)
