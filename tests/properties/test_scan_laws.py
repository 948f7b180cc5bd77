"""Scans find what NumPy finds, whatever the layout and wherever the offending values lie."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorferry as ferry
from helpers import layouts
from tensorferry._native import core

FLOATS = ("f2", "f4", "f8", ">f4", ">f8", "c8", "c16", ">c16", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn)
NUMBERS = ("?", "u1", "i1", "u2", "i2", ">i4", "u4", "i8", ">u8", "f2", "f4", ">f8", ml_dtypes.bfloat16)
BOUNDS = (-np.inf, -3.0, -0.5, -0.0, 0.0, 0.5, 2.0, 7.0, 1e40, np.inf)


def first_and_count(found: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The count and the first flat index in C order, as the native layer reports them."""
    return int(found.sum()), int(np.argmax(found)) if found.any() else -1


@st.composite
def strided(draw: Any, dtypes: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """Small numbers of one of the dtypes behind a few layout operations; some are none, if the dtype has such."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    x: np.ndarray[Any, Any] = draw(layouts.arrays(dtype))
    memory: Any = x
    while memory.base is not None:
        memory = memory.base
    if dtype.kind not in "biu" and memory.size > 0:
        for at in draw(st.lists(st.integers(0, memory.size - 1), max_size=4)):
            memory.flat[at] = draw(st.sampled_from((np.nan, np.inf, -np.inf)))
    return x


@given(x=strided(FLOATS))
def test_a_scan_counts_and_locates_what_is_not_finite(x: np.ndarray[Any, Any]) -> None:
    expected = first_and_count(~np.isfinite(x))
    assert core.scan_nonfinite(core.Source.from_array(x)) == expected
    if expected[0] == 0:
        assert ferry.check(x, finite=True) is x
    else:
        with pytest.raises(ferry.CheckError, match=f"{expected[0]} of {x.size}"):
            ferry.check(x, finite=True)


@given(x=strided(NUMBERS), low=st.sampled_from(BOUNDS), high=st.sampled_from(BOUNDS))
def test_a_scan_counts_and_locates_what_is_out_of_range(x: np.ndarray[Any, Any], low: float, high: float) -> None:
    values = x.astype(np.float64)
    expected = first_and_count(~((values >= low) & (values <= high)))
    assert core.scan_outside(core.Source.from_array(x), low, high) == expected
    if low <= high and expected[0] == 0:
        assert ferry.check(x, range=(low, high)) is x


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
def test_a_large_array_is_searched_as_a_small_one(dtype: str) -> None:
    random = np.random.default_rng(20)
    whole = random.integers(-9, 9, (1500, 2100)).astype(dtype)
    for x in (whole, whole.T, whole[::-1, ::2], whole[:, 5:-7]):
        for _ in range(4):
            places = tuple(random.integers(0, extent, 3) for extent in x.shape)
            kept = x[places]
            x[places] = np.nan
            assert core.scan_nonfinite(core.Source.from_array(x)) == first_and_count(~np.isfinite(x))
            x[places] = kept
