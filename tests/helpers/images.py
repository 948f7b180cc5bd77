"""Images of every layout, and the plain NumPy formula that conversions are held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

__all__ = ["MEAN", "STD", "VIEWS", "WIDTH", "bound", "distance_is_least", "formula", "picture"]

MEAN = (0.485, 0.456, 0.406, 0.5)
STD = (0.229, 0.224, 0.225, 0.25)
WIDTH = 700  # more than one tile of any dtype

Array = np.ndarray[Any, Any]


def picture(dtype: str, channels: int = 3, height: int = 5, width: int = WIDTH, seed: int = 0) -> Array:
    """Return a random image of shape (height, width, channels); seeded, so that failures repeat."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "u":
        return rng.integers(0, np.iinfo(dtype).max, (height, width, channels), dtype=dtype, endpoint=True)
    return rng.random((height, width, channels)).astype(dtype)


def _misaligned(x: Array) -> Array:
    memory = np.empty(x.nbytes + 1, np.uint8)
    view = memory[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    return view


def _read_only(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


# Each makes another image of the same height, width and channels, laid out in its own way.
VIEWS: dict[str, Callable[[Array], Array]] = {
    "whole": lambda x: x,
    "crop": lambda x: np.pad(x, ((2, 3), (4, 5), (0, 0)))[2:-3, 4:-5],
    "flipped left to right": lambda x: x[:, ::-1],
    "flipped upside down": lambda x: x[::-1],
    "turned by half": lambda x: x[::-1, ::-1],
    "channels reversed": lambda x: x[:, :, ::-1],
    "flipped, channels reversed": lambda x: x[:, ::-1, ::-1],
    "planes behind": lambda x: np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0),
    "planes behind, flipped": lambda x: np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0)[:, ::-1],
    "columns first": lambda x: np.ascontiguousarray(x.transpose(1, 0, 2)).transpose(1, 0, 2),
    "every second pixel": lambda x: np.repeat(np.repeat(x, 2, axis=0), 2, axis=1)[::2, ::2],
    "some of more channels": lambda x: np.concatenate([x, x], axis=2)[:, :, : x.shape[2]],
    "one pixel for all": lambda x: np.broadcast_to(x[:1, :1], x.shape),
    "misaligned": _misaligned,
    "read-only": _read_only,
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "other byte order, flipped": lambda x: x.astype(x.dtype.newbyteorder())[:, ::-1],
    "other byte order, planes behind": lambda x: x.transpose(2, 0, 1).astype(x.dtype.newbyteorder()).transpose(1, 2, 0),
}


def formula(image: Array, *, layout: str = "CHW", bgr: bool = False, mean: Any = 0.0, std: Any = 1.0) -> Array:
    """Return (x * scale - mean) / std as NumPy computes it in float64."""
    largest = {"uint8": 255.0, "uint16": 65535.0}.get(image.dtype.name, 1.0)
    x = image.astype(np.float64)
    if bgr:
        x = x[..., [2, 1, 0, *range(3, x.shape[-1])]]
    result = (x / largest - np.asarray(mean)) / np.asarray(std)
    return result if layout == "HWC" else np.moveaxis(result, -1, -3)


def bound(expected: Array, dtype: str, image_dtype: str, std: Any = 1.0) -> Array:
    """Return how far results may be from float64's: half a unit in the last place, and what is documented besides."""
    digits, smallest = {"float16": (11, -24), "bfloat16": (8, -133), "float32": (24, -149), "float64": (53, -1074)}[
        dtype
    ]
    units = np.maximum(np.exp2(np.floor(np.log2(np.maximum(np.abs(expected), 1e-300))) + 1 - digits), 2.0**smallest)
    step = 1 / np.min(np.abs(std))
    in_parts = image_dtype == "uint8" and dtype == "float32"
    return units / 2 + (2.0**-28 / 255 * step if in_parts else 0.0) + 2.0**-50 * (np.abs(expected) + 2 * step)


def distance_is_least(result: torch.Tensor, expected: Array) -> bool:
    """Is each element a number of its dtype that no other one of that dtype is nearer to `expected` than?"""
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[result.element_size()]
    bits = result.contiguous().view(integers)
    target = torch.from_numpy(np.ascontiguousarray(expected))
    distance = (result.double() - target).abs()
    neighbours = ((bits + side).view(result.dtype).double() for side in (-1, 1))
    return all(bool((distance <= (value - target).abs().nan_to_num(nan=np.inf)).all()) for value in neighbours)
