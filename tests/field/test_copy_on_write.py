"""Field cases: tensors whose storage is copied at the next write, whoever made them so."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.memory import address

EXPECTED = np.arange(6, dtype=np.float32)


def _edited(t: torch.Tensor) -> np.ndarray:
    with ferry.writable(t) as array:
        assert array.tolist() == EXPECTED.tolist()
        array[:] = EXPECTED
    return array


READERS = {
    "to_numpy": ferry.to_numpy,
    "to_numpy, copy=False": lambda t: ferry.to_numpy(t, copy=False),
    "to_numpy, copy": lambda t: ferry.to_numpy(t, copy=True),
    "to_numpy, lazy": lambda t: ferry.to_numpy(t, copy="lazy"),
    "to_numpy, out": lambda t: ferry.to_numpy(t, out=np.zeros(6, np.float32)),
    "to_numpy, nest": lambda t: ferry.to_numpy([t], copy=False)[0],
    "to_numpy, part": lambda t: np.append(ferry.to_numpy(t[:2]), ferry.to_numpy(t[2:], copy=False)),
    "to_dlpack": lambda t: np.from_dlpack(ferry.to_dlpack(t)),
    "to_dlpack, copy": lambda t: np.from_dlpack(ferry.to_dlpack(t, copy=True)),
    "from_dlpack": ferry.from_dlpack,
    "from_dlpack to numpy": lambda t: ferry.from_dlpack(t, to="numpy"),
    "writable": _edited,
    "stack": lambda t: ferry.stack([t], to="numpy")[0],
    "stack, out": lambda t: ferry.stack([torch.from_numpy(EXPECTED)], out=t[None])[0],
    "to_python": lambda t: np.array(ferry.to_python(t), np.float32),
}


# Reading such a tensor through DLPack or .numpy() gives it memory of its own, without telling anyone.
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("made_by", ["torch", "our snapshot"])
def test_f107_every_call_reads_a_tensor_that_shares_its_storage_copy_on_write(reader, made_by):
    tensor = torch.arange(6.0)
    kept = torch._lazy_clone(tensor) if made_by == "torch" else ferry.to_numpy(tensor, copy="lazy")
    assert torch._C._is_cow_tensor(tensor)
    read = READERS[reader](tensor)
    np.testing.assert_array_equal(np.asarray(read), EXPECTED)
    assert tensor.tolist() == EXPECTED.tolist()
    tensor.zero_()
    np.testing.assert_array_equal(np.asarray(kept), EXPECTED)


@pytest.mark.parametrize("reader", ["to_numpy", "to_numpy, copy=False", "to_dlpack", "from_dlpack to numpy"])
def test_f107_a_view_of_such_a_tensor_is_live_and_its_snapshot_is_not(reader):
    tensor = torch.arange(6.0)
    snapshot = ferry.to_numpy(tensor, copy="lazy")
    view = READERS[reader](tensor)
    tensor.add_(1)
    np.testing.assert_array_equal(view, EXPECTED + 1)
    np.testing.assert_array_equal(snapshot, EXPECTED)
    assert address(view) == address(tensor)


@pytest.mark.parametrize("arguments", [{}, {"copy": True}, {"copy": False}, {"copy": "lazy"}], ids=str)
def test_f107_telling_what_would_happen_leaves_the_storage_shared(arguments):
    tensor = torch.arange(6.0)
    snapshot = ferry.to_numpy(tensor, copy="lazy")
    ferry.plan(tensor, **arguments)
    str(ferry.explain(tensor, **arguments))
    str(ferry.describe(tensor))
    assert torch._C._is_cow_tensor(tensor)
    np.testing.assert_array_equal(snapshot, EXPECTED)


# A snapshot must not take the memory away from arrays that others made, which could not follow.
@pytest.mark.parametrize(
    "view",
    [np.from_dlpack, torch.from_dlpack, lambda t: t.numpy(), lambda t: t.view(-1), lambda t: memoryview(t.numpy())],
    ids=["np.from_dlpack", "torch.from_dlpack", ".numpy()", "torch's view", "memoryview"],
)
@pytest.mark.parametrize("before", [True, False], ids=["view first", "snapshot first"])
def test_f107_views_that_others_made_stay_live_beside_a_snapshot(view, before):
    tensor = torch.arange(6.0)
    seen = view(tensor) if before else None
    snapshot = ferry.to_numpy(tensor, copy="lazy")
    seen = seen if before else view(tensor)
    tensor.add_(1)
    np.testing.assert_array_equal(np.asarray(seen), EXPECTED + 1)
    np.testing.assert_array_equal(snapshot, EXPECTED)
    del snapshot
    scratch = [torch.full((6,), -1.0) for _ in range(100)]
    np.testing.assert_array_equal(np.asarray(seen), EXPECTED + 1)
    del scratch
