"""Every dtype in every layout on a device whose bytes the host cannot see: arrays as from the same host tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers import torch_dtypes as dtypes
from helpers.array_oracle import array_of, assert_same
from helpers.device_cases import Layout, all_cases
from helpers.remote_device import Remote

pytestmark = [
    pytest.mark.usefixtures("remote"),
    pytest.mark.filterwarnings("ignore:invalid value encountered in cast", "ignore:overflow encountered in cast"),
]


def pair(dtype: torch.dtype, layout: Layout) -> tuple[torch.Tensor, torch.Tensor]:
    """The same tensor on the host and on the device."""
    x = dtypes.sample(dtype)
    return layout(x), layout(x.to("remote"))


@all_cases
def test_without_arguments_the_array_is_complete_and_read_only(dtype: torch.dtype, layout: Layout) -> None:
    host, device = pair(dtype, layout)
    array = ferry.to_numpy(device)
    assert_same(array, array_of(host))
    assert not array.flags.writeable
    assert array.strides == ferry.to_numpy(host, copy=True).strides


@all_cases
def test_a_private_copy_is_writable_and_leaves_the_device_alone(dtype: torch.dtype, layout: Layout) -> None:
    host, device = pair(dtype, layout)
    array = ferry.to_numpy(device, copy=True)
    assert_same(array, array_of(host))
    assert array.flags.writeable
    assert array.strides == ferry.to_numpy(host, copy=True).strides
    array[...] = np.ones((), array.dtype)
    assert_same(ferry.to_numpy(device), array_of(host))


@all_cases
def test_lazy_is_a_copy_that_later_writes_do_not_reach(dtype: torch.dtype, layout: Layout) -> None:
    host, device = pair(dtype, layout)
    array = ferry.to_numpy(device, copy="lazy")
    assert_same(array, array_of(host))
    assert not array.flags.writeable


@all_cases
def test_sharing_is_refused_naming_the_device_before_any_copy(
    remote: Remote, dtype: torch.dtype, layout: Layout
) -> None:
    _, device = pair(dtype, layout)
    copies = remote.copies
    with pytest.raises(ferry.CopyRequiredError, match=r"on device remote:0.*cannot share.*x\.cpu\(\)"):
        ferry.to_numpy(device, copy=False)
    assert remote.copies == copies


@all_cases
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_order_is_as_asked(dtype: torch.dtype, layout: Layout, order: str) -> None:
    host, device = pair(dtype, layout)
    array = ferry.to_numpy(device, order=order)
    assert_same(array, array_of(host))
    assert array.flags.c_contiguous if order == "C" else array.flags.f_contiguous
    assert not array.flags.writeable


@all_cases
def test_numpy_as_dtype_holds_the_same_values(dtype: torch.dtype, layout: Layout) -> None:
    host, device = pair(dtype, layout)
    array = ferry.to_numpy(device, dtype="numpy")
    assert_same(array, array_of(host).astype(array.dtype))
    assert array.dtype == ferry.to_numpy(host, dtype="numpy").dtype


@all_cases
def test_bits_are_the_bits_of_the_same_host_tensor(dtype: torch.dtype, layout: Layout) -> None:
    host, device = pair(dtype, layout)
    if dtype is torch.complex128 and host.is_complex():
        with pytest.raises(ferry.DTypeError, match="no unsigned integer of 16 bytes"):
            ferry.to_numpy(device, dtype="bits")
        return
    found = ferry.to_numpy(device, dtype="bits")
    if host.is_conj() or host.is_neg():  # torch resolves the marks of NaNs to other bits
        np.testing.assert_array_equal(found, ferry.to_numpy(host, dtype="bits"))
        return
    unsigned = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}[host.element_size()]
    np.testing.assert_array_equal(found, host.view(unsigned).numpy())


@all_cases
def test_a_destination_is_filled_with_any_strides_and_returned(dtype: torch.dtype, layout: Layout) -> None:
    host, device = pair(dtype, layout)
    expected = array_of(host)
    twice = np.zeros((*expected.shape, 2), expected.dtype)
    out = twice[..., 1]
    if out.ndim:
        assert ferry.to_numpy(device, out=out) is out
        assert_same(twice[..., 1], expected)
        assert_same(twice[..., 0], np.zeros_like(expected))
    else:
        out = np.zeros((), expected.dtype)
        assert ferry.to_numpy(device, out=out) is out
        assert_same(out, expected)


@all_cases
def test_a_nest_converts_each_tensor_once(remote: Remote, dtype: torch.dtype, layout: Layout) -> None:
    host, device = pair(dtype, layout)
    copies = remote.copies
    nest = ferry.to_numpy({"a": [device, 3], "b": (device, "text")})
    assert nest["a"][0] is nest["b"][0]
    assert_same(nest["a"][0], array_of(host))
    assert (nest["a"][1], nest["b"][1]) == (3, "text")
    assert remote.copies - copies == 1


@all_cases
def test_python_numbers_are_those_of_the_host_tensor(dtype: torch.dtype, layout: Layout) -> None:
    host, device = pair(dtype, layout)
    native = ferry.to_numpy(host, dtype="numpy").dtype
    numbers: Any = array_of(host).astype(native).tolist()
    np.testing.assert_equal(ferry.to_python({"x": device}), {"x": numbers})


@all_cases
def test_a_stack_holds_the_values_of_its_items(dtype: torch.dtype, layout: Layout) -> None:
    host, device = pair(dtype, layout)
    expected = array_of(host)
    assert_same(ferry.stack([device, host], to="numpy"), np.stack([expected, expected]))


@all_cases
def test_check_reads_values_only_when_asked_for_values(remote: Remote, dtype: torch.dtype, layout: Layout) -> None:
    host, device = pair(dtype, layout)
    copies = remote.copies
    ferry.check(device, shape=tuple(host.shape), device="remote")
    assert remote.copies == copies
    found = [finite_verdict(x) for x in (host, device)]
    assert found[0] == found[1] == bool(np.isfinite(wide(array_of(host))).all())
    assert remote.copies - copies <= 1


def wide(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The values in a dtype that NumPy's own functions know."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def finite_verdict(x: torch.Tensor) -> bool:
    """Does ``check`` find only finite values?"""
    try:
        ferry.check(x, finite=True)
    except ferry.CheckError:
        return False
    return True
