"""Any layout at all, on a device and on the host: the same values in the same memory order, as planned."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorferry as ferry
from helpers.layouts import arrays, tensors, values_of
from helpers.remote_device import Remote
from tensorferry._torch import fallback

laws = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def on_device(x: torch.Tensor) -> torch.Tensor:
    """A tensor with the same storage, shape, strides and offset as `x`."""
    whole = torch.empty(0).set_(x.untyped_storage())
    return whole.to("remote").as_strided(x.shape, x.stride(), x.storage_offset())


@laws
@given(tensors(), st.sampled_from((None, True)), st.sampled_from("KCFA"))
def test_reading(remote: Remote, x: torch.Tensor, copy: bool | None, order: str) -> None:
    device = on_device(x)
    planned = ferry.plan(device, copy=copy, order=order)
    array = ferry.to_numpy(device, copy=copy, order=order)
    np.testing.assert_array_equal(array, values_of(x))
    assert (planned.shape, planned.strides, planned.writable) == (array.shape, array.strides, array.flags.writeable)
    assert array.flags.writeable == (copy is True)
    if order in "CF":
        assert array.flags[f"{order}_CONTIGUOUS"]
    axes = [axis for axis, extent in enumerate(x.shape) if extent > 1]  # the steps of others mean nothing
    if order == "K" and array.size:
        as_on_the_host = ferry.to_numpy(x, copy=True).strides
        assert [array.strides[i] for i in axes] == [as_on_the_host[i] for i in axes]


@laws
@given(tensors(), st.data())
def test_reading_into_a_destination(remote: Remote, x: torch.Tensor, data: st.DataObject) -> None:
    axes = data.draw(st.permutations(range(x.ndim)))
    out = np.full([x.shape[axis] for axis in axes], -1.0).transpose(np.argsort(axes)) if x.ndim else np.full((), -1.0)
    assert ferry.to_numpy(on_device(x), out=out) is out
    np.testing.assert_array_equal(out, values_of(x))


@laws
@given(arrays())
def test_sending(remote: Remote, array: np.ndarray) -> None:
    planned = ferry.plan(array, to="torch", device="remote")
    tensor = ferry.from_numpy(array, device="remote")
    assert planned.strides == tuple(step * 4 for step in tensor.stride())
    np.testing.assert_array_equal(values_of(tensor.cpu()), array)


@pytest.mark.parametrize("shape", [(2, 3, 4), (5,), (), (1, 3)], ids=str)
def test_a_packed_copy_of_a_packed_layout_has_the_same_strides(shape: tuple[int, ...]) -> None:
    for axes in (range(len(shape)), reversed(range(len(shape)))):
        x = np.zeros(shape, np.uint8).transpose(*axes)
        assert fallback.copied_strides(x.shape, x.strides) == np.copy(x, order="K").strides
