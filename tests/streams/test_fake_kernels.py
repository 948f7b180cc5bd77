"""Launches on the fake device: what is checked at the call, in which order kernels run, and what they may touch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from helpers.fake_cuda import ALL_SCHEDULES, FakeCuda
from helpers.fake_cuda_driver import Driver
from helpers.fake_kernels import DeviceBytes, Kernels, ToyArgs

INVALID_VALUE, INVALID_IMAGE, INVALID_HANDLE, NOT_FOUND, ILLEGAL_ADDRESS, MISALIGNED = 1, 200, 400, 500, 700, 716


@pytest.fixture
def kernels(driver: Driver) -> Kernels:
    return Kernels(driver)


def numbers(first: int, count: int) -> np.ndarray:
    return np.arange(first, first + count, dtype=np.uint32)


@pytest.mark.parametrize("schedule", ALL_SCHEDULES)
def test_kernels_of_one_stream_run_in_order(fake: FakeCuda, driver: Driver, kernels: Kernels, schedule: str):
    fake.schedule(schedule, 3)
    first, second, stream = DeviceBytes(driver, 4000), DeviceBytes(driver, 4000), driver.stream()
    kernels.launch("toy_fill", ToyArgs(to=first.pointer, count=1000, value=5), 3, 64, stream)
    kernels.launch("toy_copy", ToyArgs(to=second.pointer, source=first.pointer, count=1000), 2, 32, stream)
    kernels.launch("toy_fill", ToyArgs(to=first.pointer, count=1000, value=9), 1, 32, stream)
    fake.drain()
    assert np.array_equal(second.peek(np.uint32), numbers(5, 1000))
    assert np.array_equal(first.peek(np.uint32), numbers(9, 1000))


@pytest.mark.parametrize("seed", range(6))
def test_threads_of_a_block_meet_at_barriers(fake: FakeCuda, driver: Driver, kernels: Kernels, seed: int):
    fake.kernel_seed(seed)
    source = DeviceBytes.of(driver, numbers(0, 1024))
    to = DeviceBytes(driver, 4096)
    kernels.run("toy_reverse", ToyArgs(to=to.pointer, source=source.pointer, count=1024), 1, 128)
    assert np.array_equal(to.peek(np.uint32), numbers(0, 1024).reshape(-1, 128)[:, ::-1].ravel())


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_a_missing_barrier_is_a_race(fake: FakeCuda, driver: Driver, kernels: Kernels, seed: int, nth: int):
    fake.kernel_seed(seed)
    source = DeviceBytes.of(driver, numbers(0, 1024))
    to = DeviceBytes(driver, 4096)
    with fake.kernel_mistake("barrier", nth, period=2):
        kernels.run("toy_reverse", ToyArgs(to=to.pointer, source=source.pointer, count=1024), 1, 128)
    assert any("since the last barrier" in line for line in fake.violations())
    fake.clear_violations()


MISTAKES = {
    "toy_overrun": "wrote 1 bytes at offset 64 of device#1 (64 bytes)",
    "toy_misaligned": "used a misaligned address for 4 bytes",
    "toy_unlisted_barrier": "waits at a barrier, and its entry in the list says that it does not",
    "toy_divergent": "ended in some threads of a block while others waited at a barrier",
    "toy_beyond_shared": "wrote 4 bytes of shared memory that nothing is declared at",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_reported_with_the_kernels_name(fake: FakeCuda, driver: Driver, kernels: Kernels, name: str):
    memory = DeviceBytes(driver, 64)
    count = {"toy_overrun": 64, "toy_divergent": 3, "toy_beyond_shared": 17}.get(name, 1)
    kernels.run(name, ToyArgs(to=memory.pointer, count=count), threads=8)
    assert fake.violations() == [f"kernel {name} {MISTAKES[name]}"]
    fake.clear_violations()


def test_shared_memory_holds_poison_at_first(fake: FakeCuda, driver: Driver, kernels: Kernels):
    to = DeviceBytes(driver, 4)
    for _ in range(2):
        kernels.run("toy_unset_shared", ToyArgs(to=to.pointer, count=3), threads=1)
        assert to.peek(np.uint32).tolist() == [0xCBCBCBCB]


@pytest.mark.parametrize(
    ("name", "code"),
    [("toy_unlisted_barrier", ILLEGAL_ADDRESS), ("toy_divergent", ILLEGAL_ADDRESS), ("toy_misaligned", MISALIGNED)],
)
def test_a_kernel_that_cannot_go_on_ends_its_context(
    fake: FakeCuda, driver: Driver, kernels: Kernels, name: str, code: int
):
    kernels.run(name, ToyArgs(to=DeviceBytes(driver, 64).pointer, count=3), threads=8)
    assert driver.code("cuCtxSynchronize") == code
    fake.clear_violations()


def test_device_memory_is_judged_to_the_byte(fake: FakeCuda, driver: Driver, kernels: Kernels):
    to, source = DeviceBytes(driver, 1000), DeviceBytes.of(driver, numbers(0, 250))
    kernels.run("toy_copy", ToyArgs(to=to.pointer, source=source.pointer, count=251), threads=32)
    assert fake.violations() == [
        "kernel toy_copy read 4 bytes at offset 1000 of device#2 (1000 bytes)",
        "kernel toy_copy wrote 4 bytes at offset 1000 of device#1 (1000 bytes)",
    ]
    fake.clear_violations()
    assert np.array_equal(to.peek(np.uint32), numbers(0, 250))


def test_freed_memory_is_reported_when_the_kernel_runs(fake: FakeCuda, driver: Driver, kernels: Kernels):
    table, gone = DeviceBytes(driver, 8), DeviceBytes(driver, 8)
    table.poke(np.array([gone.pointer], np.uint64))
    kernels.launch("toy_through_table", ToyArgs(source=table.pointer), threads=1)
    gone.free()
    fake.drain()
    assert fake.violations() == ["kernel toy_through_table wrote 4 bytes at offset 0 of device#2 (8 bytes, freed)"]
    fake.clear_violations()


def test_freeing_what_a_pending_kernel_was_given_is_reported(fake: FakeCuda, driver: Driver, kernels: Kernels):
    memory = DeviceBytes(driver, 64)
    kernels.launch("toy_fill", ToyArgs(to=memory.pointer, count=16), 1, 32, driver.stream())
    memory.free()
    assert fake.violations() == ["device#1 was freed with pending work: toy_fill in stream#1"]
    fake.drain()
    fake.clear_violations()


def test_host_memory_that_is_not_registered_is_reported(fake: FakeCuda, driver: Driver, kernels: Kernels):
    host = np.zeros(8, np.uint32)
    kernels.run("toy_fill", ToyArgs(to=host.ctypes.data, count=8), threads=8)
    assert fake.violations() == ["kernel toy_fill touched host memory that is not registered"]
    fake.clear_violations()


def test_memory_that_is_not_there_ends_the_context(fake: FakeCuda, driver: Driver, kernels: Kernels):
    kernels.run("toy_fill", ToyArgs(to=64, count=1), threads=1)
    assert driver.code("cuCtxSynchronize") == ILLEGAL_ADDRESS
    assert fake.violations() == ["kernel toy_fill touched memory that is not there"]
    fake.clear_violations()


def test_memory_of_another_device_is_reported(fake: FakeCuda, driver: Driver):
    fake.preset("two_devices")
    theirs = fake.library.fake_alloc(64, 1)
    Kernels(driver).run("toy_fill", ToyArgs(to=theirs, count=1), threads=1)
    assert fake.violations() == ["kernel toy_fill wrote 4 bytes at offset 0 of device#1 (64 bytes, of another device)"]
    fake.clear_violations()


@pytest.mark.parametrize(
    ("blocks", "threads"),
    [(0, 32), (1, 0), (1, 1025), (1 << 31, 32)],
    ids=["no blocks", "no threads", "too many threads", "too many blocks"],
)
def test_impossible_grids_are_refused(fake: FakeCuda, kernels: Kernels, blocks: int, threads: int):
    assert kernels.code_of_launch("toy_fill", ToyArgs(), blocks, threads) == INVALID_VALUE


def test_a_launch_into_a_stream_of_another_context_is_refused(fake: FakeCuda, driver: Driver):
    fake.preset("two_devices")
    kernels = Kernels(driver)
    kernels.function("toy_fill")
    driver.context(1)
    theirs = driver.stream()
    assert kernels.code_of_launch("toy_fill", ToyArgs(), stream=theirs) == INVALID_HANDLE
    assert fake.violations() == ["toy_fill was launched in stream#1 of another context"]
    fake.clear_violations()


def test_arguments_of_a_captured_launch_are_frozen(fake: FakeCuda, driver: Driver, kernels: Kernels):
    memory, stream = DeviceBytes(driver, 40), driver.stream()
    kernels.function("toy_fill")  # loading is not allowed in a capture
    driver("cuStreamBeginCapture", stream, 0)
    kernels.launch("toy_fill", ToyArgs(to=memory.pointer, count=10, value=4), 1, 32, stream)
    graph = driver.get_handle("cuStreamEndCapture", stream)
    executable = driver.get_handle_after("cuGraphInstantiate", graph, 0)
    for _ in range(2):
        memory.poke(np.zeros(10, np.uint32))
        driver("cuGraphLaunch", executable, stream)
        fake.drain()
        assert np.array_equal(memory.peek(np.uint32), numbers(4, 10))


def test_a_graph_whose_memory_was_freed_is_reported(fake: FakeCuda, driver: Driver, kernels: Kernels):
    memory, stream = DeviceBytes(driver, 40), driver.stream()
    kernels.function("toy_fill")  # loading is not allowed in a capture
    driver("cuStreamBeginCapture", stream, 0)
    kernels.launch("toy_fill", ToyArgs(to=memory.pointer, count=10), 1, 32, stream)
    graph = driver.get_handle("cuStreamEndCapture", stream)
    executable = driver.get_handle_after("cuGraphInstantiate", graph, 0)
    memory.free()
    driver("cuGraphLaunch", executable, stream)
    fake.drain()
    assert fake.violations() == ["toy_fill in stream#1 ran after device#1 was freed"]
    fake.clear_violations()


def test_a_launch_after_its_library_was_unloaded_is_reported(fake: FakeCuda, driver: Driver, kernels: Kernels):
    memory = DeviceBytes(driver, 64)
    kernels.launch("toy_fill", ToyArgs(to=memory.pointer, count=1), 1, 32)
    driver("cuLibraryUnload", kernels.library)
    assert kernels.code_of_launch("toy_fill", ToyArgs()) == INVALID_HANDLE
    assert fake.violations() == [
        "library#1 was unloaded with pending work: toy_fill in legacy",
        "a kernel was launched after its library or context was gone",
    ]
    fake.clear_violations()


@pytest.mark.parametrize(
    ("preset", "code"),
    [
        ("image_invalid", 200),
        ("image_of_other_architectures", 209),
        ("image_with_invalid_ptx", 218),
        ("image_of_newer_toolkit", 222),
    ],
)
def test_an_image_may_be_refused(fake: FakeCuda, driver: Driver, preset: str, code: int):
    fake.preset(preset)
    image = ctypes.create_string_buffer(b"FAKE")
    rest = (ctypes.addressof(image), None, None, 0, None, None, 0)
    assert driver.code_of_get("cuLibraryLoadData", after=rest) == code


def test_only_images_are_loaded_and_only_known_kernels_found(fake: FakeCuda, driver: Driver, kernels: Kernels):
    image = ctypes.create_string_buffer(b"something else")
    rest = (ctypes.addressof(image), None, None, 0, None, None, 0)
    assert driver.code_of_get("cuLibraryLoadData", after=rest) == INVALID_IMAGE
    assert driver.code_of_get("cuLibraryGetKernel", after=(kernels.library, b"ferry_nothing")) == NOT_FOUND


def test_a_lazily_loaded_kernel_is_loaded_by_its_first_launch_unless_asked_before(fake: FakeCuda, driver: Driver):
    fake.preset("lazy_loading")
    kernels, memory = Kernels(driver), DeviceBytes(driver, 64)
    driver.get(ctypes.c_int, "cuFuncGetAttribute", after=(3, kernels.function("toy_copy")))
    kernels.launch("toy_copy", ToyArgs())
    assert fake.violations() == []
    kernels.launch("toy_fill", ToyArgs(to=memory.pointer, count=1))
    assert fake.violations() == ["toy_fill was loaded by its first launch, which waits for the device"]
    fake.clear_violations()


def test_a_function_dies_with_its_context_and_the_library_does_not(fake: FakeCuda, driver: Driver, kernels: Kernels):
    old = kernels.function("toy_fill")
    driver("cuDevicePrimaryCtxReset", 0)
    assert kernels.code_of_launch("toy_fill", ToyArgs()) == INVALID_HANDLE
    fake.clear_violations()
    again = driver.get(ctypes.c_void_p, "cuLibraryGetKernel", after=(kernels.library, b"toy_fill"))
    assert driver.get(ctypes.c_void_p, "cuKernelGetFunction", after=(again,)) != old


def test_the_trace_names_kernel_grid_and_stream(fake: FakeCuda, driver: Driver, kernels: Kernels):
    kernels.launch("toy_fill", ToyArgs(), 3, 64)
    assert fake.trace()[-1] == "cuLaunchKernel toy_fill blocks=3 threads=64 stream=legacy"


@pytest.mark.parametrize("seed", range(3))
def test_no_address_harms_the_process(fake: FakeCuda, pages: Callable[[int], np.ndarray], seed: int):
    host, rng = pages(5 * 4096), np.random.default_rng(seed)
    for _ in range(60):
        fake.reset()
        driver = Driver()
        driver.context()
        driver("cuMemHostRegister", host.ctypes.data, 4 * 4096 + 100, 3)
        kernels, memory = Kernels(driver), driver.alloc(5000)
        begins = (memory, memory + 5000, memory - 4096, memory + (1 << 35), host.ctypes.data, host.ctypes.data + 16484)
        wild = (0, 8, id(fake), 1 << 47, 1 << 60, (1 << 64) - 64)
        words = [int(rng.choice(np.array([*begins, *wild], np.uint64))) for _ in range(5)]
        near = [(word + int(rng.choice([0, 0, 1, 4, 8, 16, 4096, 12345]))) % (1 << 64) for word in words]
        name = str(rng.choice(["toy_fill", "toy_copy", "toy_reverse", "toy_through_table", "toy_wide", "toy_signal"]))
        count = int(rng.choice([1, 100, 2048]))
        given = ToyArgs(near[0], near[1], count, near[2], near[3], near[4])
        kernels.run(name, given, 2, 32)
        assert [line for line in fake.violations() if not line.startswith(f"kernel {name} ")] == []
    fake.reset()  # registered memory goes with the test
