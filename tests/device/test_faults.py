"""Every function of the driver fails in turn: an error of ours or the right result, and the next call works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import allow_abandoned, fresh
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import DeviceArray, TableArray, on_device
from helpers.fault_sweep import problems_of_faults

pytestmark = pytest.mark.usefixtures("without_thread")

ILLEGAL_ADDRESS, DEINITIALIZED = 700, 4


def written(kind: Any, values: Any) -> Any:
    """An array whose values are still to come."""
    x = kind(np.zeros_like(values))
    x.write_later(values)
    return x


MOST_LEAVES = 5
VALUES = np.arange(24, dtype=np.int32).reshape(4, 6)
LARGE = (np.arange(5 << 20) % 253).astype(np.uint8)

SCENARIOS: dict[str, Callable[[], bool]] = {
    "to_numpy": lambda: np.array_equal(ferry.to_numpy(written(TableArray, VALUES)), VALUES),
    "to_numpy of a foreign producer": lambda: np.array_equal(ferry.to_numpy(written(DeviceArray, VALUES)), VALUES),
    "to_numpy with a cast": lambda: np.array_equal(
        ferry.to_numpy(written(TableArray, VALUES), dtype="float64"), VALUES
    ),
    "to_numpy of rows": lambda: np.array_equal(
        ferry.to_numpy(on_device(TableArray, VALUES, VALUES[:, 1:3])), VALUES[:, 1:3]
    ),
    "to_numpy of a nest": lambda: all(
        np.array_equal(array, VALUES + i)
        for i, array in enumerate(ferry.to_numpy([written(TableArray, VALUES + i) for i in range(5)]))
    ),
    "to_numpy through the ring": lambda: np.array_equal(
        ferry.to_numpy(written(TableArray, LARGE), pinned=False), LARGE
    ),
    "to_numpy on the other device": lambda: np.array_equal(ferry.to_numpy(TableArray(VALUES, device=1)), VALUES),
    "to_numpy_async": lambda: np.array_equal(ferry.to_numpy_async(written(TableArray, VALUES)).result(), VALUES),
    "to_numpy_async without a snapshot": lambda: np.array_equal(
        ferry.to_numpy_async(written(TableArray, VALUES), snapshot=False).result(), VALUES
    ),
    "to_numpy_async of a nest": lambda: all(
        np.array_equal(array, VALUES + i)
        for i, array in enumerate(ferry.to_numpy_async([written(TableArray, VALUES + i) for i in range(5)]).result())
    ),
}
scenarios = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
starts = pytest.mark.parametrize("cold", [True, False], ids=["at first use", "later"])


@starts
@scenarios
def test_a_function_that_fails_gives_an_error_or_the_right_result_and_the_next_call_works(
    fake: FakeCuda, scenario: Callable[[], bool], cold: bool
):
    assert problems_of_faults(fake, scenario, cold=cold, most_leaves=MOST_LEAVES) == []


@scenarios
def test_a_device_that_is_lost_is_named_at_every_call(fake: FakeCuda, scenario: Callable[[], bool]):
    assert scenario()
    allow_abandoned(2 * MOST_LEAVES)
    fake.fault("execution", ILLEGAL_ADDRESS, 0)
    written(TableArray, VALUES)
    with pytest.raises(ferry.DeviceError, match=r"700|lost|earlier"):
        scenario()
    with pytest.raises(ferry.DeviceError):
        scenario()
    fresh()
    assert scenario()


@pytest.mark.parametrize("kind", [TableArray, DeviceArray])
def test_a_check_of_values_on_a_lost_device_is_an_error_of_the_device(fake: FakeCuda, kind: Any):
    values, missed = VALUES.astype(np.float32), {"finite": True, "range": (0, 3)}
    with pytest.raises(ferry.CheckError, match="20 of 24"):
        ferry.check(kind(values), **missed)
    allow_abandoned(2)
    fake.fault("execution", ILLEGAL_ADDRESS, 0)
    x = written(kind, values)
    for _ in range(2):
        with pytest.raises(ferry.DeviceError, match=r"700|lost|earlier") as caught:
            ferry.check([x], **missed)
        assert not isinstance(caught.value, ferry.CheckError)
    fresh()


@scenarios
def test_a_driver_that_was_shut_down_gives_clear_errors(fake: FakeCuda, scenario: Callable[[], bool]):
    assert scenario()
    allow_abandoned(MOST_LEAVES)
    fake.fault("*", DEINITIALIZED, 1)
    with pytest.raises(ferry.FerryError):
        scenario()
    fake.clear_faults()
    fresh()
    assert scenario()
