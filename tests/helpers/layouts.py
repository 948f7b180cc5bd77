"""Hypothesis strategies for layouts: tensors and arrays whose strides come from slicing, permuting and worse."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

extents = st.integers(0, 4)
shapes = st.lists(extents, min_size=0, max_size=4).map(tuple)


@st.composite
def _slice(draw: Any, extent: int, *, negative: bool) -> slice:
    start = draw(st.integers(0, extent))
    stop = draw(st.integers(start, extent))
    step = draw(st.integers(1, 3))
    if negative and draw(st.booleans()):
        return (
            slice(stop - 1 if stop > 0 else None, start - 1 if start > 0 else None, -step)
            if stop > start
            else slice(0, 0, -1)
        )
    return slice(start, stop, step)


@st.composite
def tensors(draw: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor of distinct small numbers behind a few layout operations."""
    shape = draw(shapes)
    x = torch.arange(int(np.prod(shape, dtype=int))).to(dtype).reshape(shape)
    for _ in range(draw(st.integers(0, 4))):
        x = _changed(draw, x)
    return x


def _changed(draw: Any, x: torch.Tensor) -> torch.Tensor:
    change = draw(st.sampled_from(("permute", "slice", "expand", "unsqueeze", "odd size-1 stride", "sliding window")))
    axis = draw(st.integers(0, x.ndim - 1)) if x.ndim else 0
    if change == "unsqueeze":
        return x.unsqueeze(draw(st.integers(0, x.ndim))) if x.ndim < 6 else x
    if x.ndim == 0:
        return x
    if change == "permute":
        return x.permute(draw(st.permutations(range(x.ndim))))
    if change == "slice":
        return x[(slice(None),) * axis + (draw(_slice(x.shape[axis], negative=False)),)]
    if change == "expand" and x.shape[axis] == 1:
        return x.expand(*(draw(extents) if i == axis else -1 for i in range(x.ndim)))
    if change == "odd size-1 stride" and x.shape[axis] == 1:
        strides = [draw(st.integers(0, 50)) if i == axis else step for i, step in enumerate(x.stride())]
        return x.as_strided(x.shape, strides, x.storage_offset())
    if change == "sliding window" and x.shape[axis] >= 2 and x.ndim < 6:
        return x.unfold(axis, 2, 1)
    return x


@st.composite
def arrays(draw: Any, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """An array of distinct small numbers behind a few layout operations, negative strides among them."""
    shape = draw(shapes)
    x = np.arange(int(np.prod(shape, dtype=int))).astype(dtype).reshape(shape)
    for _ in range(draw(st.integers(0, 4))):
        x = _changed_array(draw, x)
    return x


def _changed_array(draw: Any, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    change = draw(st.sampled_from(("permute", "slice", "broadcast", "new axis", "odd size-1 stride", "Fortran")))
    axis = draw(st.integers(0, x.ndim - 1)) if x.ndim else 0
    if change == "new axis":
        return np.expand_dims(x, draw(st.integers(0, x.ndim))) if x.ndim < 6 else x
    if change == "Fortran":
        return np.array(x, order="F")
    if x.ndim == 0:
        return x
    if change == "permute":
        return x.transpose(draw(st.permutations(range(x.ndim))))
    if change == "slice":
        return x[(slice(None),) * axis + (draw(_slice(x.shape[axis], negative=True)),)]
    if change == "broadcast" and x.shape[axis] == 1:
        return np.broadcast_to(x, [draw(extents) if i == axis else extent for i, extent in enumerate(x.shape)])
    if change == "odd size-1 stride" and x.shape[axis] == 1:
        strides = [draw(st.integers(-50, 50)) if i == axis else step for i, step in enumerate(x.strides)]
        return np.lib.stride_tricks.as_strided(x, x.shape, strides, writeable=x.flags.writeable)
    return x


def values_of(x: torch.Tensor) -> np.ndarray[Any, Any]:
    """What a float32 tensor holds, read one by one: an oracle without any interchange."""
    return np.array(x.tolist(), dtype=np.float32).reshape(tuple(x.shape))
