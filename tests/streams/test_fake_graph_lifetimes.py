"""What graphs of the fake driver hold, what holds them, and what a replay may find gone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from helpers.fake_cuda import FRESH, FakeCuda, as_test
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import Driver

Pin = Callable[[int], np.ndarray]
INVALID_VALUE, IS_DESTROYED, UNSUPPORTED, INVALIDATED = 1, 709, 900, 901


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


def test_a_replay_of_freed_or_unregistered_memory_is_reported(fake: FakeCuda, driver: Driver, pinned: Pin):
    stream, host, pointer = driver.stream(), pinned(8), driver.alloc(8)
    copies = captured(fake, stream, lambda: driver("cuMemcpyDtoHAsync", host.ctypes.data, pointer, 8, stream))
    fills = captured(fake, stream, lambda: driver("cuMemsetD8Async", pointer, 1, 8, stream))
    driver("cuMemHostUnregister", host.ctypes.data)
    driver("cuMemFree", pointer)
    fake.launch_graph(copies, stream)
    fake.launch_graph(fills, stream)
    fake.drain()
    assert host.tolist() == [0] * 8
    assert fake.violations() == [
        "exec#1 uses host#1 after it was unregistered: cuMemcpyDtoHAsync in stream#1",
        "cuMemsetD8Async in stream#1 ran after device#1 was freed",
    ]
    fake.clear_violations()


def test_memory_that_dies_in_a_capture_stays_until_its_graph_goes(fake: FakeCuda, driver: Driver, pinned: Pin):
    stream, host = driver.stream(), pinned(4)

    def work() -> None:
        array = DeviceArray(np.zeros(4, np.uint8), stream=stream)
        array.write_later(3)
        driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 4, stream)

    graph = captured(fake, stream, work)
    assert fake.live("device_bytes") == 4
    fake.launch_graph(graph, stream)
    fake.destroy_graph(graph)
    assert fake.live("device_bytes") == 4  # the launch is still to run
    wait_for(driver, stream)
    assert (host.tolist(), fake.live("device_bytes")) == ([3] * 4, 0)


def test_graphs_own_what_is_allocated_in_their_capture(fake: FakeCuda, driver: Driver, pinned: Pin):
    stream, host, outside = driver.stream(), pinned(4), driver.alloc(8)
    driver("cuStreamBeginCapture", stream, 0)
    inside = int(driver.get(ctypes.c_uint64, "cuMemAllocAsync", after=(4, stream)))
    driver("cuMemcpyDtoHAsync", host.ctypes.data, inside, 4, stream)
    driver("cuMemsetD8Async", inside, 1, 4, stream)
    driver("cuMemFreeAsync", inside, stream)
    assert driver.code("cuMemFreeAsync", outside, stream) == INVALID_VALUE
    graph = driver.get_handle("cuStreamEndCapture", stream)
    executable = driver.get_handle_after("cuGraphInstantiate", graph, 0)
    assert driver.code_of_get("cuGraphInstantiate", after=(graph, 0)) == INVALID_VALUE  # one at a time
    for _ in range(2):
        driver("cuGraphLaunch", executable, stream)
        wait_for(driver, stream)
        assert set(host.tolist()) == {FRESH}  # nothing is left of the replay before
    driver("cuGraphDestroy", graph)
    driver("cuGraphExecDestroy", executable)
    wait_for(driver, stream)
    assert fake.live("device_bytes") == 8


def test_executables_are_counted_and_dead_handles_refused(fake: FakeCuda, driver: Driver):
    stream, pointer = driver.stream(), driver.alloc(8)
    driver("cuStreamBeginCapture", stream, 0)
    driver("cuMemsetD8Async", pointer, 1, 8, stream)
    graph = driver.get_handle("cuStreamEndCapture", stream)
    executables = [driver.get_handle_after("cuGraphInstantiate", graph, 0) for _ in range(2)]
    assert (fake.live("graphs"), fake.live("graph_execs")) == (1, 2)
    driver("cuGraphDestroy", graph)
    assert driver.code("cuGraphDestroy", graph) == INVALID_VALUE
    assert driver.code_of_get("cuGraphInstantiate", after=(graph, 0)) == INVALID_VALUE
    driver("cuGraphLaunch", executables[0], stream)
    for executable in executables:
        driver("cuGraphExecDestroy", executable)
    assert driver.code("cuGraphLaunch", executables[0], stream) == INVALID_VALUE
    assert (fake.live("graphs"), fake.live("graph_execs")) == (0, 0)
    wait_for(driver, stream)
    with as_test():
        fake.begin_capture(stream)
        assert driver.code("cuGraphDestroy", capturing_graph(driver, stream)) == INVALID_VALUE
    fake.end_capture(stream)
    assert fake.violations() == ["graph#2 was destroyed while it was being captured"]
    fake.clear_violations()


def capturing_graph(driver: Driver, stream: int) -> int | None:
    status, graph = ctypes.c_int(), ctypes.c_void_p()
    driver("cuStreamGetCaptureInfo", stream, ctypes.addressof(status), None, ctypes.addressof(graph), None, None)
    return graph.value


def test_a_graph_of_a_dead_context_is_not_launched(fake: FakeCuda, driver: Driver):
    stream, pointer = driver.stream(), driver.alloc(8)
    graph = captured(fake, stream, lambda: driver("cuMemsetD8Async", pointer, 1, 8, stream))
    driver("cuDevicePrimaryCtxReset", 0)
    with pytest.raises(AssertionError, match=str(IS_DESTROYED)):
        fake.launch_graph(graph, driver.stream())


def test_an_invalidated_capture_leaves_nothing_to_launch(fake: FakeCuda, driver: Driver):
    stream = driver.stream()
    fake.begin_capture(stream)
    with as_test():
        assert driver.code("cuStreamQuery", stream) == UNSUPPORTED
    assert fake.try_end_capture(stream) == (INVALIDATED, None)
    assert (fake.live("graphs"), fake.live("graph_execs")) == (0, 0)
