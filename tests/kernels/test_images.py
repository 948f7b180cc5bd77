"""Bytes of images to planes of floats."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import tensorferry as ferry
from helpers.fake_cuda import FakeCuda
from helpers.fake_kernels import DeviceBytes, Kernels
from helpers.images import MEAN, STD
from helpers.kernel_launches import decisions
from helpers.kernel_layouts import OnDevice

_u64, _i64, _u32, _double, _float = ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint32, ctypes.c_double, ctypes.c_float
DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


class ChannelMap(ctypes.Structure):
    """Of image.hpp."""

    _fields_ = (
        *(("scale", _double), ("shift", _double), ("scale_high", _float), ("scale_low", _float)),
        *(("shift_high", _float), ("shift_low", _float), ("in_parts", _u32), ("unused", _u32)),
    )


class ImageArgs(ctypes.Structure):
    """Of image.hpp; the divisors and `aligned` are filled by the product."""

    _fields_ = (
        *(("to", _u64), ("source", _u64), ("images", _u64), ("by_height", _u64 * 3), ("width", _u64)),
        *(("by_groups", _u64 * 3), ("to_image", _i64), ("to_channel", _i64), ("to_row", _i64)),
        *(("from_image", _i64), ("from_row", _i64), ("from_column", _i64), ("from_channel", _i64 * 4)),
        *(("channels", _u32), ("aligned", _u32), ("maps", ChannelMap * 4)),
    )


LAYOUTS = {
    "whole": lambda x: x,
    "cropped": lambda x: x[:, 1:-1, 3:-2],
    "flipped": lambda x: x[:, ::-1, ::-1],
    "turned": lambda x: x[::-1, ::-1],
    "channels reversed": lambda x: x[..., ::-1],
    "every second pixel": lambda x: x[:, ::2, ::2],
    "one image for all": lambda x: np.broadcast_to(x[:1], x.shape),
}


def convert(
    fake: FakeCuda, kernels: Kernels, out_of: OnDevice, view: NDArray[Any], dtype: str, maps: list[ChannelMap], gap: int
) -> NDArray[Any]:
    """Planes of shape (images, channels, height, width), by the kernel; `gap` elements between rows stay."""
    images, height, width, channels = view.shape
    size = np.dtype(DTYPES[dtype]).itemsize
    row = (width + gap) * size
    to = DeviceBytes(kernels.driver, images * channels * height * row)
    args = ImageArgs(to=to.pointer, source=out_of.pointer_to(view), images=images, width=width, channels=channels)
    args.to_image, args.to_channel, args.to_row = channels * height * row, height * row, row
    args.from_image, args.from_row, args.from_column = view.strides[:3]
    for c in range(channels):
        args.from_channel[c] = c * view.strides[3]
        args.maps[c] = maps[c]
    nbytes = decisions().image_arguments(ctypes.addressof(args), height, size)
    assert nbytes == ctypes.sizeof(args)
    kernels.run(f"ferry_image_{dtype}", bytes(args), 3, 64)
    lines = to.peek().reshape(images, channels, height, width + gap, size)
    assert np.all(lines[..., width:, :] == 0xDE), "wrote between rows"
    return np.ascontiguousarray(lines[..., :width, :]).view(DTYPES[dtype])[..., 0]


def formula(view: NDArray[Any], dtype: str, maps: list[ChannelMap]) -> NDArray[Any]:
    """In float64, rounded once: both steps of ml_dtypes' rounding would be seen, so through the neighbours."""
    exact = np.stack([view[..., c] * maps[c].scale + maps[c].shift for c in range(view.shape[-1])], axis=1)
    if dtype != "bfloat16":
        return exact.astype(DTYPES[dtype])
    near = exact.astype(np.float32).astype(ml_dtypes.bfloat16)
    codes = near.view(np.uint16).astype(np.int32)
    choices = np.stack([codes - 1, codes, codes + 1]).clip(0, 0xFFFF).astype(np.uint16).view(ml_dtypes.bfloat16)
    distance = np.abs(choices.astype(np.float64) - exact)
    even = choices.view(np.uint16) % 2
    order = distance + np.where(distance == distance.min(axis=0), even, 0) * 1e-300
    best = np.lexsort((even, distance), axis=0)[0] if order.ndim else 0
    return np.take_along_axis(choices, best[None], axis=0)[0]


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_value_is_scaled_and_rounded_once(
    fake: FakeCuda, kernels: Kernels, dtype: str, layout: str, channels: int
):
    rng = np.random.default_rng(channels)
    base = rng.integers(0, 256, (3, 9, 37, channels), np.uint8)
    view = LAYOUTS[layout](base)
    maps = [ChannelMap(1 / 255 / STD[c], -MEAN[c] / STD[c]) for c in range(channels)]
    for offset, gap in ((0, 0), (0, 3), (1, 0), (4, 8)):
        got = convert(fake, kernels, OnDevice(kernels, base, offset), view, dtype, maps, gap)
        assert np.array_equal(got, formula(view, dtype, maps)), f"offset {offset}, gap {gap}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_byte_gives_what_the_host_gives(fake: FakeCuda, kernels: Kernels, dtype: str):
    image = np.arange(256 * 3, dtype=np.uint16).astype(np.uint8).reshape(1, 16, 16, 3)
    expected = ferry.images_to_tensor([image[0]], dtype=getattr(torch, dtype), mean=MEAN[:3], std=STD[:3])
    maps = host_maps(MEAN[:3], STD[:3], in_parts=dtype == "float32")
    got = convert(fake, kernels, OnDevice(kernels, image), image, dtype, maps, 0)
    assert got.tobytes() == expected.contiguous().view(torch.uint8).numpy().tobytes()


def host_maps(mean: Any, std: Any, *, in_parts: bool) -> list[ChannelMap]:
    """Scale and shift as sums of two floats: the high ones are multiples of the 14th digit of the scale."""
    maps = []
    for m, s in zip(mean, std, strict=True):
        scale, shift = 1 / 255 / s, -m / s
        unit = 2.0 ** (np.floor(np.log2(scale)) - 13)
        high = [float(np.rint(value / unit) * unit) for value in (scale, shift)]
        parts = (high[0], scale - high[0], high[1], shift - high[1])
        maps.append(ChannelMap(scale, shift, *parts, int(in_parts)))
    return maps


def test_nothing_is_written_for_empty_images(fake: FakeCuda, kernels: Kernels):
    base = np.zeros((0, 4, 4, 3), np.uint8)
    maps = [ChannelMap(1.0, 0.0)] * 3
    assert convert(fake, kernels, OnDevice(kernels, base), base, "float32", maps, 0).shape == (0, 3, 4, 4)
