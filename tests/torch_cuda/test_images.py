"""Images to a tensor on the simulated device: by a kernel of ours or by torch, with the host's results."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.device_path import kernels
from helpers.images import MEAN, STD, bound, formula, picture

WAYS = {"by a kernel": kernels, "by torch": nullcontext}
DTYPES = ["float32", "float16", "bfloat16"]
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)

# Views of a tensor of shape (5, W, C), on the device or the host alike.
VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "whole": lambda x: x,
    "a crop": lambda x: x[1:-1, 3:-2],
    "every second pixel": lambda x: x[::2, ::2],
    "planes behind": lambda x: x.permute(2, 0, 1).contiguous().permute(1, 2, 0),
    "one pixel for all": lambda x: x[:1, :1].expand(x.shape),
}


def launches(cuda: Any) -> int:
    return int(cuda.fake.call_counts()["cuLaunchKernel"])


def assert_near(tensor: torch.Tensor, expected: np.ndarray[Any, Any], std: Any = 1.0, image_dtype: str = "uint8"):
    dtype = str(tensor.dtype).removeprefix("torch.")
    assert tensor.is_cuda
    assert tuple(tensor.shape) == expected.shape
    found = tensor.cpu().double().numpy()
    assert (np.abs(found - expected) <= bound(expected, dtype, image_dtype, std)).all()


@every_way
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_an_image_on_the_device_is_converted_there(any_schedule: Any, channels: int, dtype: str, way: Any):
    image, mean, std = picture("uint8", channels, width=37), MEAN[:channels], STD[:channels]
    there = torch.from_numpy(image).to("cuda")
    with way():
        any_schedule.fake.clear_trace()
        tensor = ferry.images_to_tensor(there, mean=mean, std=std, dtype=dtype)
        assert launches(any_schedule) == (1 if way is kernels else 0)
        assert tensor.is_contiguous()
        assert_near(tensor, formula(image, mean=mean, std=std), std)


@every_way
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_any_layout_gives_what_the_host_gives(cuda: Any, view: Callable[..., torch.Tensor], way: Any):
    host = view(torch.from_numpy(picture("uint8", width=37)))
    there = view(cuda.settled(torch.from_numpy(picture("uint8", width=37))))
    with way():
        tensor = ferry.images_to_tensor(there, bgr=True, mean=MEAN[:3], std=STD[:3])
        assert_near(tensor, formula(host.numpy(), bgr=True, mean=MEAN[:3], std=STD[:3]), STD[:3])
        assert torch.equal(tensor.cpu(), ferry.images_to_tensor(host, bgr=True, mean=MEAN[:3], std=STD[:3]))


@every_way
def test_host_images_are_sent_as_bytes_and_converted_at_once(any_schedule: Any, way: Any):
    images = [picture("uint8", width=40, seed=i)[:, ::-1] for i in range(4)]
    with way():
        ferry.images_to_tensor(images, device="cuda")
        any_schedule.fake.drain()
        any_schedule.fake.clear_trace()
        tensor = ferry.images_to_tensor(images, device="cuda", bgr=True)
        for image in images:
            image[...] = 0xEE  # whoever reads them later is too late
        assert launches(any_schedule) == (1 if way is kernels else 0)
    expected = np.stack([formula(picture("uint8", width=40, seed=i)[:, ::-1], bgr=True) for i in range(4)])
    assert_near(tensor, expected)


@pytest.mark.parametrize("as_batch", [True, False], ids=["as one array", "as a list"])
def test_a_batch_of_grey_and_coloured_images_goes_to_the_device(cuda: Any, as_batch: bool):
    with kernels():
        coloured = np.stack([picture("uint8", width=9, seed=i) for i in range(3)])
        tensor = ferry.images_to_tensor(coloured if as_batch else list(coloured), device="cuda:1")
        assert tensor.device == torch.device("cuda:1")
        assert_near(tensor, formula(coloured))
        grey = [image[:, :, 0] for image in coloured]
        assert_near(ferry.images_to_tensor(grey, device="cuda"), formula(coloured[..., :1]))


def test_images_of_both_sides_meet_where_it_is_said(cuda: Any):
    images = [picture("uint8", width=9, seed=i) for i in range(2)]
    mixed = [cuda.settled(torch.from_numpy(images[0])), images[1]]
    expected = np.stack([formula(image) for image in images])
    with kernels():
        assert_near(ferry.images_to_tensor(mixed, device="cuda"), expected)
    on_host = ferry.images_to_tensor(mixed, device="cpu")
    assert on_host.device.type == "cpu"
    assert np.allclose(on_host.numpy(), expected, atol=1e-6)
    with pytest.raises(ferry.DeviceError, match=r"image 1 on the host.*image 0 is on cuda:0.*device="):
        ferry.images_to_tensor(mixed)


@every_way
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
def test_a_tensor_on_the_device_is_filled(cuda: Any, layout: str, way: Any):
    image = picture("uint8", width=21)
    expected = formula(image, layout=layout)
    parent = cuda.settled(torch.full((2, *expected.shape), -7.0))
    version = parent._version
    with way():
        for source in (image, cuda.settled(torch.from_numpy(image))):
            assert ferry.images_to_tensor(source, layout=layout, out=parent[1]).data_ptr() == parent[1].data_ptr()
    assert parent._version > version
    assert (parent[0].cpu() == -7).all()
    assert_near(parent[1], expected)


def test_channels_last_memory_is_filled_by_torch(cuda: Any):
    images = np.stack([picture("uint8", width=6, seed=i) for i in range(2)])
    out = torch.empty(2, 3, 5, 6, device="cuda", memory_format=torch.channels_last)
    with kernels():
        ferry.images_to_tensor(images, out=out)
    assert_near(out, formula(images))


def test_every_byte_is_that_of_the_host_in_every_dtype(cuda: Any):
    image = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    for dtype in (*DTYPES, "float64"):
        expected = ferry.images_to_tensor(image, dtype=dtype, mean=0.45, std=0.22)
        for way in WAYS.values():
            with way():
                found = ferry.images_to_tensor(torch.from_numpy(image).to("cuda"), dtype=dtype, mean=0.45, std=0.22)
                assert torch.equal(found.cpu(), expected)


@pytest.mark.parametrize("image_dtype", ["uint16", "float16", "float32", "float64"])
def test_images_of_other_dtypes_come_out_as_on_the_host(cuda: Any, image_dtype: str):
    image = picture(image_dtype, width=9)
    expected = ferry.images_to_tensor(image, bgr=True, mean=MEAN[:3], std=STD[:3])
    assert_near(expected.to("cuda"), formula(image, bgr=True, mean=MEAN[:3], std=STD[:3]), STD[:3], image_dtype)
    with kernels():
        for source, device in ((image, "cuda"), (cuda.settled(torch.from_numpy(image)), None)):
            tensor = ferry.images_to_tensor(source, bgr=True, mean=MEAN[:3], std=STD[:3], device=device)
            assert tensor.is_cuda
            assert torch.equal(tensor.cpu(), expected)


def test_the_conversion_is_ordered_in_the_current_stream(any_schedule: Any):
    image = picture("uint8", width=33)
    with kernels():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            there = torch.zeros(image.shape, dtype=torch.uint8, device="cuda")
            there.copy_(torch.from_numpy(image))  # enqueued, and perhaps not done
            tensor = ferry.images_to_tensor(there)
            there.zero_()  # comes after
            after = tensor.clone()
        torch.cuda.current_stream().wait_stream(stream)
        assert_near(after, formula(image))


def test_no_images_of_no_size_launch_anything(cuda: Any):
    with kernels():
        cuda.fake.clear_trace()
        assert ferry.images_to_tensor(torch.empty(0, 4, 4, 3, dtype=torch.uint8, device="cuda")).shape == (0, 3, 4, 4)
        assert ferry.images_to_tensor(np.empty((4, 0, 3), np.uint8), device="cuda").shape == (3, 4, 0)
        assert launches(cuda) == 0


def test_what_does_not_fit_is_refused_before_anything_is_enqueued(cuda: Any):
    image = cuda.settled(torch.from_numpy(picture("uint8", width=9)))
    floats = cuda.settled(torch.zeros(5, 9, 3))
    refused: dict[str, tuple[Callable[[], Any], type[ferry.FerryError], str]] = {
        "shape": (lambda: ferry.images_to_tensor(image, out=floats), ferry.BufferMismatchError, "shape"),
        "dtype": (lambda: ferry.images_to_tensor(image, out=floats.half()), ferry.BufferMismatchError, "dtype"),
        "place": (
            lambda: ferry.images_to_tensor(image, out=floats, device="cpu"),
            ferry.BufferMismatchError,
            "the two disagree",
        ),
        "its own memory": (
            lambda: ferry.images_to_tensor(floats, out=floats.view(3, 5, 9)),
            ferry.BufferMismatchError,
            "storage of an image",
        ),
        "axes": (lambda: ferry.images_to_tensor(image.permute(2, 0, 1)), ferry.LayoutError, "channels"),
        "integers": (lambda: ferry.images_to_tensor(image.to(torch.int64)), ferry.DTypeError, "int64"),
        "a graph": (lambda: ferry.images_to_tensor(floats.requires_grad_()), ferry.AutogradError, "detach"),
        "no such device": (lambda: ferry.images_to_tensor(image, device="cuda:9x"), ferry.DeviceError, "cuda:9x"),
    }
    cuda.fake.drain()
    cuda.fake.clear_trace()
    for name, (call, error, words) in refused.items():
        with pytest.raises(error, match=words) as caught:
            call()
        assert caught.value.instead, name
    assert launches(cuda) == 0
