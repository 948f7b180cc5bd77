"""User objects of the fake driver: who holds them, and where and when their destructors run."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator

import pytest

from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_driver import Driver

INVALID_VALUE, NOT_PERMITTED = 1, 800
NO_DESTRUCTOR_SYNC, MOVE = 1, 1


class Destructor:
    """A C function that notes its argument and its thread."""

    def __init__(self) -> None:
        self.arguments: list[int] = []
        self.threads: set[int] = set()
        self.function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._call)
        self.address = ctypes.cast(self.function, ctypes.c_void_p).value

    def _call(self, argument: int) -> None:
        self.threads.add(threading.get_native_id())
        self.arguments.append(argument)


@pytest.fixture
def destructor(fake: FakeCuda) -> Iterator[Destructor]:
    """Its calls are over before it goes."""
    made = Destructor()
    yield made
    fake.reset()


def create(driver: Driver, destructor: Destructor, data: int = 7, references: int = 1) -> int:
    after = (data, destructor.address, references, NO_DESTRUCTOR_SYNC)
    made = driver.get_handle_after("cuUserObjectCreate", *after)
    assert made is not None
    return made


def graph_with(fake: FakeCuda, driver: Driver, stream: int, user_object: int, flags: int) -> int:
    """A graph, ready to be launched, that got its reference during the capture as a product gives it."""
    pointer, status, graph = driver.alloc(8), ctypes.c_int(), ctypes.c_void_p()
    fake.begin_capture(stream)
    driver("cuMemsetD8Async", pointer, 1, 8, stream)
    driver("cuStreamGetCaptureInfo", stream, ctypes.addressof(status), None, ctypes.addressof(graph), None, None)
    driver("cuGraphRetainUserObject", graph, user_object, 1, flags)
    assert graph.value is not None
    assert fake.end_capture(stream) == graph.value
    return graph.value


def test_the_last_release_destroys_on_another_thread(fake: FakeCuda, driver: Driver, destructor: Destructor):
    made = create(driver, destructor, data=1234, references=2)
    driver("cuUserObjectRelease", made, 1)
    fake.drain()
    assert (destructor.arguments, fake.live("user_objects")) == ([], 1)
    driver("cuUserObjectRelease", made, 1)
    fake.drain()
    assert (destructor.arguments, fake.live("user_objects")) == ([1234], 0)
    assert threading.get_native_id() not in destructor.threads
    assert fake.live("user_objects_destroyed") == 1


def test_a_destructor_comes_some_time_later(fake: FakeCuda, driver: Driver, destructor: Destructor):
    made = create(driver, destructor)
    with fake.held():
        driver("cuUserObjectRelease", made, 1)
        time.sleep(0.05)
        assert destructor.arguments == []
    fake.drain()
    assert destructor.arguments == [7]


def test_references_of_callers_can_be_added(fake: FakeCuda, driver: Driver, destructor: Destructor):
    made = create(driver, destructor)
    driver("cuUserObjectRetain", made, 2)
    driver("cuUserObjectRelease", made, 2)
    fake.drain()
    assert destructor.arguments == []
    driver("cuUserObjectRelease", made, 1)
    fake.drain()
    assert destructor.arguments == [7]
    assert driver.code("cuUserObjectRelease", made, 1) == INVALID_VALUE
    assert fake.violations() == ["a user object was released that is gone"]
    fake.clear_violations()


@pytest.mark.parametrize("flags", [0, MOVE], ids=["a new reference", "a moved one"])
def test_a_graph_holds_its_objects_until_it_and_its_launches_are_gone(
    fake: FakeCuda, driver: Driver, destructor: Destructor, flags: int
):
    stream, made = driver.stream(), create(driver, destructor)
    graph = graph_with(fake, driver, stream, made, flags)
    if flags != MOVE:
        driver("cuUserObjectRelease", made, 1)
    fake.launch_graph(graph, stream)
    fake.destroy_graph(graph)
    assert fake.live("user_objects") == 1  # the launch is still to run
    fake.drain()
    assert (destructor.arguments, fake.live("user_objects")) == ([7], 0)


def test_an_executable_holds_references_of_its_own(fake: FakeCuda, driver: Driver, destructor: Destructor):
    stream, made = driver.stream(), create(driver, destructor)
    graph = graph_with(fake, driver, stream, made, MOVE)
    executable = driver.get_handle_after("cuGraphInstantiate", graph, 0)
    fake.destroy_graph(graph)
    fake.drain()
    assert destructor.arguments == []
    driver("cuGraphExecDestroy", executable)
    fake.drain()
    assert destructor.arguments == [7]


def test_what_a_graph_gets_after_it_was_instantiated_goes_with_the_graph(
    fake: FakeCuda, driver: Driver, destructor: Destructor
):
    stream = driver.stream()
    graph = graph_with(fake, driver, stream, create(driver, destructor, data=1), MOVE)
    executable = driver.get_handle_after("cuGraphInstantiate", graph, 0)
    driver("cuGraphRetainUserObject", graph, create(driver, destructor, data=2), 1, MOVE)
    fake.destroy_graph(graph)
    fake.drain()
    assert destructor.arguments == [2]
    driver("cuGraphExecDestroy", executable)
    fake.drain()
    assert destructor.arguments == [2, 1]


def test_a_launch_inside_a_capture_passes_references_on(fake: FakeCuda, driver: Driver, destructor: Destructor):
    stream = driver.stream()
    inner = graph_with(fake, driver, stream, create(driver, destructor), MOVE)
    fake.begin_capture(stream)
    fake.launch_graph(inner, stream)
    outer = fake.end_capture(stream)
    fake.destroy_graph(inner)
    fake.drain()
    assert destructor.arguments == []
    fake.destroy_graph(outer)
    fake.drain()
    assert destructor.arguments == [7]


def test_a_failed_capture_lets_go_of_its_objects(fake: FakeCuda, driver: Driver, destructor: Destructor):
    stream, made = driver.stream(), create(driver, destructor)
    status, graph = ctypes.c_int(), ctypes.c_void_p()
    fake.begin_capture(stream)
    driver("cuStreamGetCaptureInfo", stream, ctypes.addressof(status), None, ctypes.addressof(graph), None, None)
    driver("cuGraphRetainUserObject", graph, made, 1, MOVE)
    assert driver.code("cuStreamQuery", stream) == 900
    fake.clear_violations()
    assert fake.try_end_capture(stream) == (901, None)
    fake.drain()
    assert destructor.arguments == [7]


def test_a_destructor_may_not_call_the_driver(fake: FakeCuda, driver: Driver):
    codes: list[int] = []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: codes.append(driver.code("cuStreamQuery", 1)))
    address = ctypes.cast(function, ctypes.c_void_p).value
    made = driver.get_handle_after("cuUserObjectCreate", None, address, 1, NO_DESTRUCTOR_SYNC)
    driver("cuUserObjectRelease", made, 1)
    fake.drain()
    assert codes == [NOT_PERMITTED]
    assert fake.violations() == ["cuStreamQuery was called in the destructor of a user object"]
    fake.clear_violations()


def test_unknown_flags_and_counts_are_refused(fake: FakeCuda, driver: Driver, destructor: Destructor):
    for after in ((0, destructor.address, 1, 0), (0, destructor.address, 0, 1), (0, None, 1, 1)):
        assert driver.code_of_get("cuUserObjectCreate", after=after) == INVALID_VALUE
    made = create(driver, destructor)
    assert driver.code("cuUserObjectRetain", made, 0) == INVALID_VALUE
    assert driver.code("cuUserObjectRelease", made, 1 << 31) == INVALID_VALUE
    assert driver.code("cuGraphRetainUserObject", None, made, 1, 0) == INVALID_VALUE
    driver("cuUserObjectRelease", made, 1)
    fake.drain()
    assert destructor.arguments == [7]
