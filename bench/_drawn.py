"""Layouts drawn at random, the same ones in every run: permuted, stepped and padded as nobody would think of."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from tensorferry.bench import Point
from tensorferry.bench.cases._inputs import numpy_dtype
from tensorferry.bench.cases._points import KIB, MIB

if TYPE_CHECKING:
    import torch

__all__ = ["drawn_layouts", "drawn_tensor"]

_SEED = 20261130
_EXTENTS = (2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 64, 100, 128)
_NBYTES = (16 * KIB, 128 * KIB, MIB, 4 * MIB)


def drawn_layouts(dtypes: tuple[str, ...], count: int) -> tuple[Point, ...]:
    """Return as many settings, none of them contiguous, whose dtypes take turns.

    ``shape`` and ``strides`` are extents and steps in elements, such as ``"31x7"`` and ``"1x31"``.
    """
    chance = random.Random(_SEED)
    found: list[Point] = []
    while len(found) < count:
        dtype = dtypes[len(found) % len(dtypes)]
        shape, strides = _drawn(chance, numpy_dtype(dtype.split(" to ")[0]).itemsize)
        if not _is_contiguous(shape, strides):
            found.append({"shape": "x".join(map(str, shape)), "strides": "x".join(map(str, strides)), "dtype": dtype})
    return tuple(found)


def drawn_tensor(fill: Callable[[int], torch.Tensor], shape: str, strides: str) -> torch.Tensor:
    """Return a tensor of that layout over a contiguous one, which ``fill`` makes of so many elements."""
    extents, steps = _numbers(shape), _numbers(strides)
    return fill(1 + _last(extents, steps)).as_strided(extents, steps)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("x")))


def _last(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    return sum((extent - 1) * step for extent, step in zip(shape, strides, strict=True))


def _drawn(chance: random.Random, itemsize: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    left = chance.choice(_NBYTES) // itemsize
    shape = []
    for _ in range(chance.randint(1, 4)):
        shape.append(min(chance.choice(_EXTENTS), left))
        left //= shape[-1]
    shape.append(max(left, 1))
    chance.shuffle(shape)
    step, strides = 1, [0] * len(shape)
    for axis in chance.sample(range(len(shape)), len(shape)):
        step *= chance.choice((1, 1, 1, 1, 1, 1, 2, 3))
        strides[axis] = step
        step = step * shape[axis] + step * chance.choice((0, 0, 0, 0, 1, 3))
    return tuple(shape), tuple(strides)


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    longer = [(extent, step) for extent, step in zip(shape, strides, strict=True) if extent > 1]
    return all(step == math.prod(extent for extent, _ in longer[i + 1 :]) for i, (_, step) in enumerate(longer))
