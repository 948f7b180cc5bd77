"""Values of float4_e2m1fn, of which a .safetensors file keeps two in a byte: the first one in its low half."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._io.entries import Entry
from tensorferry._io.readable import Readable, readable
from tensorferry._io.slab_values import slab_values

__all__ = ["in_pairs", "joined", "split"]

_Array = np.ndarray[Any, Any]

_PAIRED = "float4_e2m1fn"
_AT_ONCE_NBYTES = 1 << 20


def in_pairs(entry: Entry) -> Entry:
    """Return an entry as it is written: bytes of two values each, where those of the last axis can be paired.

    What torch holds in pairs already is taken as it is.
    """
    tensor = entry.tensor
    if tensor.paired_shape is not None or tensor.dtype.name != _PAIRED or not tensor.shape or tensor.shape[-1] % 2:
        return entry
    if tensor.filler is not None and tensor.filler.two_in_one and _torch.is_tensor(tensor.filler.tensor):
        import torch

        pairs = readable(tensor.filler.tensor.view(torch.uint8))
    else:
        shape = (*tensor.shape[:-1], tensor.shape[-1] // 2)
        stream = partial(_joined_parts, tensor)
        pairs = Readable(np.dtype(np.uint8), shape, None, "packed", tensor.identity, stream=stream)
    pairs.paired_shape = tensor.shape
    return Entry(entry.name, pairs, entry.alias_of)


def _joined_parts(tensor: Readable) -> Iterator[_Array]:
    for _, values in slab_values(tensor, _AT_ONCE_NBYTES):
        yield joined(values.reshape(-1).view(np.uint8))


def joined(values: _Array) -> _Array:
    """Return bytes of two values each, given an even number of bytes that hold one in their low half."""
    joined_values: _Array = values[0::2] & 0x0F | values[1::2] << 4
    return joined_values


def split(pairs: _Array) -> _Array:
    """Return bytes of one value each, given flat bytes that hold two."""
    values = np.empty(2 * pairs.size, np.uint8)
    np.bitwise_and(pairs, 0x0F, out=values[0::2])
    np.right_shift(pairs, 4, out=values[1::2])
    return values
