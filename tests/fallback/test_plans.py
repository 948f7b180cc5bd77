"""Plans of conversions from and to a fallback device, against what then happened there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers import torch_dtypes as dtypes
from helpers.device_cases import Layout, all_cases
from helpers.remote_device import Remote

REASON = "tensorferry copies natively between the host and CUDA only, not from or to remote"
READING: list[dict[str, Any]] = [
    {},
    {"copy": True},
    {"copy": "lazy"},
    {"order": "C"},
    {"order": "F"},
    {"dtype": "numpy"},
]
ARRAYS = {
    "contiguous": np.arange(24.0).reshape(2, 3, 4),
    "Fortran": np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
    "transposed": np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0),
    "sliced": np.arange(48.0).reshape(4, 3, 4)[::2, 1:, ::3],
    "reversed": np.arange(24)[::-1],
    "broadcast": np.broadcast_to(np.arange(3, dtype=np.float32), (4, 3)),
    "0-d": np.array(2.5),
    "empty": np.zeros((2, 0, 3), np.int16),
    "of other byte order": np.arange(5, dtype=">i4"),
}
SENDING: list[dict[str, Any]] = [{}, {"copy": True}, {"dtype": "float32", "casting": "unsafe"}]


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@all_cases
@pytest.mark.parametrize("arguments", READING, ids=str)
def test_the_plan_of_reading_is_what_happens(
    remote: Remote, dtype: torch.dtype, layout: Layout, arguments: dict[str, Any]
) -> None:
    device = layout(dtypes.sample(dtype).to("remote"))
    before = remote.copies
    planned = ferry.plan(device, **arguments)
    assert remote.copies == before
    array = ferry.to_numpy(device, **arguments)
    from_device, on_host = remote.copies - before, int(array.flags.owndata)
    assert (from_device, planned.copies) == (1, 1 + on_host)
    moved = planned.nbytes_moved
    assert moved == device.numel() * device.element_size() + on_host * array.nbytes
    assert (planned.path, planned.waits, planned.shares_memory) == ("fallback", ("the device",), False)
    found = (array.dtype.name, array.shape, array.strides, array.flags.writeable)
    assert found == (planned.dtype, planned.shape, planned.strides, planned.writable)
    assert f"the tensor is on remote:0, and {REASON}" in planned.reason
    assert "copy from remote:0 to the host through torch, blocking" in planned.steps


def test_the_plan_of_filling_a_destination_counts_both_copies(remote: Remote) -> None:
    device, out = torch.ones(2, 3).to("remote"), np.zeros((3, 2), np.float64).T
    planned = ferry.plan(device, out=out)
    before = remote.copies
    filled = ferry.to_numpy(device, out=out)
    assert (remote.copies - before, planned.copies) == (1, 2)
    assert planned.nbytes_moved == 24 + filled.nbytes
    assert planned.strides == out.strides


def test_the_plan_of_a_nest_sums_up_each_tensor_once(remote: Remote) -> None:
    device, host = torch.ones(2, 3).to("remote"), torch.ones(4)
    nest = {"a": device, "b": [device, host]}
    planned = ferry.plan(nest)
    before = remote.copies
    ferry.to_numpy(nest)
    assert planned.copies == remote.copies - before == 1
    assert planned.nbytes_moved == 24
    assert planned.waits == ("the device",)
    assert planned.parts["['b'][1]"].path == "view"


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
@pytest.mark.parametrize("arguments", SENDING, ids=str)
def test_the_plan_of_sending_is_what_happens(
    remote: Remote, array: np.ndarray[Any, Any], arguments: dict[str, Any]
) -> None:
    planned = ferry.plan(array, to="torch", device="remote", **arguments)
    before = remote.copies
    tensor = ferry.from_numpy(array, device="remote", **arguments)
    assert remote.copies - before == 1
    on_host = ferry.plan(array, to="torch", **arguments).copies
    assert planned.copies == 1 + on_host
    assert planned.nbytes_moved == planned.copies * tensor.numel() * tensor.element_size()
    strides = tuple(step * tensor.element_size() for step in tensor.stride())
    found = (dtypes.name_of(tensor.dtype), tuple(tensor.shape), strides)
    assert found == (planned.dtype, planned.shape, planned.strides)
    np.testing.assert_array_equal(tensor.cpu().numpy(), array.astype(tensor.cpu().numpy().dtype))
    assert (planned.path, planned.waits, planned.shares_memory) == ("fallback", ("the device",), False)
    assert REASON in planned.reason
    assert "copy to remote through torch, blocking" in planned.steps


def test_an_alias_that_goes_to_a_device_is_planned_as_the_copy_that_it_is(remote: Remote) -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    array = ferry.to_numpy(tensor)
    assert ferry.plan(array, to="torch").path == "alias"
    planned = ferry.plan(array, to="torch", device="remote")
    before = remote.copies
    assert ferry.from_numpy(array, device="remote").cpu().tolist() == tensor.tolist()
    assert (planned.path, planned.copies, planned.nbytes_moved) == ("fallback", remote.copies - before - 1, 24)
    assert not planned.shares_memory


def test_a_plan_for_the_host_as_device_is_that_without_one() -> None:
    array = np.arange(6.0)
    assert ferry.plan(array, to="torch", device="cpu") == ferry.plan(array, to="torch")


def test_explain_names_the_reason_in_both_directions(remote: Remote) -> None:
    read = ferry.explain(torch.ones(2).to("remote"))
    sent = ferry.explain(np.ones(2), to="torch", device="remote")
    for step in (read.steps[1], sent.steps[1]):
        assert step.question == "In host memory?"
        assert REASON[1:] in step.consequence
        assert "waits for" in step.consequence
    assert read.steps[1].answer == "no, on remote:0"
    assert "copied to remote" in sent.steps[1].consequence


def test_describing_planning_and_comparing_never_touch_the_device(remote: Remote) -> None:
    x = torch.arange(6.0).reshape(2, 3).to("remote")
    x.copy_(torch.ones(2, 3), non_blocking=True)
    before = remote.copies
    assert ferry.describe(x.t()).strides == (4, 12)
    assert ferry.shares_memory(x, x[1:])
    ferry.plan(x, copy=True)
    ferry.explain(x)
    assert (remote.copies, len(remote.waiting)) == (before, 1)
    remote.synchronize()
