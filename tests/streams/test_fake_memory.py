"""Memory of the fake driver: guarded device memory, and host memory that is registered, or is not."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable

import numpy as np
import pytest

from helpers.fake_cuda import FREED, FRESH, LEGACY, FakeCuda
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import Driver

Pages = Callable[[int], np.ndarray]
INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONTEXT = 1, 2, 201
ALREADY_REGISTERED, NOT_REGISTERED, NOT_SUPPORTED = 712, 713, 801
PAGE = mmap.PAGESIZE


def host_bytes(address: int, nbytes: int) -> list[int]:
    """Read memory as a host thread would."""
    return list(ctypes.string_at(address, nbytes))


def test_a_host_read_of_device_memory_gives_poison_and_is_reported(fake: FakeCuda):
    array = DeviceArray(np.zeros(512, np.uint8))
    assert host_bytes(array.pointer + 256, 4) == [FRESH] * 4
    assert fake.violations() == ["host touched offset 256 of device#1 (512 bytes)"]
    fake.clear_violations()
    assert host_bytes(array.pointer, 1) == [FRESH]  # the page was closed again
    assert fake.violations() == ["host touched offset 0 of device#1 (512 bytes)"]
    fake.clear_violations()


def test_a_host_write_of_device_memory_is_reported(fake: FakeCuda):
    array = DeviceArray(np.zeros(512, np.uint8))
    ctypes.memset(array.pointer, 1, 8)
    assert fake.violations() == ["host touched offset 0 of device#1 (512 bytes)"]
    fake.clear_violations()


def test_a_host_read_of_freed_device_memory_is_reported_as_such(fake: FakeCuda, driver: Driver):
    pointer = driver.alloc(512)
    driver("cuMemFree", pointer)
    assert host_bytes(pointer, 1) == [FREED]
    assert fake.violations() == ["host touched offset 0 of device#1 (512 bytes, freed)"]
    fake.clear_violations()


def test_fresh_device_memory_holds_poison_and_addresses_never_recur(fake: FakeCuda, driver: Driver, pinned: Pages):
    first = driver.alloc(100)
    driver("cuMemFree", first)
    second = driver.alloc(100)
    assert second != first
    host = pinned(100)
    driver("cuMemcpyDtoHAsync", host.ctypes.data, second, 100, LEGACY)
    fake.drain()
    assert set(host.tolist()) == {FRESH}
    assert fake.live("device_bytes") == 100


def test_freeing_with_pending_work_is_reported_and_the_work_reads_nothing(
    fake: FakeCuda, driver: Driver, pinned: Pages
):
    pointer, host = driver.alloc(8), pinned(8)
    driver("cuMemcpyDtoHAsync", host.ctypes.data, pointer, 8, driver.stream())
    driver("cuMemFree", pointer)
    fake.drain()
    assert set(host.tolist()) == {0xA5}
    assert fake.violations() == [
        "device#1 was freed with pending work: cuMemcpyDtoHAsync in stream#1",
        "cuMemcpyDtoHAsync in stream#1 ran after device#1 was freed",
    ]
    fake.clear_violations()


def test_an_array_may_go_when_its_own_stream_waits_for_the_readers(fake: FakeCuda, driver: Driver, pinned: Pages):
    mine, copier, event = driver.stream(), driver.stream(), driver.event()
    array, host = DeviceArray(np.arange(8, dtype=np.uint8), stream=mine), pinned(8)
    driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 8, copier)
    driver("cuEventRecord", event, copier)
    driver("cuStreamWaitEvent", mine, event, 0)
    del array
    fake.drain()
    assert host.tolist() == list(range(8))
    assert fake.live("device_bytes") == 0


def test_an_array_that_goes_while_another_stream_reads_it_is_reported(fake: FakeCuda, driver: Driver, pinned: Pages):
    mine, copier = driver.stream(), driver.stream()
    array, host = DeviceArray(np.arange(8, dtype=np.uint8), stream=mine), pinned(8)
    driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 8, copier)
    del array
    assert fake.violations() == [
        "device#1 was given back to its allocator with pending work: cuMemcpyDtoHAsync in stream#2"
    ]
    fake.drain()
    fake.clear_violations()


def test_copies_of_freed_or_too_much_device_memory_are_refused(fake: FakeCuda, driver: Driver, pinned: Pages):
    pointer, host = driver.alloc(8), pinned(16)
    assert driver.code("cuMemcpyDtoHAsync", host.ctypes.data, pointer, 9, LEGACY) == INVALID_VALUE
    driver("cuMemFree", pointer)
    assert driver.code("cuMemcpyDtoHAsync", host.ctypes.data, pointer, 8, LEGACY) == INVALID_VALUE
    assert driver.code("cuMemFree", pointer) == INVALID_VALUE
    assert fake.violations() == [
        "cuMemcpyDtoHAsync was given a range that is not one piece of device memory (device#1+0, 9 bytes)",
        "cuMemcpyDtoHAsync was given device#1 after it was freed",
        "device#1 was freed twice",
    ]
    fake.clear_violations()


def test_registering_pages_twice_or_nothing_is_refused(fake: FakeCuda, driver: Driver, pages: Pages):
    host = pages(2 * PAGE)
    at = host.ctypes.data
    driver("cuMemHostRegister", at + 8, 16, 3)
    assert driver.code("cuMemHostRegister", at + 100, 16, 3) == ALREADY_REGISTERED  # other bytes of the same page
    driver("cuMemHostRegister", at + PAGE, 16, 3)
    assert driver.code("cuMemHostRegister", at, 0, 3) == INVALID_VALUE
    assert driver.code("cuMemHostUnregister", at) == NOT_REGISTERED  # not its base
    assert fake.live("host_registrations") == 2
    for base in (at + 8, at + PAGE):
        driver("cuMemHostUnregister", base)
    assert driver.code("cuMemHostUnregister", at + 8) == NOT_REGISTERED
    assert fake.live("host_registrations") == 0


@pytest.mark.parametrize(
    ("begin", "nbytes"), [(PAGE - 8, 16), (2 * PAGE - 8, 16)], ids=["half registered", "across two registrations"]
)
def test_a_copy_over_a_registrations_border_is_refused(
    fake: FakeCuda, driver: Driver, pages: Pages, begin: int, nbytes: int
):
    host = pages(4 * PAGE)
    at, source = host.ctypes.data, DeviceArray(np.zeros(16, np.uint8))
    driver("cuMemHostRegister", at + PAGE, PAGE, 3)
    driver("cuMemHostRegister", at + 2 * PAGE, PAGE, 3)
    assert driver.code("cuMemcpyDtoHAsync", at + begin, source.pointer, nbytes, LEGACY) == INVALID_VALUE
    assert fake.violations() == ["cuMemcpyDtoHAsync was given a host range that is only partly inside one registration"]
    fake.clear_violations()
    for base in (at + PAGE, at + 2 * PAGE):
        driver("cuMemHostUnregister", base)


def test_unregistering_is_no_fence(fake: FakeCuda, driver: Driver, pages: Pages):
    host, source = pages(PAGE), DeviceArray(np.zeros(8, np.uint8))
    driver("cuMemHostRegister", host.ctypes.data, PAGE, 3)
    driver("cuMemcpyDtoHAsync", host.ctypes.data, source.pointer, 8, LEGACY)
    driver("cuMemHostUnregister", host.ctypes.data)
    fake.drain()
    assert set(host[:8].tolist()) == {0xA5}
    assert fake.violations() == ["host#1 was unregistered with pending work: cuMemcpyDtoHAsync in legacy"]
    fake.clear_violations()


@pytest.mark.parametrize("pending", [False, True], ids=["idle", "with work"])
def test_unmapping_registered_memory_is_reported(fake: FakeCuda, driver: Driver, pending: bool):
    source, memory = DeviceArray(np.zeros(8, np.uint8)), mmap.mmap(-1, PAGE)
    at = np.frombuffer(memory, np.uint8).ctypes.data
    driver("cuMemHostRegister", at, PAGE, 3)
    if pending:
        driver("cuMemcpyDtoHAsync", at, source.pointer, 8, LEGACY)
    memory.close()
    fake.drain()
    expected = ["cuMemcpyDtoHAsync in legacy ran after its host memory was unmapped"] if pending else []
    assert fake.violations() == [*expected, "host#1 was unmapped while registered"]
    fake.clear_violations()


def test_read_only_memory_needs_its_flag_and_is_not_written(fake: FakeCuda, driver: Driver):
    memory = mmap.mmap(-1, PAGE, prot=mmap.PROT_READ)
    at = np.frombuffer(memory, np.uint8).ctypes.data
    source = DeviceArray(np.zeros(8, np.uint8))
    assert driver.code("cuMemHostRegister", at, PAGE, 3) == INVALID_VALUE
    driver("cuMemHostRegister", at, PAGE, 3 | 8)
    assert driver.code("cuMemcpyDtoHAsync", at, source.pointer, 8, LEGACY) == INVALID_VALUE
    driver("cuMemHostUnregister", at)
    fake.preset("no_read_only_register")
    assert driver.code("cuMemHostRegister", at, PAGE, 3 | 8) == NOT_SUPPORTED
    assert fake.violations() == ["cuMemcpyDtoHAsync writes into host#1, registered for reading only"]
    fake.clear_violations()


def test_registering_keeps_to_the_budget_and_needs_a_context(fake: FakeCuda, driver: Driver, pages: Pages):
    host = pages(4 * PAGE)
    fake.host_budget(2 * PAGE)
    assert driver.code("cuMemHostRegister", host.ctypes.data, 3 * PAGE, 3) == OUT_OF_MEMORY
    driver("cuMemHostRegister", host.ctypes.data, 2 * PAGE, 3)
    assert driver.code_of_get("cuMemHostAlloc", after=(1, 3)) == OUT_OF_MEMORY
    driver("cuMemHostUnregister", host.ctypes.data)
    driver("cuCtxSetCurrent", None)
    assert driver.code("cuMemHostRegister", host.ctypes.data, PAGE, 3) == INVALID_CONTEXT


@pytest.mark.parametrize(("preset", "code"), [("register_unsupported", NOT_SUPPORTED), ("register_not_permitted", 800)])
def test_registering_may_not_work_at_all(fake: FakeCuda, driver: Driver, pages: Pages, preset: str, code: int):
    fake.preset(preset)
    host = pages(PAGE)
    assert driver.code("cuMemHostRegister", host.ctypes.data, PAGE, 3) == code


def test_random_failures_come_and_go(fake: FakeCuda, driver: Driver, pages: Pages):
    fake.preset("register_random_failure")
    fake.schedule("lazy", 5)
    host = pages(64 * PAGE)
    codes = [driver.code("cuMemHostRegister", host.ctypes.data + i * PAGE, PAGE, 3) for i in range(64)]
    assert set(codes) == {0, OUT_OF_MEMORY}
    for i, code in enumerate(codes):
        if code == 0:
            driver("cuMemHostUnregister", host.ctypes.data + i * PAGE)


def test_pinned_allocations_belong_to_the_driver(fake: FakeCuda, driver: Driver):
    at = driver.get_handle_after("cuMemHostAlloc", 100, 3)
    source = DeviceArray(np.arange(4, dtype=np.uint8))
    driver("cuMemcpyDtoHAsync", at, source.pointer, 4, LEGACY)
    fake.drain()
    assert host_bytes(at, 4) == [0, 1, 2, 3]
    assert driver.code("cuMemHostUnregister", at) == NOT_REGISTERED
    driver("cuMemFreeHost", at)
    assert driver.code("cuMemFreeHost", at) == INVALID_VALUE


@pytest.mark.parametrize("differ", [False, True], ids=["one address", "two addresses"])
def test_a_mapped_page_has_a_device_pointer(fake: FakeCuda, driver: Driver, pinned: Pages, differ: bool):
    if differ:
        fake.preset("host_pointers_differ")
    host, source = pinned(16), DeviceArray(np.arange(4, dtype=np.uint8))
    pointer = driver.get(ctypes.c_uint64, "cuMemHostGetDevicePointer", after=(host.ctypes.data + 4, 0))
    assert (pointer != host.ctypes.data + 4) == differ
    driver("cuMemcpyDtoDAsync", pointer, source.pointer, 4, LEGACY)
    fake.drain()
    assert host.tolist() == [0] * 4 + [0, 1, 2, 3] + [0] * 8
    if differ:  # the host's address means nothing to this device
        assert driver.code("cuMemcpyDtoDAsync", host.ctypes.data, source.pointer, 4, LEGACY) == INVALID_VALUE
        fake.clear_violations()


def attributes(driver: Driver, pointer: int) -> tuple[int, int, int, int]:
    """(memory type, ordinal, start of its range, size)."""
    values = (ctypes.c_uint(9), ctypes.c_int(9), ctypes.c_uint64(9), ctypes.c_size_t(9))
    names = (ctypes.c_int * 4)(2, 9, 11, 12)
    data = (ctypes.c_void_p * 4)(*[ctypes.addressof(value) for value in values])
    driver("cuPointerGetAttributes", 4, ctypes.addressof(names), ctypes.addressof(data), pointer)
    return tuple(value.value for value in values)


def test_pointers_say_what_they_are(fake: FakeCuda, driver: Driver, pinned: Pages):
    host, pageable, device = pinned(16), np.zeros(16, np.uint8), driver.alloc(100)
    assert attributes(driver, device + 10) == (2, 0, device, 100)
    assert attributes(driver, host.ctypes.data + 3) == (1, 0, host.ctypes.data, 16)
    assert attributes(driver, pageable.ctypes.data) == (0, -2, 0, 0)


def test_pointers_say_nothing_without_an_active_context(fake: FakeCuda):
    driver = Driver()
    driver("cuInit", 0)
    names, value = ctypes.c_int(2), ctypes.c_uint()
    data = ctypes.c_void_p(ctypes.addressof(value))
    code = driver.code("cuPointerGetAttributes", 1, ctypes.addressof(names), ctypes.addressof(data), 4096)
    assert code == INVALID_CONTEXT
