"""Mistakes that the environment must show: the driver is called as a careless product would call it."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from helpers.fake_cuda import FRESH, LEGACY, PENDING
from helpers.fake_cuda_driver import Driver

VALUES = torch.arange(1, 9, dtype=torch.uint8)
Pinned = Callable[[int], NDArray[Any]]


@pytest.fixture
def driver(any_schedule: Any) -> Driver:
    """The driver's functions as the product calls them, after torch's first use."""
    torch.empty(1, device="cuda")
    return Driver()


@pytest.fixture
def pinned(driver: Driver, any_schedule: Any) -> Iterator[Pinned]:
    """Makes pinned bytes, which are given back after the test."""
    addresses: list[int] = []

    def make(nbytes: int) -> NDArray[Any]:
        addresses.append(driver.get_handle_after("cuMemHostAlloc", nbytes, 3))
        return np.ctypeslib.as_array((ctypes.c_ubyte * nbytes).from_address(addresses[-1]))

    yield make
    any_schedule.fake.drain()
    for address in addresses:
        driver("cuMemFreeHost", address)


def test_a_copy_ordered_after_the_current_stream_has_the_values(any_schedule: Any, driver: Driver, pinned: Pinned):
    copies, event, done, host = driver.stream(), driver.event(), driver.event(), pinned(8)
    with torch.cuda.stream(torch.cuda.Stream()):
        x = VALUES.to("cuda")
        driver("cuEventRecord", event, any_schedule.current_handle)
        driver("cuStreamWaitEvent", copies, event, 0)
        driver("cuMemcpyDtoHAsync", host.ctypes.data, x.data_ptr(), 8, copies)
        driver("cuEventRecord", done, copies)
    driver("cuEventSynchronize", done)
    assert host.tolist() == VALUES.tolist()


@pytest.mark.parametrize("any_schedule", ["lazy"], indirect=True)
def test_a_copy_that_is_not_ordered_after_the_current_stream_finds_poison(
    any_schedule: Any, driver: Driver, pinned: Pinned
):
    copies, done, host = driver.stream(), driver.event(), pinned(8)
    x = VALUES.to("cuda")
    driver("cuMemcpyDtoHAsync", host.ctypes.data, x.data_ptr(), 8, copies)
    driver("cuEventRecord", done, copies)
    driver("cuEventSynchronize", done)
    assert host.tolist() == [FRESH] * 8
    assert x.cpu().tolist() == VALUES.tolist()


@pytest.mark.parametrize("any_schedule", ["lazy"], indirect=True)
def test_a_stream_asked_for_too_early_finds_poison(any_schedule: Any, driver: Driver, pinned: Pinned):
    asked_before, done, host = any_schedule.current_handle, driver.event(), pinned(8)
    assert asked_before == LEGACY
    with torch.cuda.stream(torch.cuda.Stream()):
        x = VALUES.to("cuda")
        driver("cuMemcpyDtoHAsync", host.ctypes.data, x.data_ptr(), 8, asked_before)
        driver("cuEventRecord", done, asked_before)
        driver("cuEventSynchronize", done)
    assert host.tolist() == [FRESH] * 8


@pytest.mark.parametrize("any_schedule", ["lazy", "shuffled"], indirect=True)
def test_reading_before_the_copy_is_done_finds_poison(any_schedule: Any, driver: Driver, pinned: Pinned):
    host = pinned(8)
    x = VALUES.to("cuda")
    driver("cuMemcpyDtoHAsync", host.ctypes.data, x.data_ptr(), 8, LEGACY)
    assert host.tolist() == [PENDING] * 8
    any_schedule.fake.drain()
    assert host.tolist() == VALUES.tolist()


@pytest.mark.parametrize("any_schedule", ["lazy", "shuffled"], indirect=True)
def test_a_tensor_freed_under_a_pending_copy_of_another_stream_is_reported(
    any_schedule: Any, driver: Driver, pinned: Pinned
):
    copies, event, host = driver.stream(), driver.event(), pinned(8)
    x = VALUES.to("cuda")
    driver("cuEventRecord", event, LEGACY)
    driver("cuStreamWaitEvent", copies, event, 0)
    with any_schedule.fake.held():
        driver("cuMemcpyDtoHAsync", host.ctypes.data, x.data_ptr(), 8, copies)
        del x
        gc.collect()
    any_schedule.fake.drain()
    left = any_schedule.fake.violations()
    assert "given back to its allocator with pending work: cuMemcpyDtoHAsync" in left[0]
    any_schedule.fake.clear_violations()


def test_a_tensor_freed_after_its_stream_waits_for_the_copy_is_no_mistake(
    any_schedule: Any, driver: Driver, pinned: Pinned
):
    copies, before, after, host = driver.stream(), driver.event(), driver.event(), pinned(8)
    x = VALUES.to("cuda")
    driver("cuEventRecord", before, LEGACY)
    driver("cuStreamWaitEvent", copies, before, 0)
    driver("cuMemcpyDtoHAsync", host.ctypes.data, x.data_ptr(), 8, copies)
    driver("cuEventRecord", after, copies)
    driver("cuStreamWaitEvent", LEGACY, after, 0)
    del x
    gc.collect()
    driver("cuEventSynchronize", after)
    assert host.tolist() == VALUES.tolist()
    assert any_schedule.fake.violations() == []


def test_touching_a_tensors_memory_from_the_host_is_reported(any_schedule: Any, driver: Driver):
    x = VALUES.to("cuda")
    any_schedule.fake.drain()
    assert ctypes.c_ubyte.from_address(x.data_ptr() + 2).value != VALUES[2]
    left = any_schedule.fake.violations()
    assert [line.split(" of ")[0] for line in left] == ["host touched offset 2"]
    any_schedule.fake.clear_violations()


@pytest.mark.parametrize("any_schedule", ["lazy"], indirect=True)
def test_torchs_kernels_read_their_source_when_they_run(any_schedule: Any):
    x = any_schedule.settled(torch.arange(6.0).reshape(2, 3))
    packing, writing = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(packing):
        packed = x.t().contiguous()
    with torch.cuda.stream(writing):
        x.fill_(-1)  # nothing orders this after the packing
    writing.synchronize()
    torch.cuda.current_stream().wait_stream(packing)
    assert packed.cpu().tolist() == [[-1, -1]] * 3


@pytest.mark.parametrize("any_schedule", ["lazy"], indirect=True)
def test_torch_itself_finds_poison_when_a_side_stream_is_not_waited_for(any_schedule: Any):
    with torch.cuda.stream(torch.cuda.Stream()):
        x = VALUES.to("cuda")
    assert x.cpu().tolist() == [FRESH] * 8
    torch.cuda.synchronize()
    assert x.cpu().tolist() == VALUES.tolist()
