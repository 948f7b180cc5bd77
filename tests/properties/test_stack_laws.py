"""A stack is what ``numpy.stack`` makes of the same arrays, whatever their layouts, dtypes and number."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

import tensorferry as ferry
from helpers import layouts

DTYPES = st.sampled_from(("u1", "i2", ">i4", "f2", "f4", ">f8"))


@st.composite
def alike(draw: Any) -> list[np.ndarray[Any, Any]]:
    """A few arrays of one shape, of any layout and several dtypes."""
    first = draw(layouts.arrays())
    items = [first]
    for i in range(draw(st.integers(0, 5))):
        axes = draw(st.permutations(range(first.ndim)))
        shape = [first.shape[axis] for axis in axes]
        other = (np.arange(first.size).reshape(shape) % 100 + i).astype(draw(DTYPES))
        items.append(other.transpose(np.argsort(axes)) if first.ndim else other)
    return items


@given(items=alike(), dtype=st.sampled_from((None, "f4", "f8", "c8")))
def test_a_stack_is_numpys_stack(items: list[np.ndarray[Any, Any]], dtype: str | None) -> None:
    if dtype == "f4":
        items = [item.astype("f4") if item.dtype.kind == "i" and item.itemsize > 2 else item for item in items]
    expected = np.stack(items)
    expected = expected if dtype is None else expected.astype(dtype)
    stacked = ferry.stack(items, to="numpy", dtype=dtype)
    assert stacked.dtype == expected.dtype.newbyteorder("=")
    np.testing.assert_array_equal(stacked, expected)
    tensor = ferry.stack(items, dtype=dtype)
    assert tensor.is_contiguous()
    np.testing.assert_array_equal(tensor.numpy(), expected)


@given(first=layouts.tensors(), count=st.integers(1, 6))
def test_a_stack_of_tensors_is_torchs_stack(first: torch.Tensor, count: int) -> None:
    items = [first + i if i % 2 else first for i in range(count)]
    assert torch.equal(ferry.stack(items), torch.stack(items))


@given(items=alike())
def test_an_array_that_exists_is_filled_the_same(items: list[np.ndarray[Any, Any]]) -> None:
    expected = np.stack(items).astype("f8")
    wide = np.full((*expected.shape, 2), -7.0)
    assert ferry.stack(items, to="numpy", out=wide[..., 0]) is not None
    np.testing.assert_array_equal(wide[..., 0], expected)
    assert (wide[..., 1] == -7).all()
