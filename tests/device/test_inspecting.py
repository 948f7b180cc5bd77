"""``describe``, ``shares_memory``, ``check`` and conversions to torch on a device: nothing is copied unasked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import seen
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import DeviceArray, InterfaceArray, OldCapsuleArray, TableArray, on_device


def nothing_moved(made: Any) -> bool:
    return not any(line.startswith(("cuMemcpy", "cuEvent", "cuMemHost")) for line in made.lines)


def test_a_description_is_that_of_the_memory_on_the_device(fake: FakeCuda, kind: Any):
    base = np.zeros((6, 8), np.float32)
    x = on_device(kind, base, base[1:, ::2])
    with seen(fake) as made:
        described = ferry.describe(x)
    assert nothing_moved(made)
    assert (described.dtype, described.shape, described.strides) == ("float32", (5, 4), (32, 8))
    assert described.device in ("cuda:0", "cuda")
    assert described.addresses == (x.pointer, x.pointer + 4 * 32 + 3 * 8 + 4)
    assert (described.c_contiguous, described.dense, described.aligned, described.pinned) == (False, False, True, False)
    assert described.writable
    assert described.nbytes == 80
    assert type(x).__name__ in str(described)


def test_a_description_names_the_device_where_the_producer_does(fake: FakeCuda):
    assert ferry.describe(TableArray(np.zeros(3), device=1)).device == "cuda:1"
    assert ferry.describe(OldCapsuleArray(np.zeros(3), device=1)).device == "cuda:1"


@pytest.mark.parametrize("kind", [DeviceArray, InterfaceArray])
def test_a_description_says_read_only(fake: FakeCuda, kind: Any):
    x = kind(np.zeros(3))
    x.flags = 1
    assert ferry.describe(x).writable is False


@pytest.mark.parametrize("other", [TableArray, DeviceArray, OldCapsuleArray, InterfaceArray])
def test_shared_memory_is_found_between_all_kinds_of_producers(fake: FakeCuda, kind: Any, other: Any):
    x = kind(np.zeros(10))
    same, apart = other.__new__(other), other(np.zeros(10))
    same.__dict__.update(x.__dict__)
    with seen(fake) as made:
        assert ferry.shares_memory(x, same)
        assert ferry.shares_memory(x.view((5,), (1,)), same.view((6,), (1,), 4))
        assert not ferry.shares_memory(x.view((5,), (1,)), same.view((5,), (1,), 5))
        assert not ferry.shares_memory(x, apart)
        assert not ferry.shares_memory(x, np.zeros(10))
    assert nothing_moved(made)


def test_check_reads_values_only_where_it_is_asked_for_them(fake: FakeCuda, kind: Any):
    x = kind(np.array([1.0, np.nan], np.float32))
    with seen(fake) as made:
        assert ferry.check(x, shape=(2,), dtype="floating", device="cuda") is x
        with pytest.raises(ferry.CheckError, match="shape"):
            ferry.check(x, shape=(3,))
    assert nothing_moved(made)
    with pytest.raises(ferry.CheckError, match=r"NaN|nan") as caught:
        ferry.check(x, finite=True)
    assert len(caught.value.violations) == 1


def test_a_tensor_of_torch_on_the_host_is_a_copy_that_was_asked_for(any_schedule: FakeCuda, kind: Any):
    x = kind(np.zeros((2, 3), np.float32))
    x.write_later(np.arange(6).reshape(2, 3))
    tensor = ferry.from_numpy(x)
    assert tensor.tolist() == [[0, 1, 2], [3, 4, 5]]
    tensor.zero_()
    assert x.peek().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert ferry.from_numpy(x, dtype="float64", copy=True).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ferry.CopyRequiredError, match="cuda"):
        ferry.from_numpy(x, copy=False)


def test_from_dlpack_copies_only_with_consent(any_schedule: FakeCuda):
    for kind in (TableArray, DeviceArray, OldCapsuleArray):
        x = kind(np.arange(3))
        for to in ("torch", "numpy"):
            with pytest.raises(ferry.CopyRequiredError):
                ferry.from_dlpack(x, to=to)
            assert ferry.from_dlpack(x, to=to, copy=None).tolist() == [0, 1, 2]


def test_several_are_stacked(any_schedule: FakeCuda, kind: Any):
    items = [kind(np.full(3, i, np.float32)) for i in range(3)]
    assert ferry.stack(items, to="numpy").tolist() == [[0] * 3, [1] * 3, [2] * 3]
    assert ferry.stack([*items, np.ones(3)], to="torch").tolist() == [[0] * 3, [1] * 3, [2] * 3, [1] * 3]
