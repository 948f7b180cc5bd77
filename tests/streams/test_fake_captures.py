"""Captures of the fake driver: how they begin and end, and what may be asked meanwhile."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from helpers.fake_cuda import LEGACY, PER_THREAD, FakeCuda, as_test
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import Driver
from helpers.threads_of_driver import in_another_thread

INVALID_VALUE, ILLEGAL_STATE = 1, 401
UNSUPPORTED, INVALIDATED, IMPLICIT, CAPTURED_EVENT, WRONG_THREAD = 900, 901, 906, 907, 908
GLOBAL, THREAD_LOCAL, RELAXED = range(3)
NONE, ACTIVE, BROKEN = range(3)
MODES = ("global", "thread_local", "relaxed")


def test_a_stream_says_whether_it_is_capturing(fake: FakeCuda, driver: Driver):
    stream, other = driver.stream(), driver.stream()
    assert driver.capture_status(stream) == NONE
    driver("cuStreamBeginCapture", stream, GLOBAL)
    assert (driver.capture_status(stream), driver.capture_status(other)) == (ACTIVE, NONE)
    graph = driver.get_handle("cuStreamEndCapture", stream)
    assert graph is not None
    assert (driver.capture_status(stream), fake.live("captures"), fake.live("graphs")) == (NONE, 0, 1)
    assert fake.captures() == ["stream#1 global ended"]
    driver("cuGraphDestroy", graph)
    assert fake.live("graphs") == 0


def capture_info(driver: Driver, stream: int) -> tuple[int, int, int | None, int]:
    """(status, id, graph, number of dependencies)."""
    status, number, graph = ctypes.c_int(9), ctypes.c_uint64(9), ctypes.c_void_p(9)
    nodes, count = ctypes.c_void_p(9), ctypes.c_size_t(9)
    places = [ctypes.addressof(place) for place in (status, number, graph, nodes, count)]
    driver("cuStreamGetCaptureInfo", stream, *places)
    assert (nodes.value is None) == (count.value == 0)
    return status.value, number.value, graph.value, count.value


def test_capture_info_tells_id_graph_and_dependencies(fake: FakeCuda, driver: Driver):
    stream, pointer = driver.stream(), driver.alloc(8)
    assert capture_info(driver, stream) == (NONE, 0, None, 0)
    driver("cuStreamBeginCapture", stream, GLOBAL)
    status, first, graph, count = capture_info(driver, stream)
    assert (status, count) == (ACTIVE, 0)
    driver("cuMemsetD8Async", pointer, 1, 8, stream)
    driver("cuMemsetD8Async", pointer, 2, 8, stream)
    assert capture_info(driver, stream) == (ACTIVE, first, graph, 1)
    assert driver.get_handle("cuStreamEndCapture", stream) == graph
    driver("cuStreamBeginCapture", stream, GLOBAL)
    assert capture_info(driver, stream)[1] > first
    with as_test():
        driver.code("cuStreamQuery", stream)
    assert capture_info(driver, stream) == (BROKEN, 0, None, 0)
    assert fake.try_end_capture(stream) == (INVALIDATED, None)


@pytest.mark.parametrize("name", ["cuStreamQuery", "cuStreamSynchronize"])
def test_a_capturing_stream_cannot_be_asked_even_by_a_relaxed_thread(fake: FakeCuda, driver: Driver, name: str):
    stream = driver.stream()
    fake.begin_capture(stream, "relaxed")
    driver.exchange_capture_mode(RELAXED)
    assert driver.code(name, stream) == UNSUPPORTED
    assert driver.code(name, stream) == INVALIDATED
    assert driver.code("cuMemsetD8Async", driver.alloc(8), 1, 8, stream) == INVALIDATED
    assert fake.try_end_capture(stream) == (INVALIDATED, None)
    assert driver.code(name, stream) == 0
    assert fake.violations() == [f"{name} stream#1 invalidated the capture of stream#1"]
    fake.clear_violations()


@pytest.mark.parametrize("name", ["cuEventQuery", "cuEventSynchronize"])
def test_a_captured_event_cannot_be_asked_during_the_capture(fake: FakeCuda, driver: Driver, name: str):
    stream, event = driver.stream(), driver.event()
    fake.begin_capture(stream)
    driver.exchange_capture_mode(RELAXED)
    driver("cuEventRecord", event, stream)
    assert driver.code(name, event) == CAPTURED_EVENT
    assert fake.try_end_capture(stream) == (INVALIDATED, None)
    assert fake.violations() == [f"{name} event#1 invalidated the capture of stream#1"]
    fake.clear_violations()


@pytest.mark.parametrize(("preset", "code"), [("driver_580", CAPTURED_EVENT), ("stale_events_are_invalid", 1)])
def test_a_captured_event_means_nothing_until_it_is_recorded_again(
    fake: FakeCuda, driver: Driver, preset: str, code: int
):
    fake.preset(preset)
    stream, event = driver.stream(), driver.event()
    fake.begin_capture(stream)
    driver("cuEventRecord", event, stream)
    fake.end_capture(stream)
    assert driver.code("cuEventQuery", event) == code
    assert driver.code("cuStreamWaitEvent", stream, event, 0) == INVALID_VALUE
    driver("cuEventRecord", event, stream)
    driver("cuEventSynchronize", event)
    assert driver.is_done(event)


def test_the_legacy_stream_does_not_capture_and_no_stream_twice(fake: FakeCuda, driver: Driver):
    stream = driver.stream()
    assert driver.code("cuStreamBeginCapture", LEGACY, GLOBAL) == UNSUPPORTED
    assert driver.code("cuStreamBeginCapture", stream, 3) == INVALID_VALUE
    assert driver.code_of_get("cuStreamEndCapture", stream) == ILLEGAL_STATE
    driver("cuStreamBeginCapture", stream, GLOBAL)
    assert driver.code("cuStreamBeginCapture", stream, GLOBAL) == ILLEGAL_STATE
    assert driver.code("cuStreamEndCapture", stream, None) == INVALID_VALUE
    assert driver.get_handle("cuStreamEndCapture", stream) is not None


def test_the_stream_of_a_thread_captures_as_a_blocking_one(fake: FakeCuda, driver: Driver):
    fake.begin_capture(PER_THREAD)
    assert driver.capture_status(PER_THREAD) == ACTIVE
    assert driver.code_of_get("cuStreamIsCapturing", LEGACY) == IMPLICIT
    assert in_another_thread(lambda: driver.capture_status(PER_THREAD)) == NONE
    assert fake.end_capture(PER_THREAD) != 0


@pytest.mark.parametrize("spares", [False, True], ids=["destroyed", "spared"])
@pytest.mark.parametrize("mode", MODES)
def test_only_a_relaxed_capture_is_ended_by_another_thread(fake: FakeCuda, driver: Driver, mode: str, spares: bool):
    if spares:
        fake.preset("wrong_ends_spare")
    stream = driver.stream()
    fake.begin_capture(stream, mode)
    code = in_another_thread(lambda: fake.try_end_capture(stream)[0])
    assert code == (0 if mode == "relaxed" else WRONG_THREAD)
    after = NONE if mode == "relaxed" else ACTIVE if spares else BROKEN
    assert driver.capture_status(stream) == after
    if after:
        assert fake.try_end_capture(stream)[0] == (0 if spares else INVALIDATED)


def test_destroying_the_stream_or_its_context_ends_a_capture(fake: FakeCuda, driver: Driver):
    stream = driver.stream()
    fake.begin_capture(stream)
    with as_test():
        driver("cuStreamDestroy", stream)
    assert (fake.live("captures"), fake.live("graphs")) == (0, 0)
    fake.begin_capture(driver.stream())
    with as_test():
        driver("cuDevicePrimaryCtxReset", 0)
    assert (fake.live("captures"), fake.live("graphs")) == (0, 0)
    assert [line.rsplit(" ", 4)[1:] for line in fake.captures()] == [
        ["ended", "with", "its", "stream"],
        ["ended", "with", "its", "context"],
    ]


def test_errors_of_captures_have_names(fake: FakeCuda):
    driver = Driver()
    names = {code: driver.get(ctypes.c_char_p, "cuGetErrorName", code) for code in range(900, 909)}
    assert all(name.startswith(b"CUDA_ERROR_") for name in names.values())
    assert names[906] == b"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"
    assert len(set(names.values())) == 9


def test_pageable_copies_are_captured_only_where_told_to(fake: FakeCuda, driver: Driver):
    stream, source, pageable = driver.stream(), DeviceArray(np.arange(8, dtype=np.uint8)), np.zeros(8, np.uint8)
    with as_test():
        fake.begin_capture(stream)
        assert driver.code("cuMemcpyDtoHAsync", pageable.ctypes.data, source.pointer, 8, stream) == UNSUPPORTED
        assert fake.try_end_capture(stream) == (INVALIDATED, None)
        fake.preset("captures_pageable_copies")
        fake.begin_capture(stream)
        driver("cuMemcpyDtoHAsync", pageable.ctypes.data, source.pointer, 8, stream)
    graph = fake.end_capture(stream)
    assert pageable.tolist() == [0] * 8
    fake.launch_graph(graph, stream)
    fake.drain()
    assert pageable.tolist() == list(range(8))


def test_a_captured_pageable_source_is_read_by_the_replay(fake: FakeCuda, driver: Driver):
    fake.preset("captures_pageable_copies")
    stream, target, pageable = driver.stream(), DeviceArray(np.zeros(8, np.uint8)), np.zeros(8, np.uint8)
    with as_test():
        fake.begin_capture(stream)
        driver("cuMemcpyHtoDAsync", target.pointer, pageable.ctypes.data, 8, stream)
    graph = fake.end_capture(stream)
    pageable[:] = range(8)
    fake.launch_graph(graph, stream)
    fake.drain()
    assert target.peek().tolist() == list(range(8))
