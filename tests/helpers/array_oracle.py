"""What an array of a tensor must hold, by torch's ``.numpy()`` of plain dtypes, bit views and published tables."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

from helpers import torch_dtypes as dtypes

__all__ = ["array_of", "assert_same"]

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


def array_of(x: torch.Tensor) -> np.ndarray[Any, Any]:
    """An array with the values of a host tensor, in no particular memory order."""
    x = x.resolve_conj().resolve_neg()
    if x.dtype in dtypes.NUMPY_HAS:
        return x.numpy()
    if x.dtype is torch.complex32:
        parts = torch.view_as_real(x).numpy().astype(np.float32)
        return np.ascontiguousarray(parts).view(np.complex64)[..., 0]
    bits = x.view(_INTEGERS[x.element_size()]).numpy()
    if x.dtype is torch.float4_e2m1fn_x2:
        nibbles = np.stack([bits & 15, bits >> 4], -1).reshape(*bits.shape[:-1], 2 * bits.shape[-1])
        return nibbles.view(ml_dtypes.float4_e2m1fn)
    return bits.view(dtypes.array_dtype(x.dtype))


def assert_same(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """Equal in shape, dtype and every value; NaNs equal each other and nothing else."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(found, expected)
        return
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore"):  # signalling NaNs
        np.testing.assert_array_equal(found.astype(wide), expected.astype(wide))
