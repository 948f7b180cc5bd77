"""Every function of the driver fails in turn where kernels pack, cast, store and gather."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import TableArray
from helpers.fault_sweep import problems_of_faults

pytestmark = pytest.mark.usefixtures("without_thread")

MOST_LEAVES = 6
SMALL = np.arange(48, dtype=np.float32).reshape(6, 8)
LARGE = np.arange(320 << 10).astype(np.complex128).reshape(512, -1)  # half of it: more than a slot of the ring


def has(found: Any, expected: Any) -> bool:
    """Same dtype, shape and values?"""
    return bool(found.dtype == expected.dtype and np.array_equal(found, expected))


def on_the_way(base: Any, layout: Callable[[Any], Any] = lambda x: x) -> Any:
    """A view of an array whose values are still to come."""
    whole = TableArray(np.zeros_like(base))
    whole.write_later(base)
    view = layout(base)
    return whole.view(view.shape, [step // base.itemsize for step in view.strides])


def transposed() -> Any:
    return on_the_way(SMALL, lambda x: x.T)


def in_steps() -> Any:
    return on_the_way(LARGE, lambda x: x[:, ::2])


def nest() -> list[Any]:
    return [on_the_way(SMALL + i, lambda x: x.T) for i in range(5)]


def nest_is_right(arrays: Any) -> bool:
    return all(has(array, (SMALL + i).T) for i, array in enumerate(arrays))


def log_is_right() -> bool:
    delivered: list[dict[str, Any]] = []
    with ferry.MetricLog(lambda step, values: delivered.append(dict(values))) as log:
        log.log({"loss": on_the_way(np.float32([3])), "seen": TableArray(np.int64([7]))})
    return delivered == [{"loss": 3.0, "seen": 7}]


SCENARIOS: dict[str, Callable[[], bool]] = {
    "stored": lambda: has(ferry.to_numpy(transposed(), order="C"), SMALL.T),
    "narrowed": lambda: has(ferry.to_numpy(on_the_way(SMALL), dtype="float16"), SMALL.astype(np.float16)),
    "packed": lambda: has(ferry.to_numpy(in_steps()), LARGE[:, ::2]),
    "packed through the ring": lambda: has(ferry.to_numpy(in_steps(), pinned=False), LARGE[:, ::2]),
    "packed behind the caller": lambda: has(
        ferry.to_numpy_async(transposed(), order="C", snapshot=True).result(), SMALL.T
    ),
    "large behind the caller": lambda: has(ferry.to_numpy_async(in_steps()).result(), LARGE[:, ::2]),
    "gathered": lambda: nest_is_right(ferry.to_numpy(nest())),
    "gathered behind the caller": lambda: nest_is_right(ferry.to_numpy_async(nest()).result()),
    "metrics": log_is_right,
}


@pytest.mark.parametrize("cold", [True, False], ids=["at first use", "later"])
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_function_that_fails_gives_an_error_or_the_right_result_and_the_next_call_works(
    fake: FakeCuda, scenario: Callable[[], bool], cold: bool
):
    found = problems_of_faults(fake, scenario, cold=cold, most_leaves=MOST_LEAVES, with_kernels=True)
    assert found == []
