"""``to_device`` and ``to_numpy_async`` where torch copies: complete when they return."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.array_oracle import array_of, assert_same
from helpers.device_cases import Layout, all_cases
from helpers.plans import refusal_of
from helpers.remote_device import Remote
from helpers.torch_dtypes import sample


@all_cases
def test_f015_an_asynchronous_copy_has_arrived_when_it_is_handed_out(
    remote: Remote, dtype: torch.dtype, layout: Layout
) -> None:
    host, device = layout(sample(dtype)), layout(sample(dtype).to("remote"))
    copies = remote.copies
    transfer = ferry.to_numpy_async(device)
    assert (transfer.done(), remote.copies - copies, remote.waiting) == (True, 1, [])
    array = transfer.result()
    assert transfer.result() is array
    assert_same(array, array_of(host))
    assert not array.flags.writeable


def test_what_is_written_to_the_device_later_never_arrives(remote: Remote) -> None:
    x = torch.ones(3).to("remote")
    transfer = ferry.to_numpy_async({"x": [x, 1]})
    x.copy_(torch.zeros(3))
    result = transfer.result()
    assert (result["x"][0].tolist(), result["x"][1]) == ([1, 1, 1], 1)


def test_an_asynchronous_copy_fills_a_destination(remote: Remote) -> None:
    out = np.zeros((3, 2), np.float64).T
    transfer = ferry.to_numpy_async(torch.arange(6.0).reshape(2, 3).to("remote"), out=out)
    assert transfer.result() is out
    assert out.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_an_asynchronous_copy_that_fails_says_what_the_backend_said(remote: Remote) -> None:
    x = torch.ones(3).to("remote")
    remote.fails_with = RuntimeError("the device fell off the bus")
    error = refusal_of(lambda: ferry.to_numpy_async(x).result())
    assert isinstance(error, ferry.DeviceError)
    assert "the device fell off the bus" in error.why


ARRAYS: dict[str, Any] = {
    "contiguous": np.arange(6.0).reshape(2, 3),
    "transposed": np.arange(6.0).reshape(3, 2).T,
    "reversed": np.arange(6.0)[::-1].reshape(2, 3),
    "broadcast": np.broadcast_to(np.arange(3.0), (2, 3)),
    "of other byte order": np.arange(6, dtype=">f8").reshape(2, 3),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
def test_to_device_makes_a_tensor_or_fills_a_given_one(remote: Remote, array: np.ndarray[Any, Any]) -> None:
    copies = remote.copies
    made = ferry.to_device(array, "remote")
    assert (made.device.type, made.dtype, remote.copies - copies) == ("remote", torch.float64, 1)
    assert made.cpu().tolist() == array.tolist()
    out = torch.zeros(3, 2, dtype=torch.float32).to("remote").t()
    assert ferry.to_device(array, "remote", out=out) is out
    assert out.cpu().tolist() == array.tolist()
    assert remote.waiting == []


def test_to_device_of_a_nest_fills_a_nest(remote: Remote) -> None:
    out = {"a": torch.zeros(2).to("remote"), "b": [torch.zeros(3).to("remote")]}
    ferry.to_device({"a": np.ones(2, np.float32), "b": [np.ones(3, np.float32)]}, "remote", out=out)
    assert (out["a"].cpu().tolist(), out["b"][0].cpu().tolist()) == ([1, 1], [1, 1, 1])


def test_to_device_names_a_dtype_that_the_device_takes(remote: Remote) -> None:
    remote.lacks = {torch.float64}
    error = refusal_of(lambda: ferry.to_device(np.ones(2), "remote"))
    assert error.instead == 'pass dtype="float32", which it takes'
    assert ferry.to_device(np.ones(2), "remote", dtype="float32").cpu().tolist() == [1, 1]


def test_a_stream_is_refused_where_none_orders_the_copy(remote: Remote) -> None:
    copies = remote.copies
    assert isinstance(refusal_of(lambda: ferry.to_device(np.ones(2), "remote", stream=0)), ferry.StreamError)
    assert remote.copies == copies
