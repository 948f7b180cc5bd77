"""Every kernel on the fake device, against NumPy and ml_dtypes. These tests run alone, beside no product that has the
driver open:

    pytest tests/kernels

In any other run they are not collected; ``tests/streams/test_kernels_suite.py`` starts them in a process of their own.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers.fake_cuda import FakeCuda, fake_cuda
from helpers.fake_cuda_driver import Driver
from helpers.fake_kernels import Kernels
from helpers.own_process import is_alone

HERE = Path(__file__).parent
PORTABLE_AND_MAPPED = 3


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect nothing beside other tests."""
    inside = HERE in (collection_path, *collection_path.parents)
    return True if inside and not is_alone(config, HERE) else None


@pytest.fixture
def fake() -> Iterator[FakeCuda]:
    """A fresh fake; whoever provokes violations must clear them."""
    driver = fake_cuda()
    driver.reset()
    yield driver
    driver.drain()
    left = driver.violations()
    driver.reset()
    assert left == []


@pytest.fixture
def driver(fake: FakeCuda) -> Driver:
    """The driver's functions, with a context."""
    made = Driver()
    made.context()
    return made


@pytest.fixture
def kernels(driver: Driver) -> Kernels:
    """All kernels, loaded."""
    return Kernels(driver)


@pytest.fixture
def pinned(driver: Driver) -> Callable[[int], NDArray[Any]]:
    """Makes registered bytes, all zero; the reset of the fake forgets them."""

    def pin(nbytes: int) -> NDArray[Any]:
        host = np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)
        driver("cuMemHostRegister", host.ctypes.data, nbytes, PORTABLE_AND_MAPPED)
        kept.append(host)
        return host

    kept: list[NDArray[Any]] = []
    return pin
