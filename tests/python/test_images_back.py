"""``tensor_to_images``: the inverse, its rounding, and what comes out for OpenCV."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.images import MEAN, STD, VIEWS, picture


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_all_bytes_come_back(channels: int, layout: str, normalised: bool, dtype: str) -> None:
    values = np.arange(256, dtype=np.uint8)
    image = np.stack([np.roll(values, c).reshape(8, 32) for c in range(channels)], axis=2)
    arguments: dict[str, Any] = {"layout": layout, "bgr": channels > 2}
    if normalised:
        arguments |= {"mean": MEAN[:channels], "std": STD[:channels]}
    tensor = ferry.images_to_tensor(image, dtype=dtype, **arguments)
    assert np.array_equal(ferry.tensor_to_images(tensor, **arguments), image)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_16_bit_values_come_back(dtype: str) -> None:
    image = np.arange(65536, dtype=np.uint16).reshape(256, 256, 1)
    tensor = ferry.images_to_tensor(image, mean=0.45, std=0.23, dtype=dtype)
    assert np.array_equal(ferry.tensor_to_images(tensor, mean=0.45, std=0.23, dtype="uint16"), image)


def test_floating_point_images_come_back_within_their_rounding() -> None:
    image = picture("float32")
    tensor = ferry.images_to_tensor(image, mean=MEAN[:3], std=STD[:3], dtype="float64")
    back = ferry.tensor_to_images(tensor, mean=MEAN[:3], std=STD[:3], dtype="float32")
    assert np.array_equal(back, image)
    assert ferry.tensor_to_images(torch.full((1, 1, 1), 7.5), dtype="float64").item() == 7.5


@pytest.mark.parametrize("tensor_dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("dtype", "largest"), [("uint8", 255), ("uint16", 65535)])
def test_integers_are_rounded_to_even_and_clamped_and_nan_is_zero(
    tensor_dtype: torch.dtype, dtype: str, largest: int
) -> None:
    values = [0.5, 1.5, 2.5, 100.5, 101.5, 0.25, -0.5, -1e-4, -7, 1e4 * largest, np.inf, -np.inf, np.nan, -0.0]
    expected = [0, 2, 2, 100, 102, 0, 0, 0, 0, largest, largest, 0, 0, 0]
    tensor = torch.tensor(values * 9, dtype=torch.float64).to(tensor_dtype).view(1, 9, -1)
    image = ferry.tensor_to_images(tensor, scale=1, dtype=dtype)
    assert image.dtype == dtype
    assert image[:, :, 0].tolist() == [expected] * 9


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float16", "float32", "float64"])
@pytest.mark.parametrize("view", [name for name in VIEWS if "byte order" not in name])
def test_tensors_of_any_strides_give_numpys_values(view: str, dtype: str) -> None:
    pixels = VIEWS[view](picture("float32"))
    factor = {"uint8": 255, "uint16": 65535}.get(dtype, 1)
    exact = (pixels.astype(np.float64) * np.array(STD[:3]) + np.array(MEAN[:3])) * factor
    expected = np.clip(np.rint(exact), 0, factor) if factor > 1 else exact
    arguments: dict[str, Any] = {"mean": MEAN[:3], "std": STD[:3], "dtype": dtype}
    for source, layout in ((pixels, "HWC"), (pixels.transpose(2, 0, 1), "CHW")):
        image = ferry.tensor_to_images(source, layout=layout, **arguments)
        assert image.flags.c_contiguous
        assert image.flags.writeable
        assert np.array_equal(image, expected.astype(dtype))


def test_a_batch_gives_an_array_of_images() -> None:
    images = np.stack([picture("uint8", seed=seed) for seed in range(3)])
    batch = ferry.images_to_tensor(images, bgr=True)
    back = ferry.tensor_to_images(batch, bgr=True)
    assert back.shape == images.shape
    assert np.array_equal(back, images)
    channels_last = batch.to(memory_format=torch.channels_last)
    assert np.array_equal(ferry.tensor_to_images(channels_last, bgr=True), images)
    assert np.array_equal(ferry.tensor_to_images(channels_last.permute(0, 2, 3, 1), layout="HWC", bgr=True), images)
    assert ferry.tensor_to_images(batch[:0]).shape == (0, *images.shape[1:])


def test_mean_and_std_belong_to_the_channels_of_the_tensor() -> None:
    rgb = torch.zeros(3, 1, 1)
    image = ferry.tensor_to_images(rgb, bgr=True, mean=(1, 0.2, 0))
    assert image.tolist() == [[[0, 51, 255]]]


def test_the_values_of_a_tensor_that_requires_grad_are_read() -> None:
    leaf = torch.full((1, 2, 2), 0.2, requires_grad=True)
    assert ferry.tensor_to_images(leaf * 1).ravel().tolist() == [51] * 4
    assert leaf.requires_grad


def test_large_tensors_are_the_same_on_any_number_of_threads() -> None:
    image = picture("uint8", height=1203, width=1801)
    tensor = ferry.images_to_tensor(image)
    before = torch.get_num_threads()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            assert np.array_equal(ferry.tensor_to_images(tensor), image)
    finally:
        torch.set_num_threads(before)
