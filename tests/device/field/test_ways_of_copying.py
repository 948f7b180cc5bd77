"""Field cases: copies that were said to be asynchronous and were not, because of a dtype or of strides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import seen
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import TableArray

CASTS = {"wider": np.float64, "narrower": np.float16}


@pytest.mark.parametrize("dtype", CASTS.values(), ids=CASTS)
def test_f010_a_change_of_dtype_keeps_the_copy_asynchronous(fake: FakeCuda, dtype: Any):
    """Seen: a copy with a dtype landed in pageable memory, and so was not asynchronous."""
    x = TableArray(np.zeros(256, np.float32))
    ferry.to_numpy_async(x, dtype=dtype).result()
    x.write_later(np.arange(256))
    with fake.held():
        transfer = ferry.to_numpy_async(x, dtype=dtype)
        assert not transfer.done()
        assert transfer.plan.waits == ()
    array = transfer.result()
    assert array.dtype == dtype
    assert np.array_equal(array, np.arange(256).astype(dtype))
    assert fake.live("pageable_copies") == 0


@pytest.mark.parametrize("pinned", [False, "auto"], ids=["ordinary memory", "pinned memory"])
def test_f010_what_goes_through_ordinary_memory_says_so(any_schedule: FakeCuda, pinned: Any):
    x = TableArray(np.arange(1000, dtype=np.float32))
    planned = ferry.plan(x, dtype="float64", pinned=pinned)
    assert ("ring" in str(planned)) == (pinned is False)
    assert np.array_equal(ferry.to_numpy(x, dtype="float64", pinned=pinned), np.arange(1000.0))
    assert any_schedule.live("pageable_copies") == 0  # the driver never gets one


PARTS: dict[str, Callable[[Any], Any]] = {
    "all but a column": lambda whole: whole[:, :1024],
    "a column in the middle": lambda whole: whole[:, 100:612],
    "every other row": lambda whole: whole[::2],
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_f011_a_strided_part_of_pinned_memory_does_not_make_the_call_wait(fake: FakeCuda, part: Callable[[Any], Any]):
    """Seen: a strided view of a pinned buffer, one dummy column, silently waited for the device."""
    whole = ferry.zeros_pinned((4, 1025), "float32")
    out = part(whole)
    x = TableArray(np.zeros(out.shape, np.float32))
    ferry.to_numpy_async(x, out=out).result()
    values = np.arange(out.size, dtype=np.float32).reshape(out.shape) + 1
    x.write_later(values)
    with fake.held(), seen(fake) as made:
        transfer = ferry.to_numpy_async(x, out=out)
        assert not transfer.done()
    assert made.count("cuEventSynchronize") == 0
    assert transfer.result() is out
    assert np.array_equal(out, values)
    out[...] = 0
    assert not whole.any()  # what lies between was left alone
