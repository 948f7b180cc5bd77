"""``images_to_tensor`` against NumPy's formula in float64: values, layouts, kinds of images."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from PIL import Image

import tensorferry as ferry
from helpers.counting_capsules import CountingCapsule, Producer
from helpers.images import MEAN, STD, VIEWS, bound, distance_is_least, formula, picture

IMAGE_DTYPES = ["uint8", "uint16", "float16", "float32", "float64"]
DTYPES = ["float16", "bfloat16", "float32", "float64"]


def as_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    return tensor.double().numpy()


def assert_near(tensor: torch.Tensor, expected: np.ndarray[Any, Any], image_dtype: str, std: Any = 1.0) -> None:
    dtype = str(tensor.dtype).removeprefix("torch.")
    assert tuple(tensor.shape) == expected.shape
    assert (np.abs(as_array(tensor) - expected) <= bound(expected, dtype, image_dtype, std)).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(("image_dtype", "largest"), [("uint8", 255), ("uint16", 65535)])
def test_every_value_over_the_largest_is_rounded_correctly(dtype: str, image_dtype: str, largest: int) -> None:
    values = np.arange(largest + 1, dtype=image_dtype).reshape(-1, 1, 1)
    tensor = ferry.images_to_tensor(values, dtype=dtype)
    assert distance_is_least(tensor[0, :, 0], values.ravel() / largest)


def test_bytes_come_out_as_torch_divides_them() -> None:
    image = picture("uint8")
    expected = torch.from_numpy(image).permute(2, 0, 1).float().div(255)
    assert torch.equal(ferry.images_to_tensor(image), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("image_dtype", IMAGE_DTYPES)
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_values_are_those_of_the_formula(channels: int, image_dtype: str, dtype: str) -> None:
    image, mean, std = picture(image_dtype, channels), MEAN[:channels], STD[:channels]
    for layout in ("CHW", "HWC"):
        tensor = ferry.images_to_tensor(image, layout=layout, mean=mean, std=std, dtype=dtype)
        assert str(tensor.dtype) == f"torch.{dtype}"
        assert tensor.is_contiguous()
        assert_near(tensor, formula(image, layout=layout, mean=mean, std=std), image_dtype, std)


@pytest.mark.parametrize("image_dtype", ["uint8", "uint16", "float64"])
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("view", VIEWS)
def test_any_strides_give_what_a_packed_copy_gives(view: str, layout: str, image_dtype: str) -> None:
    for channels, bgr in ((1, False), (2, False), (3, False), (3, True), (4, True)):
        image = VIEWS[view](picture(image_dtype, channels))
        mean, std = MEAN[:channels], STD[:channels]
        tensor = ferry.images_to_tensor(image, layout=layout, bgr=bgr, mean=mean, std=std)
        native = image.astype(image.dtype.newbyteorder("="))
        assert_near(tensor, formula(native, layout=layout, bgr=bgr, mean=mean, std=std), image_dtype, std)


def test_mean_and_std_belong_to_the_channels_of_the_tensor() -> None:
    bgr = np.zeros((1, 1, 3), np.uint8)
    bgr[0, 0] = 0, 0, 255  # red, as OpenCV has it
    tensor = ferry.images_to_tensor(bgr, bgr=True, mean=(1, 0, 0), std=(1, 2, 4))
    assert tensor.ravel().tolist() == [0, 0, 0]
    assert ferry.images_to_tensor(bgr, bgr=True, mean=0.5, std=0.5).ravel().tolist() == [1, -1, -1]


@pytest.mark.parametrize(
    "make",
    [tuple, list, np.array, torch.tensor, lambda x: torch.tensor(x).view(3, 1, 1), lambda x: np.float32(x)[None]],
    ids=["tuple", "list", "array", "tensor", "tensor of shape (3, 1, 1)", "float32 array"],
)
def test_mean_and_std_come_in_any_container(make: Any) -> None:
    image = picture("uint8")
    expected = ferry.images_to_tensor(image, mean=(0.5, 0.25, 0.125), std=(0.5, 2, 4))
    assert torch.equal(ferry.images_to_tensor(image, mean=make([0.5, 0.25, 0.125]), std=make([0.5, 2, 4])), expected)


@pytest.mark.parametrize("scale", [1, 1.0, 1 / 128, np.float32(0.5), -2])
def test_a_scale_of_ones_own_multiplies(scale: Any) -> None:
    image = picture("uint8")
    expected = (image * np.float64(scale)).astype(np.float32).transpose(2, 0, 1)
    assert np.array_equal(ferry.images_to_tensor(image, scale=scale).numpy(), expected)


def test_scale_shift_and_deviation_far_apart_are_as_exact() -> None:
    image = picture("uint8")
    for mean, std in ((-3.0, 1.0), (1e6, 1e-3), (0.0, 1e-30), (1e-20, 1e20), (-0.5, -0.5), (300.0, 1.0)):
        exact = (image.astype(np.longdouble) / 255 - mean) / std
        tensor = ferry.images_to_tensor(image, mean=mean, std=std)
        expected = np.moveaxis(exact.astype(np.float64), -1, 0)
        allowed = np.spacing(np.abs(expected).astype(np.float32)) / 2 * 1.001 + 2.0**-28 / 255 / abs(std)
        assert (np.abs(as_array(tensor) - expected) <= allowed + 2.0**-50 * abs(mean / std)).all()


def test_a_list_and_a_batch_give_what_single_images_give() -> None:
    images = [picture("uint8", seed=seed) for seed in range(3)]
    mixed = [images[0], torch.from_numpy(images[1]), memoryview(images[2])]
    expected = torch.stack([ferry.images_to_tensor(image, bgr=True) for image in images])
    for batch in (images, tuple(images), mixed, np.stack(images), torch.from_numpy(np.stack(images))):
        assert torch.equal(ferry.images_to_tensor(batch, bgr=True), expected)
    backwards = np.stack(images[::-1])[::-1]
    assert torch.equal(ferry.images_to_tensor(backwards, bgr=True), expected)
    assert ferry.images_to_tensor(images[:1]).shape == (1, 3, *images[0].shape[:2])
    assert ferry.images_to_tensor(np.stack(images), layout="HWC").shape == (3, *images[0].shape)


def test_images_without_an_axis_of_channels_get_one() -> None:
    grey = picture("uint8", 1)[:, :, 0]
    expected = torch.from_numpy(grey).float().div(255)
    assert torch.equal(ferry.images_to_tensor(grey), expected[None])
    assert torch.equal(ferry.images_to_tensor(grey.T[::-1], layout="HWC"), expected.T.flip(0)[:, :, None])
    assert torch.equal(ferry.images_to_tensor([grey, grey[:, :, None]]), expected[None, None].expand(2, 1, -1, -1))


@pytest.mark.parametrize("shape", [(0, 4, 3), (4, 0, 1), (0, 4, 4, 3), (2, 0, 4, 3), (0, 0)])
def test_images_without_pixels_give_tensors_without_elements(shape: tuple[int, ...]) -> None:
    height, width, channels = shape[-3:] if len(shape) > 2 else (*shape, 1)
    tensor = ferry.images_to_tensor(np.zeros(shape, np.uint8))
    assert tensor.shape == (*shape[:-3], channels, height, width)


def test_other_kinds_of_images() -> None:
    image = picture("uint8")
    expected = ferry.images_to_tensor(image)
    assert torch.equal(ferry.images_to_tensor(Image.fromarray(image)), expected)
    assert torch.equal(ferry.images_to_tensor(ferry.to_dlpack(image)), expected)
    made = CountingCapsule((2, 3))
    made.values[:6] = [0, 1, 2, 3, 4, 5]
    assert ferry.images_to_tensor(Producer(made)).tolist() == [[[0, 1, 2], [3, 4, 5]]]
    small = image.astype(ml_dtypes.bfloat16)
    assert torch.equal(ferry.images_to_tensor(small), torch.from_numpy(small.astype("f4")).permute(2, 0, 1))
    negative = torch.complex(torch.zeros(2, 2), torch.ones(2, 2)).conj().imag
    assert negative.is_neg()
    assert ferry.images_to_tensor(negative).unique().tolist() == [-1]
    assert not ferry.images_to_tensor(torch._efficientzerotensor((2, 2, 3))).any()


def test_nan_and_infinity_stay() -> None:
    image = np.array([[[np.nan], [np.inf], [-np.inf]]], np.float32)
    for dtype in DTYPES:
        tensor = ferry.images_to_tensor(image, mean=0.5, std=2, dtype=dtype)
        assert np.array_equal(as_array(tensor).ravel(), [np.nan, np.inf, -np.inf], equal_nan=True)


def test_large_images_are_the_same_on_any_number_of_threads() -> None:
    image = picture("uint8", height=999, width=1001)
    expected = torch.from_numpy(image).permute(2, 0, 1).float().div(255)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            for view, wanted in (
                (image, expected),
                (image[3:, :-7], expected[:, 3:, :-7]),
                (image[::-1], expected.flip(1)),
            ):
                assert torch.equal(ferry.images_to_tensor(view), wanted)
                assert torch.equal(ferry.images_to_tensor(view, layout="HWC", std=(1, 1, 0.5))[..., 0], wanted[0])
    finally:
        torch.set_num_threads(before)


def test_the_result_keeps_its_memory_and_the_image_its_values() -> None:
    image = picture("uint8")
    kept = image.copy()
    tensor = ferry.images_to_tensor(image)
    tensor.zero_()
    others = [ferry.images_to_tensor(image) for _ in range(3)]
    assert not tensor.any()
    assert len({t.data_ptr() for t in [tensor, *others]}) == 4
    assert np.array_equal(image, kept)
    tensor.requires_grad_().sum().backward()
    assert tensor.grad is not None
    assert bool(tensor.grad.eq(1).all())


def test_the_host_can_be_named_as_the_device() -> None:
    image = picture("uint8")
    for device in ("cpu", torch.device("cpu")):
        tensor = ferry.images_to_tensor(image, device=device)
        assert tensor.device.type == "cpu"
        assert torch.equal(tensor, torch.from_numpy(image).permute(2, 0, 1).float().div(255))
    out = torch.empty(3, *image.shape[:2])
    assert ferry.images_to_tensor(image, out=out, device="cpu") is out
    assert_near(out, formula(image), "uint8")
