"""When the host sees what kernels store into its memory: in any order, but behind fences."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_driver import Driver
from helpers.fake_kernels import DeviceBytes, Kernels, ToyArgs

Pages = Callable[[int], NDArray[Any]]
COUNT, VALUE = 600, 0x11223344
SHOWING_SCHEDULES = ["lazy", "shuffled", "threaded"]
SEEDS = 40


class Mapped:
    """Data and a flag in mapped memory, which one launch fills."""

    def __init__(self, driver: Driver, host: NDArray[Any]) -> None:
        self.driver, self.kernels = driver, Kernels(driver)
        self.data, self.flag = host[: 4 * COUNT].view(np.uint32), host[4096:4104].view(np.uint64)
        self.ticket = DeviceBytes.of(driver, np.zeros(1, np.uint32))
        self.device = int(driver.get(ctypes.c_uint64, "cuMemHostGetDevicePointer", after=(host.ctypes.data, 0)))
        self.event = driver.event()

    def launch(self, name: str) -> None:
        self.data[:], self.flag[:] = 0, 0
        self.ticket.poke(np.zeros(1, np.uint32))
        arguments = ToyArgs(
            to=self.device, count=COUNT, flag=self.device + 4096, ticket=self.ticket.pointer, value=VALUE
        )
        self.kernels.launch(name, arguments, 3, 64)
        self.driver("cuEventRecord", self.event, 1)

    def values_behind_the_flag(self) -> NDArray[np.uint32]:
        """What the host finds as soon as it sees the flag."""
        for _ in range(100_000):
            if self.flag[0] == VALUE:
                break
            self.driver.is_done(self.event)
        assert self.flag[0] == VALUE
        return self.data.copy()


EXPECTED = np.arange(VALUE, VALUE + COUNT, dtype=np.uint32)


def how_often_wrong(fake: FakeCuda, mapped: Mapped, name: str, schedule: str) -> int:
    wrong = 0
    for seed in range(SEEDS):
        fake.schedule(schedule, seed)
        fake.kernel_seed(seed)
        mapped.launch(name)
        wrong += not np.array_equal(mapped.values_behind_the_flag(), EXPECTED)
        fake.drain()
        assert np.array_equal(mapped.data, EXPECTED)
    print(f"{name}, {schedule}: {wrong} of {SEEDS} seeds showed wrong values")
    return wrong


@pytest.mark.parametrize("schedule", SHOWING_SCHEDULES)
@pytest.mark.parametrize("pointers", ["same", "differ"])
def test_all_data_is_there_when_the_flag_is(
    fake: FakeCuda, driver: Driver, pinned: Pages, schedule: str, pointers: str
):
    if pointers == "differ":
        fake.preset("host_pointers_differ")
    mapped = Mapped(driver, pinned(8192))
    assert how_often_wrong(fake, mapped, "toy_signal", schedule) == 0


@pytest.mark.parametrize("schedule", ["lazy", "shuffled"])
@pytest.mark.parametrize("name", ["toy_signal_unfenced", "toy_signal_early"])
def test_a_kernel_that_signals_too_early_shows_wrong_values(
    fake: FakeCuda, driver: Driver, pinned: Pages, schedule: str, name: str
):
    assert how_often_wrong(fake, Mapped(driver, pinned(8192)), name, schedule) >= 4


@pytest.mark.parametrize(
    ("what", "nth"),
    [("fence", 1), ("fence", 2), ("barrier", 1)],
    ids=["the fence before the ticket", "the fence after the last ticket", "the barrier before the fence"],
)
def test_each_rule_of_the_signal_is_needed(fake: FakeCuda, driver: Driver, pinned: Pages, what: str, nth: int):
    mapped = Mapped(driver, pinned(8192))
    with fake.kernel_mistake(what, nth):
        assert how_often_wrong(fake, mapped, "toy_signal", "lazy") >= 4


def test_the_order_of_stores_changes_with_the_seed(fake: FakeCuda, driver: Driver, pinned: Pages):
    mapped, seen = Mapped(driver, pinned(8192)), set()
    for seed in range(20):
        fake.schedule("lazy", seed)
        fake.kernel_seed(seed)
        mapped.launch("toy_fill")
        for _ in range(4):
            mapped.driver.is_done(mapped.event)
            seen.add((mapped.data != 0).tobytes())
        fake.drain()
    assert len(seen) > 20


def test_an_aligned_store_of_16_bytes_arrives_at_once(fake: FakeCuda, driver: Driver, pinned: Pages):
    mapped = Mapped(driver, pinned(8192))
    source = DeviceBytes.of(driver, np.full(512, VALUE, np.uint32))
    torn_between = 0
    for seed in range(20):
        fake.schedule("lazy", seed)
        mapped.data[:] = 0
        mapped.kernels.launch("toy_wide", ToyArgs(to=mapped.device, source=source.pointer, count=128), 2, 32)
        driver("cuEventRecord", mapped.event, 1)
        for _ in range(4):
            mapped.driver.is_done(mapped.event)
            vectors = mapped.data[:512].reshape(-1, 4)
            assert set(map(tuple, vectors.tolist())) <= {(0,) * 4, (VALUE,) * 4}
            torn_between += 0 < np.count_nonzero(vectors[:, 0]) < 128
        fake.drain()
    assert torn_between > 5


def test_a_kernel_reads_what_the_host_wrote_before_the_launch(fake: FakeCuda, driver: Driver, pinned: Pages):
    host, to = pinned(4096), DeviceBytes(driver, 4000)
    host.view(np.uint32)[:1000] = np.arange(1000)
    pointer = int(driver.get(ctypes.c_uint64, "cuMemHostGetDevicePointer", after=(host.ctypes.data, 0)))
    Kernels(driver).run("toy_copy", ToyArgs(to=to.pointer, source=pointer, count=1000))
    assert np.array_equal(to.peek(np.uint32), np.arange(1000))


def test_stores_are_judged_to_the_byte_of_the_registration(fake: FakeCuda, driver: Driver, pinned: Pages):
    host = pinned(64)
    Kernels(driver).run("toy_overrun", ToyArgs(to=host.ctypes.data, count=64), threads=1)
    assert fake.violations() == ["kernel toy_overrun wrote 1 bytes at offset 64 of host#1 (64 bytes)"]
    fake.clear_violations()


def test_memory_registered_for_reading_only_is_not_written(fake: FakeCuda, driver: Driver, pages: Pages):
    host = pages(4096)
    driver("cuMemHostRegister", host.ctypes.data, 4096, 1 | 2 | 8)
    Kernels(driver).run("toy_fill", ToyArgs(to=host.ctypes.data, count=1), threads=1)
    assert fake.violations() == ["kernel toy_fill wrote into host#1, registered for reading only"]
    fake.clear_violations()
    driver("cuMemHostUnregister", host.ctypes.data)


def test_the_hosts_address_is_not_the_devices_where_they_differ(fake: FakeCuda, driver: Driver, pinned: Pages):
    fake.preset("host_pointers_differ")
    host = pinned(4096)
    Kernels(driver).run("toy_fill", ToyArgs(to=host.ctypes.data, count=1), threads=1)
    assert fake.violations() == ["kernel toy_fill used the host's address of host#1"]
    fake.clear_violations()


def test_unregistering_before_stores_have_landed_is_reported_and_they_never_do(
    fake: FakeCuda, driver: Driver, pages: Pages
):
    host = pages(4096)
    driver("cuMemHostRegister", host.ctypes.data, 4096, 3)
    Kernels(driver).launch("toy_fill", ToyArgs(to=host.ctypes.data, count=8, value=1), 1, 8, driver.stream())
    driver("cuMemHostUnregister", host.ctypes.data)
    fake.drain()
    assert fake.violations() == ["host#1 was unregistered with pending work: toy_fill in stream#1"]
    assert not host.any()
    fake.clear_violations()
