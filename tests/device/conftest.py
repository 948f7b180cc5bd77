"""The device path on the fake driver, with device arrays of our own. The product opens one driver for each process, and
a reset of the fake is a reset of the device to it; so these tests run alone:

    pytest tests/device

In any other run they are not collected; ``tests/streams/test_device_suite.py`` starts them in a process of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.device_path import allow_abandoned, fresh, leases_in_use, left_behind, no_internal_thread
from helpers.fake_cuda import ALL_SCHEDULES, FakeCuda
from helpers.fake_cuda_arrays import ALL_KINDS
from helpers.own_process import is_alone

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect nothing beside other tests."""
    inside = HERE in (collection_path, *collection_path.parents)
    return True if inside and not is_alone(config, HERE) else None


@pytest.fixture
def fake() -> Iterator[FakeCuda]:
    """A fresh fake with two devices and the lazy schedule; whoever provokes violations must clear them."""
    driver, leases = fresh(), leases_in_use()
    allow_abandoned(0)
    yield driver
    driver.clear_faults()
    left = left_behind(driver, leases)
    with no_internal_thread():
        driver.reset()
    assert left == []


@pytest.fixture(params=ALL_SCHEDULES)
def any_schedule(request: pytest.FixtureRequest, fake: FakeCuda) -> FakeCuda:
    """The fake under each schedule."""
    fake.schedule(request.param, seed=20240229)
    return fake


@pytest.fixture(params=ALL_KINDS.values(), ids=ALL_KINDS)
def kind(request: pytest.FixtureRequest) -> Any:
    """Each kind of producer."""
    return request.param


@pytest.fixture
def without_thread() -> Iterator[None]:
    """No internal thread: every call of the driver is made by the test's own thread."""
    with no_internal_thread():
        yield
