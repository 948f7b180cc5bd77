"""Whatever the layout: values survive, copies have NumPy's strides, and views share."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

import tensorferry as ferry
from helpers import layouts
from helpers.plans import convert_as_planned

orders = st.sampled_from("KCFA")


def strides_that_matter(x: np.ndarray[Any, Any]) -> list[int]:
    """Without the axes on which no address depends."""
    return [step for step, extent in zip(x.strides, x.shape, strict=True) if extent > 1] if x.size else []


def is_dense(x: torch.Tensor) -> bool:
    """Do the elements fill one block without holes?"""
    steps = sorted((step, extent) for extent, step in zip(x.shape, x.stride(), strict=True) if extent > 1)
    expected = 1
    for step, extent in steps:
        if step != expected:
            return False
        expected *= extent
    return x.numel() > 0


@given(x=layouts.tensors())
def test_a_view_holds_the_values_of_any_layout(x: torch.Tensor) -> None:
    array = convert_as_planned(x)
    assert np.array_equal(array, layouts.values_of(x))
    assert array.shape == tuple(x.shape)


@given(x=layouts.tensors(), order=orders)
def test_a_copy_has_the_values_and_the_strides_of_numpys_copy(x: torch.Tensor, order: Any) -> None:
    array = convert_as_planned(x, copy=True, order=order)
    expected = np.array(x.numpy(), order=order, copy=True)
    assert np.array_equal(array, layouts.values_of(x))
    assert strides_that_matter(array) == strides_that_matter(expected)


@given(x=layouts.tensors(), order=orders)
def test_a_cast_copy_has_the_strides_of_numpys_copy(x: torch.Tensor, order: Any) -> None:
    array = convert_as_planned(x, dtype="float64", order=order)
    assert np.array_equal(array, layouts.values_of(x))
    expected = x.numpy().astype(np.float64, order=order)
    assert strides_that_matter(array) == strides_that_matter(expected)


@given(x=layouts.tensors())
def test_keeping_the_order_keeps_the_axes_of_a_dense_tensor(x: torch.Tensor) -> None:
    array = ferry.to_numpy(x, copy=True)
    if is_dense(x):
        steps = [
            (have, step * 4)
            for have, step, extent in zip(array.strides, x.stride(), x.shape, strict=True)
            if extent > 1
        ]
        assert all(have == wanted for have, wanted in steps)


@given(x=layouts.tensors(), order=orders)
def test_an_order_asked_for_is_the_order_that_comes(x: torch.Tensor, order: Any) -> None:
    array = convert_as_planned(x, order=order)
    assert np.array_equal(array, layouts.values_of(x))
    if order in "CF":
        assert array.flags[f"{order}_CONTIGUOUS"]


@given(x=layouts.tensors())
def test_a_lazy_snapshot_is_the_value_at_the_call(x: torch.Tensor) -> None:
    expected = layouts.values_of(x)
    array = convert_as_planned(x, copy="lazy")
    x.as_strided((x.untyped_storage().nbytes() // 4,), (1,), 0).fill_(-1)
    assert np.array_equal(array, expected)


@given(x=layouts.tensors())
def test_a_tensor_comes_back_from_its_view_over_the_same_memory(x: torch.Tensor) -> None:
    back = convert_as_planned(ferry.to_numpy(x), to="torch")
    assert torch.equal(back, x)
    assert back.numel() == 0 or back.data_ptr() == x.data_ptr()


@given(a=layouts.arrays())
def test_an_array_of_any_layout_becomes_the_tensor_of_its_values(a: np.ndarray[Any, Any]) -> None:
    tensor = convert_as_planned(a, to="torch")
    assert tensor.tolist() == a.tolist()
    assert tuple(tensor.shape) == a.shape


@given(a=layouts.arrays(), swapped=st.booleans())
def test_a_copied_array_is_private(a: np.ndarray[Any, Any], swapped: bool) -> None:
    a = a.astype(">f4", order="K") if swapped else a
    tensor = convert_as_planned(a, to="torch", copy=True)
    assert tensor.tolist() == a.tolist()
    tensor.fill_(-1)
    assert -1 not in a


@given(a=layouts.arrays(np.complex64), order=orders)
def test_an_array_copied_by_to_numpy_is_numpys_copy(a: np.ndarray[Any, Any], order: Any) -> None:
    copied = convert_as_planned(a, copy=True, order=order)
    expected = np.array(a, copy=True, order=order)
    assert np.array_equal(copied, expected)
    assert strides_that_matter(copied) == strides_that_matter(expected)


@given(x=layouts.tensors(torch.complex64), order=orders)
def test_a_conjugate_view_of_any_layout_is_read_with_its_mark(x: torch.Tensor, order: Any) -> None:
    marked = (x * (1 + 2j)).conj()
    array = convert_as_planned(marked, order=order)
    expected = np.array(marked.resolve_conj().tolist(), np.complex64).reshape(tuple(x.shape))
    assert np.array_equal(array, expected)


@given(x=layouts.tensors(), other=layouts.arrays())
def test_a_destination_of_any_layout_is_filled_with_exactly_the_source(x: torch.Tensor, other: Any) -> None:
    block = np.full((2 * max(x.numel(), 1), 3), -5.0)
    out = block[: 2 * x.numel() : 2, 1].reshape(tuple(x.shape), copy=None)
    if out.base is not block and out.base is not block.base:
        return
    assert convert_as_planned(x, out=out) is out
    assert np.array_equal(out, layouts.values_of(x))
    assert np.all(block[1::2] == -5)
    assert np.all(block[:, ::2] == -5)
