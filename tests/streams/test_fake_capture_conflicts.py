"""What destroys a capture of the fake driver from outside: unsafe calls, context-wide ones, the legacy stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from helpers.fake_cuda import LEGACY, FakeCuda, as_test
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import Driver
from helpers.threads_of_driver import in_another_thread

Pages = Callable[[int], Any]
UNSUPPORTED, INVALIDATED, IMPLICIT = 900, 901, 906
GLOBAL, THREAD_LOCAL, RELAXED = range(3)
NONE, ACTIVE, BROKEN = range(3)
MODES = ("global", "thread_local", "relaxed")


def allocate(driver: Driver) -> int:
    return driver.code_of_get("cuMemAlloc", after=(8,))


@pytest.mark.parametrize("mode", range(3), ids=MODES)
@pytest.mark.parametrize("thread_mode", range(3), ids=["as global", "as thread local", "as relaxed"])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["in its thread", "in another thread"])
def test_an_unsafe_call_is_refused_by_the_modes_of_capture_and_thread(
    fake: FakeCuda, driver: Driver, mode: int, thread_mode: int, elsewhere: bool
):
    stream = driver.stream()
    fake.begin_capture(stream, MODES[mode])

    def call() -> int:
        before = driver.exchange_capture_mode(thread_mode)
        code = allocate(driver)
        driver.exchange_capture_mode(before)
        return code

    code = in_another_thread(call) if elsewhere else call()
    minds = mode == GLOBAL and thread_mode == GLOBAL if elsewhere else mode != RELAXED and thread_mode != RELAXED
    assert code == (UNSUPPORTED if minds else 0)
    assert driver.capture_status(stream) == (BROKEN if minds else ACTIVE)
    answer, graph = fake.try_end_capture(stream)
    assert (answer, graph is None) == ((INVALIDATED, True) if minds else (0, False))
    expected = ["cuMemAlloc bytes=8 invalidated the capture of stream#1"] if minds else []
    assert fake.violations() == expected
    assert driver.capture_status(stream) == NONE
    fake.clear_violations()


def unsafe_calls(driver: Driver, memory: int) -> dict[str, Callable[[], int]]:
    """Calls that the rules of captures forbid unless the thread is relaxed; none touches the capture itself."""
    stream, event, pointer = driver.stream(), driver.event(), driver.alloc(8)
    driver("cuEventRecord", event, stream)
    pinned = driver.get_handle_after("cuMemHostAlloc", 8, 3)
    return {
        "cuEventQuery": lambda: driver.code("cuEventQuery", event),
        "cuEventSynchronize": lambda: driver.code("cuEventSynchronize", event),
        "cuStreamQuery": lambda: driver.code("cuStreamQuery", stream),
        "cuStreamSynchronize": lambda: driver.code("cuStreamSynchronize", stream),
        "cuMemAlloc": lambda: allocate(driver),
        "cuMemFree": lambda: driver.code("cuMemFree", pointer),
        "cuMemHostAlloc": lambda: driver.code_of_get("cuMemHostAlloc", after=(8, 3)),
        "cuMemFreeHost": lambda: driver.code("cuMemFreeHost", pinned),
        "cuMemHostRegister": lambda: driver.code("cuMemHostRegister", memory, 4096, 3),
        "cuMemHostUnregister": lambda: driver.code("cuMemHostUnregister", memory),
    }


def test_every_unsafe_call_destroys_somebody_elses_capture_unless_relaxed(fake: FakeCuda, driver: Driver, pages: Pages):
    memory, stream = pages(4096), driver.stream()
    calls = unsafe_calls(driver, memory.ctypes.data)
    for name, call in calls.items():
        fake.begin_capture(stream)
        assert in_another_thread(call) == UNSUPPORTED, name
        assert fake.try_end_capture(stream) == (INVALIDATED, None)
        assert [line.split()[0] for line in fake.violations()] == [name]
        fake.clear_violations()
    fake.drain()
    fake.begin_capture(stream)
    driver.exchange_capture_mode(RELAXED)
    assert {name: call() for name, call in calls.items()} == dict.fromkeys(calls, 0)
    assert fake.end_capture(stream) != 0


def test_what_frameworks_do_during_a_capture_is_safe(fake: FakeCuda, driver: Driver, pinned: Pages):
    stream, other, host, array = driver.stream(), driver.stream(), pinned(8), DeviceArray(np.zeros(8, np.uint8))
    fake.begin_capture(stream)

    def work() -> list[int]:
        event, made = driver.event(), driver.stream()
        driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 8, other)
        driver("cuEventRecord", event, other)
        driver("cuStreamWaitEvent", made, event, 0)
        driver("cuEventDestroy", event)
        driver("cuStreamDestroy", made)
        return [driver.capture_status(other), driver.get_handle("cuStreamGetCtx", stream) or 0]

    assert in_another_thread(work)[0] == NONE
    assert driver.capture_status(stream) == ACTIVE
    assert fake.end_capture(stream) != 0
    fake.drain()


def test_the_culprit_is_named_whoever_it_was(fake: FakeCuda, driver: Driver):
    stream = driver.stream()
    fake.begin_capture(stream, "thread_local")
    with as_test():
        allocate(driver)
    assert fake.captures() == ["stream#1 thread_local invalidated by test: cuMemAlloc bytes=8, ongoing"]
    allocate(driver)  # too late to be the culprit
    assert fake.try_end_capture(stream) == (INVALIDATED, None)
    assert fake.captures() == ["stream#1 thread_local invalidated by test: cuMemAlloc bytes=8, ended"]
    assert fake.violations() == []


@pytest.mark.parametrize("relaxed", [False, True], ids=["in mode global", "relaxed"])
def test_context_wide_calls_destroy_captures_in_their_context(fake: FakeCuda, driver: Driver, relaxed: bool):
    stream, context, event = driver.stream(), driver.context(), driver.event()
    for call in (
        lambda: driver.code("cuCtxRecordEvent", context, event),
        lambda: driver.code("cuCtxSynchronize"),
    ):
        fake.begin_capture(stream, "relaxed")
        before = driver.exchange_capture_mode(RELAXED if relaxed else GLOBAL)
        assert in_another_thread(call) == UNSUPPORTED
        driver.exchange_capture_mode(before)
        assert fake.try_end_capture(stream) == (INVALIDATED, None)
    culprits = ["cuCtxRecordEvent ctx#0 event=event#1", "cuCtxSynchronize"]
    assert fake.violations() == [f"{culprit} invalidated the capture of stream#1" for culprit in culprits]
    fake.clear_violations()


def test_context_wide_calls_leave_captures_of_other_devices_alone(fake: FakeCuda):
    fake.preset("two_devices")
    driver = Driver()
    driver.context(1)
    stream = driver.stream()
    fake.begin_capture(stream, "relaxed", device=1)
    driver("cuCtxRecordEvent", driver.context(0), driver.event())
    driver.context(1)
    assert driver.capture_status(stream) == ACTIVE
    assert fake.end_capture(stream, device=1) != 0
    fake.drain()


def uses_of_the_legacy_stream(driver: Driver, host: int) -> dict[str, Callable[[], int]]:
    event, pointer = driver.event(), driver.alloc(8)
    return {
        "cuMemsetD8Async": lambda: driver.code("cuMemsetD8Async", pointer, 1, 8, LEGACY),
        "cuMemcpyDtoHAsync": lambda: driver.code("cuMemcpyDtoHAsync", host, pointer, 8, LEGACY),
        "cuEventRecord": lambda: driver.code("cuEventRecord", event, LEGACY),
        "cuStreamWaitEvent": lambda: driver.code("cuStreamWaitEvent", LEGACY, event, 0),
        "cuStreamQuery": lambda: driver.code("cuStreamQuery", LEGACY),
    }


def test_the_legacy_stream_is_unusable_while_a_blocking_stream_captures(fake: FakeCuda, driver: Driver, pinned: Pages):
    stream, host = driver.stream(blocking=True), pinned(8)
    for name, use in uses_of_the_legacy_stream(driver, host.ctypes.data).items():
        fake.begin_capture(stream, "relaxed")
        assert driver.code_of_get("cuStreamIsCapturing", LEGACY) == IMPLICIT
        assert driver.capture_status(stream) == ACTIVE  # asking is no use
        assert use() == IMPLICIT, name
        assert fake.try_end_capture(stream) == (INVALIDATED, None)
        assert driver.capture_status(LEGACY) == NONE
        assert [line.split()[0] for line in fake.violations()] == [name]
        fake.clear_violations()


def test_the_legacy_stream_is_free_while_a_non_blocking_stream_captures(fake: FakeCuda, driver: Driver, pinned: Pages):
    stream, host = driver.stream(), pinned(8)
    fake.begin_capture(stream, "relaxed")
    for name, use in uses_of_the_legacy_stream(driver, host.ctypes.data).items():
        assert use() in (0, 600), name
    assert driver.capture_status(LEGACY) == NONE
    assert fake.end_capture(stream) != 0
    fake.drain()
