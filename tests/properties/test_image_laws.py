"""Images of random shapes, strides, dtypes and channels: to tensors as NumPy computes them in float64, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorferry as ferry
from helpers.images import bound, formula

IMAGE_DTYPES = ["uint8", "uint16", "float16", "float32", "float64"]
DTYPES = ["float16", "bfloat16", "float32", "float64"]
means = st.floats(-1, 1)
deviations = st.floats(0.125, 4) | st.floats(-4, -0.125)
layouts = st.sampled_from(["CHW", "HWC"])


@st.composite
def images(draw: Any, dtype: str) -> np.ndarray[Any, Any]:
    """One image: a random part of a larger block, with its axes in any order in memory, perhaps byte-swapped."""
    channels = draw(st.integers(1, 4))
    sides = (draw(st.integers(0, 40)), draw(st.integers(0, 700)), channels)
    steps = [draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2])) for _ in sides]
    margins = [draw(st.integers(0, 2)) for _ in sides]
    order = draw(st.permutations(range(3)))
    extents = [side * abs(step) + margin for side, step, margin in zip(sides, steps, margins, strict=True)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    memory = rng.integers(0, 65536, [extents[axis] for axis in order])
    values = memory.astype(dtype) if dtype.startswith("u") else (memory / 65536).astype(dtype)
    if draw(st.booleans()):
        values = values.astype(values.dtype.newbyteorder())
    block = values.transpose(np.argsort(order))
    part = block[tuple(slice(margin, None) for margin in margins)][tuple(slice(None, None, step) for step in steps)]
    return part[tuple(slice(side) for side in sides)]


@pytest.mark.parametrize("image_dtype", IMAGE_DTYPES)
@settings(max_examples=150, deadline=None)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), layout=layouts, bgr=st.booleans())
def test_tensors_hold_what_the_formula_gives(
    image_dtype: str, data: st.DataObject, dtype: str, layout: str, bgr: bool
) -> None:
    image = data.draw(images(image_dtype))
    channels = image.shape[2]
    bgr &= channels > 2
    mean = data.draw(st.lists(means, min_size=channels, max_size=channels))
    std = data.draw(st.lists(deviations, min_size=channels, max_size=channels))
    tensor = ferry.images_to_tensor(image, layout=layout, bgr=bgr, mean=mean, std=std, dtype=dtype)
    native = image.astype(image.dtype.newbyteorder("="))
    expected = formula(native, layout=layout, bgr=bgr, mean=mean, std=std)
    assert tuple(tensor.shape) == expected.shape
    assert (np.abs(tensor.double().numpy() - expected) <= bound(expected, dtype, image_dtype, std)).all()


@pytest.mark.parametrize("image_dtype", ["uint8", "uint16"])
@settings(max_examples=100, deadline=None)
@given(data=st.data(), dtype=st.sampled_from(["float32", "float64"]), layout=layouts, bgr=st.booleans())
def test_integers_come_back(image_dtype: str, data: st.DataObject, dtype: str, layout: str, bgr: bool) -> None:
    image = data.draw(images(image_dtype))
    arguments: dict[str, Any] = {
        "layout": layout,
        "bgr": bgr and image.shape[2] > 2,
        "mean": data.draw(means),
        "std": data.draw(deviations),
    }
    tensor = ferry.images_to_tensor(image, dtype=dtype, **arguments)
    back = ferry.tensor_to_images(tensor, dtype=image_dtype, **arguments)
    assert np.array_equal(back, image)


@settings(max_examples=200, deadline=None)
@given(
    tensor=hnp.arrays(np.float64, hnp.array_shapes(min_dims=3, max_dims=3, max_side=4), elements=st.floats(width=32)),
    dtype=st.sampled_from(["uint8", "uint16"]),
)
def test_any_numbers_become_integers_in_range(tensor: np.ndarray[Any, Any], dtype: str) -> None:
    largest = np.iinfo(dtype).max
    expected = np.clip(np.rint(np.nan_to_num(tensor, nan=0.0)), 0, largest).astype(dtype)
    for source in (torch.from_numpy(tensor), torch.from_numpy(tensor).float()):
        image = ferry.tensor_to_images(source, scale=1, dtype=dtype)
        assert np.array_equal(image, expected.transpose(1, 2, 0))
