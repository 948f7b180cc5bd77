"""Every test begins with a fresh fake driver, and must leave no violation behind."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers.fake_cuda import FakeCuda, as_test, fake_cuda
from helpers.fake_cuda_driver import Driver

PORTABLE_AND_MAPPED = 3


@pytest.fixture
def fake() -> Iterator[FakeCuda]:
    """The fake of this process, reset; a test that provokes violations must clear them."""
    driver = fake_cuda()
    driver.reset()
    yield driver
    left = driver.violations()
    driver.reset()
    assert left == []


@pytest.fixture
def driver(fake: FakeCuda) -> Driver:
    """The driver's functions, with the primary context of device 0 current."""
    made = Driver()
    made.context()
    return made


@pytest.fixture
def pages() -> Callable[[int], NDArray[Any]]:
    """Makes bytes, all zero, in pages of their own."""
    return lambda nbytes: np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)[:nbytes]


@pytest.fixture
def pinned(driver: Driver, pages: Callable[[int], NDArray[Any]]) -> Iterator[Callable[[int], NDArray[Any]]]:
    """Makes registered bytes, which are unregistered after the test if they still are registered."""
    made: list[NDArray[Any]] = []

    def pin(nbytes: int) -> NDArray[Any]:
        host = pages(nbytes)
        driver("cuMemHostRegister", host.ctypes.data, host.nbytes, PORTABLE_AND_MAPPED)
        made.append(host)
        return host

    yield pin
    fake_cuda().drain()
    with as_test():
        for host in made:
            driver.code("cuMemHostUnregister", host.ctypes.data)
