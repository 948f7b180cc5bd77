"""Images, tensors and arguments that do not go together are refused by name, before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.images import picture

IMAGE = picture("uint8", width=4)
TENSOR = torch.zeros(3, 5, 4)
SQUARE = np.zeros((5, 6, 7), np.uint8)


def forward(images: Any = IMAGE, **arguments: Any) -> Any:
    return ferry.images_to_tensor(images, **arguments)


def back(tensor: Any = TENSOR, **arguments: Any) -> Any:
    return ferry.tensor_to_images(tensor, **arguments)


REFUSED: dict[str, tuple[Callable[[], Any], type[ferry.FerryError], str]] = {
    "no images": (lambda: forward([]), ferry.LayoutError, "no images"),
    "a vector": (lambda: forward(np.zeros(3, np.uint8)), ferry.LayoutError, '"HW" or "HWC" or "NHWC"'),
    "five axes": (lambda: forward(IMAGE[None, None]), ferry.LayoutError, '"NHWC"'),
    "planes first": (lambda: forward(torch.zeros(3, 5, 40)), ferry.LayoutError, r"x\.transpose\(1, 2, 0\)"),
    "many channels": (lambda: forward(SQUARE), ferry.LayoutError, "7 channels"),
    "no channels": (lambda: forward(SQUARE[:, :, :0]), ferry.LayoutError, "0 channels"),
    "a batch in a list": (lambda: forward([IMAGE[None]]), ferry.LayoutError, "image 0.*by itself"),
    "unequal shapes": (lambda: forward([IMAGE, IMAGE, IMAGE[1:]]), ferry.LayoutError, r"image 2.*\(5, 4, 3\)"),
    "unequal dtypes": (lambda: forward([IMAGE, IMAGE.astype("u2")]), ferry.DTypeError, "image 1.*uint8"),
    "int64": (lambda: forward(IMAGE.astype(int)), ferry.DTypeError, "int64.*whose range"),
    "bool": (lambda: forward(IMAGE > 3), ferry.DTypeError, "bool"),
    "complex": (lambda: forward(torch.zeros(5, 4, 3, dtype=torch.complex64)), ferry.DTypeError, "complex64"),
    "dates": (lambda: forward(np.zeros((5, 4), "M8[s]")), ferry.DTypeError, "dates"),
    "a mask": (lambda: forward(np.ma.masked_array(IMAGE, IMAGE > 3)), ferry.DTypeError, "mask"),
    "text": (lambda: forward("image.png"), ferry.DTypeError, "str"),
    "a generator": (lambda: forward(image for image in [IMAGE]), ferry.DTypeError, "generator"),
    "an image in a graph": (lambda: forward(torch.ones(2, 2, 3).requires_grad_()), ferry.AutogradError, "detach"),
    "one of a list": (lambda: forward([IMAGE, torch.ones(5, 4, 3).requires_grad_()]), ferry.AutogradError, "image 1"),
    "other layout": (lambda: forward(layout="WHC"), ferry.ArgumentError, "layout='WHC'"),
    "other dtype": (lambda: forward(dtype="uint8"), ferry.DTypeError, "floating-point"),
    "no dtype": (lambda: forward(dtype="pixels"), ferry.DTypeError, "no dtype"),
    "bgr by name": (lambda: forward(bgr="rgb"), ferry.ArgumentError, "True or False"),
    "bgr of grey": (lambda: forward(IMAGE[:, :, 0], bgr=True), ferry.ArgumentError, "no blue and red"),
    "scale by name": (lambda: forward(scale="bytes"), ferry.ArgumentError, "scale='bytes'"),
    "scale of nothing": (lambda: forward(scale=0), ferry.ArgumentError, "other than 0"),
    "scale without end": (lambda: forward(scale=np.inf), ferry.ArgumentError, "number other than 0|finite"),
    "scale of truth": (lambda: forward(scale=True), ferry.ArgumentError, "scale=True"),
    "too few means": (lambda: forward(mean=(0.5, 0.5)), ferry.ArgumentError, "mean of 2 numbers.*3 channels"),
    "too many deviations": (lambda: forward(IMAGE[:, :, 0], std=(1, 1, 1)), ferry.ArgumentError, "std of 3 numbers"),
    "mean of words": (lambda: forward(mean="imagenet"), ferry.ArgumentError, "mean='imagenet'"),
    "mean that is none": (lambda: forward(mean=(0, 0, np.nan)), ferry.ArgumentError, "number other than 0|finite"),
    "deviation of nothing": (lambda: forward(std=(1, 0, 1)), ferry.ArgumentError, "zero"),
    "quotient out of range": (lambda: forward(std=1e-320), ferry.ArgumentError, "range of float64"),
    "no such device": (lambda: forward(device="screen"), ferry.DeviceError, "device='screen'"),
    "a tensor of bytes": (lambda: back(TENSOR.byte()), ferry.DTypeError, "uint8.*float16"),
    "a tensor of pixels": (lambda: back(torch.zeros(50, 40, 3)), ferry.LayoutError, 'layout="HWC"'),
    "a matrix": (lambda: back(TENSOR[0]), ferry.LayoutError, '"CHW" or "NCHW"'),
    "a list of tensors": (lambda: back([TENSOR]), ferry.LayoutError, "one by one"),
    "images of integers": (lambda: back(dtype="int32"), ferry.DTypeError, "int32"),
    "images of bfloat16": (lambda: back(dtype="bfloat16"), ferry.DTypeError, "bfloat16"),
    "other layout of a tensor": (lambda: back(layout="NCHW"), ferry.ArgumentError, "layout='NCHW'"),
    "sparse": (lambda: back(TENSOR.to_sparse()), ferry.LayoutError, "to_dense"),
}


@pytest.mark.filterwarnings("ignore:.*Sparse.*:UserWarning")
@pytest.mark.parametrize("kind", REFUSED)
def test_what_does_not_convert_is_refused_by_name(kind: str) -> None:
    call, error, words = REFUSED[kind]
    with pytest.raises(error, match=words) as caught:
        call()
    assert caught.value.given
    assert caught.value.why
    assert caught.value.instead


OUT: dict[str, tuple[Callable[[], Any], type[ferry.FerryError]]] = {
    "an array": (lambda: np.zeros((3, 5, 4), np.float32), ferry.BufferMismatchError),
    "other shape": (lambda: torch.zeros(5, 4, 3), ferry.BufferMismatchError),
    "shape that would broadcast": (lambda: torch.zeros(1, 3, 5, 4), ferry.BufferMismatchError),
    "other dtype": (lambda: torch.zeros(3, 5, 4, dtype=torch.float16), ferry.BufferMismatchError),
    "expanded": (lambda: torch.zeros(3, 1, 1).expand(3, 5, 4), ferry.BufferMismatchError),
    "in a graph": (lambda: torch.zeros(3, 5, 4, requires_grad=True), ferry.BufferMismatchError),
    "without memory": (lambda: torch.zeros(3, 5, 4, device="meta"), ferry.DeviceError),
    "of zeros": (lambda: torch._efficientzerotensor((3, 5, 4)), ferry.FerryError),
    "negative": (lambda: torch.zeros(3, 5, 4, dtype=torch.complex64).conj().imag, ferry.BufferMismatchError),
}


@pytest.mark.parametrize("kind", OUT)
def test_a_destination_that_does_not_fit_is_refused_and_left_alone(kind: str) -> None:
    make, error = OUT[kind]
    out = make()
    with pytest.raises(error) as caught:
        ferry.images_to_tensor(IMAGE, out=out)
    assert caught.value.instead
    if isinstance(out, torch.Tensor) and out.device.type == "cpu":
        assert out._version == 0
        assert not out.detach().any()


def test_a_destination_over_an_image_is_refused() -> None:
    memory = torch.ones(100)
    image = memory[10:40].view(2, 5, 3)
    with pytest.raises(ferry.BufferMismatchError, match="overlaps"):
        ferry.images_to_tensor([image, image], out=memory[20:80].view(2, 3, 2, 5))
    assert memory.eq(1).all()
    ferry.images_to_tensor([image, image], scale=2, out=memory[40:].view(2, 3, 2, 5))
    assert memory.tolist() == [1] * 40 + [2] * 60


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, 3, 5, 4),
        lambda: torch.zeros(2, 3, 5, 4).to(memory_format=torch.channels_last),
        lambda: torch.zeros(3, 9, 9, 6)[:2, ::3, 2:7, 1:5],
        lambda: torch.zeros(4, 5, 3, 2).permute(3, 2, 1, 0),
    ],
    ids=["contiguous", "channels last", "a part", "axes reversed"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_a_destination_of_any_strides_is_filled_and_autograd_is_told(make: Any, dtype: torch.dtype) -> None:
    out = make().to(dtype)
    version = out._version
    assert ferry.images_to_tensor([IMAGE, IMAGE[::-1]], bgr=True, dtype=dtype, out=out) is out
    assert torch.equal(out, ferry.images_to_tensor([IMAGE, IMAGE[::-1]], bgr=True, dtype=dtype))
    assert out._version > version


def test_nothing_around_a_destination_changes() -> None:
    whole = torch.full((3, 9, 9), -1.0)
    ferry.images_to_tensor(IMAGE, out=whole[:, 2:7, 1:5])
    assert whole.eq(-1).sum() == whole.numel() - IMAGE.size
