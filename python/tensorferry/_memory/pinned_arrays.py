"""New arrays over pinned memory."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tensorferry._convert.options import choose
from tensorferry._convert.take import refuse_array, take
from tensorferry._dtypes import CHOICES, NATIVE, resolve
from tensorferry._errors import ArgumentError, DTypeError
from tensorferry._memory.torch_state import torch_device
from tensorferry._native import core

__all__ = ["empty_like_pinned", "empty_pinned", "new_array", "zeros_pinned"]

_Array = np.ndarray[Any, Any]


def empty_pinned(shape: Any, dtype: Any, order: Any) -> _Array:
    """See :func:`tensorferry.empty_pinned`."""
    return new_array(core.PinnedPool.of_results(), shape, dtype, order, zeros=False)


def zeros_pinned(shape: Any, dtype: Any, order: Any) -> _Array:
    """See :func:`tensorferry.zeros_pinned`."""
    return new_array(core.PinnedPool.of_results(), shape, dtype, order, zeros=True)


def empty_like_pinned(x: Any, dtype: Any) -> _Array:
    """See :func:`tensorferry.empty_like_pinned`."""
    taken = take(x, move=False, read=False)
    if taken.source is None:
        raise refuse_array(np.asarray(x), "pinned memory")
    wanted = "keep" if dtype is None else _array_dtype(dtype)
    if wanted == "keep" and taken.source.dtype == "float4_e2m1fn_x2":
        wanted = "float4_e2m1fn"  # arrays hold one value a byte
    made = core.decide(taken.source, copy="always", dtype=wanted, casting="unsafe", order="K")
    return core.new_pinned(
        core.PinnedPool.of_results(),
        made.result_dtype,
        made.shape,
        made.strides,
        zeros=False,
        torch_device=torch_device(),
    )


def new_array(pool: core.PinnedPool, shape: Any, dtype: Any, order: Any, *, zeros: bool) -> _Array:
    """Return a packed array over memory of this pool."""
    extents, name = _extents(shape), _array_dtype(dtype)
    choose("order", order, ("C", "F"))
    step = int(NATIVE[name]["itemsize"])
    strides = []
    for extent in reversed(extents) if order == "C" else extents:
        strides.append(step)
        step *= max(extent, 1)
        if step >= 1 << 63:
            raise ArgumentError(f"shape={shape!r}", "no address space holds so much", "pass a smaller shape")
    if order == "C":
        strides.reverse()
    return core.new_pinned(pool, name, extents, strides, zeros=zeros, torch_device=torch_device())


def _extents(shape: Any) -> list[int]:
    try:
        extents = [operator.index(extent) for extent in (shape if np.iterable(shape) else (shape,))]
    except TypeError:
        extents = [-1]
    if any(extent < 0 for extent in extents):
        raise ArgumentError(f"shape={shape!r}", "that is no shape of an array", "pass ints of at least 0")
    return extents


def _array_dtype(dtype: Any) -> str:
    name = resolve(dtype)
    if name in CHOICES:
        raise DTypeError(f"dtype={dtype!r}", "memory without values has no dtype to go by", "name a dtype")
    return "float4_e2m1fn" if name == "float4_e2m1fn_x2" else name
