"""Every torch dtype: sample tensors that hold its interesting bit patterns, and what an array of them must hold."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

ALL: list[torch.dtype] = sorted(
    {getattr(torch, name) for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)}, key=str
)


def name_of(dtype: torch.dtype) -> str:
    """As in ``torch.<name>``."""
    return str(dtype).removeprefix("torch.")


QUANTIZED = [torch.qint8, torch.qint32, torch.quint8, torch.quint4x2, torch.quint2x4]
CONVERTIBLE = [dtype for dtype in ALL if dtype not in QUANTIZED]
NUMPY_INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
NUMPY_FLOATS = ["float16", "float32", "float64"]
NUMPY_NAMES = ["bool", *NUMPY_INTEGERS, *NUMPY_FLOATS, "complex64", "complex128"]
NUMPY_HAS = [dtype for dtype in ALL if name_of(dtype) in NUMPY_NAMES]
ML_FLOATS = [dtype for dtype in ALL if name_of(dtype) == "bfloat16" or name_of(dtype).startswith("float8")]
SMALL_INTEGERS = [getattr(torch, f"{sign}int{bits}") for bits in range(1, 8) for sign in ("", "u")]
BITS = [torch.bits8, torch.bits16, torch.bits1x8, torch.bits2x4, torch.bits4x2]

# What the sixteen codes of float4_e2m1fn mean: OCP Microscaling Formats, section 5.3.3.
FLOAT4_VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
FLOAT4_VALUES = np.array(FLOAT4_VALUES + [-value for value in FLOAT4_VALUES], np.float32)


def _random_bytes(dtype: torch.dtype) -> torch.Tensor:
    if dtype.itemsize == 1:
        return torch.arange(256, dtype=torch.uint8)
    generator = torch.Generator().manual_seed(20240229)
    return torch.randint(0, 256, (256 * dtype.itemsize,), dtype=torch.uint8, generator=generator)


def small_integer_range(dtype: torch.dtype) -> tuple[int, int]:
    """Lowest and highest value of ``torch.int3`` and its like."""
    name = name_of(dtype)
    bits = int(name.removeprefix("u").removeprefix("int"))
    return (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def sample(dtype: torch.dtype) -> torch.Tensor:
    """A (2, 4, n) tensor with every bit pattern of a small dtype, or random ones of a large dtype."""
    if dtype in SMALL_INTEGERS:
        low, high = small_integer_range(dtype)
        values = torch.arange(256) % (high - low + 1) + low
        return values.to(torch.int8).view(torch.uint8).view(dtype).reshape(2, 4, -1)
    if dtype is torch.bool:
        return (torch.arange(256) % 3 == 0).reshape(2, 4, -1)
    return _random_bytes(dtype).view(dtype).reshape(2, 4, -1)


def raw_bytes(x: torch.Tensor) -> np.ndarray[Any, Any]:
    """The bytes of a contiguous tensor, as one row."""
    return x.reshape(-1).view(torch.uint8).numpy() if x.dtype is not torch.bool else x.reshape(-1).numpy().view("u1")


def array_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    """The dtype of the array that ``to_numpy`` must give, by the documented rules."""
    name = name_of(dtype)
    if name == "complex32":
        return np.dtype(np.complex64)
    if name == "float4_e2m1fn_x2":
        return np.dtype(ml_dtypes.float4_e2m1fn)
    if dtype in BITS:
        return np.dtype(f"u{dtype.itemsize}")
    if dtype in SMALL_INTEGERS and not hasattr(ml_dtypes, name):
        return np.dtype("u1" if name.startswith("u") else "i1")
    return np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)
