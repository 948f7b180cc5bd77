"""Pairs of dtypes, how each library casts between them, and inputs whose values survive one rounding."""

from __future__ import annotations

import numpy as np

from tensorferry.bench import Inputs, Point
from tensorferry.bench.cases._drawn import drawn_tensor
from tensorferry.bench.cases._inputs import Array, as_array, as_tensor, named, numpy_dtype, random_tensor, torch_dtype
from tensorferry.bench.cases._layouts import laid_out

__all__ = [
    "COMMON_PAIRS",
    "EXACT_PAIRS",
    "PAIRS",
    "array_inputs",
    "drawn_inputs",
    "involves_half",
    "nbytes_of_cast",
    "numpy_packed",
    "numpy_to_torch",
    "out_inputs",
    "pair",
    "tensor_inputs",
    "torch_in_two_passes",
    "torch_packed",
    "torch_to_array",
]

PAIRS = (
    "float64 to float32",
    "float32 to float64",
    "float32 to float16",
    "float16 to float32",
    "float64 to float16",
    "float32 to bfloat16",
    "bfloat16 to float32",
    "float64 to bfloat16",
    "bfloat16 to float16",
    "float16 to bfloat16",
    "float32 to float8_e4m3fn",
    "float8_e4m3fn to float32",
    "float32 to float8_e5m2",
    "float8_e5m2 to float32",
    "bfloat16 to float8_e4m3fn",
    "float8_e4m3fn to bfloat16",
    "uint8 to float32",
    "float32 to uint8",
    "int16 to float32",
    "int32 to float32",
    "float32 to int32",
    "int64 to float32",
    "float32 to int64",
    "int64 to int32",
    "int32 to int64",
    "int32 to int8",
    "uint16 to int32",
    "bool to float32",
    "float32 to bool",
    "bool to int64",
    "complex128 to complex64",
    "complex64 to complex128",
    "float32 to complex64",
)
"""Those that a pipeline meets: loading, mixed precision, storing, labels, masks, spectra."""

COMMON_PAIRS = (
    "float64 to float32",
    "float32 to float64",
    "float32 to float16",
    "float16 to float32",
    "float32 to bfloat16",
    "bfloat16 to float32",
    "float32 to float8_e4m3fn",
    "float8_e5m2 to float32",
    "uint8 to float32",
    "float32 to uint8",
    "int64 to int32",
    "float32 to bool",
    "complex128 to complex64",
)
"""One of each kind, for directions that share their kernels with others."""

EXACT_PAIRS = (
    "float64 to float32",
    "float32 to float16",
    "float32 to int32",
    "int64 to int32",
    "int64 to float32",
    "float32 to uint8",
)
"""Narrowing pairs, for casts that check every value."""


def pair(dtype: str) -> tuple[str, str]:
    """Return source and target of ``"float64 to float32"``."""
    source, _, target = dtype.partition(" to ")
    return source, target


def involves_half(point: Point) -> bool:
    """Tell whether float16 is at one end of the cast."""
    return "float16" in pair(str(point["dtype"]))


def tensor_inputs(
    rng: np.random.Generator, nbytes: int, dtype: str, layout: str = "contiguous", whole: bool = False
) -> Inputs:
    """Return a tensor to be cast, an array over the same memory, and the target's names.

    Values lie between -100 and 100, and from 1 on where an unsigned integer is to come of them: what a cast gives
    beyond its range is each library's own affair. ``whole`` numbers survive every cast.
    """
    source, target = pair(dtype)
    t = laid_out(rng, nbytes, layout, source, low=_least(target))
    if t.is_floating_point() and (whole or target == "bool"):  # so that some are 0, which no random fraction is
        t.round_()
    return named(t=t, a=as_array(t), **_names_of(source, target))


def drawn_inputs(rng: np.random.Generator, shape: str, strides: str, dtype: str) -> Inputs:
    """Return the same for a tensor whose layout was drawn at random."""
    source, target = pair(dtype)
    t = drawn_tensor(lambda count: random_tensor(rng, (count,), source, low=_least(target)), shape, strides)
    return named(t=t, a=as_array(t), **_names_of(source, target))


def array_inputs(rng: np.random.Generator, nbytes: int, dtype: str) -> Inputs:
    """Return the same, but with an array in memory that NumPy allocated, and no tensor."""
    inputs = tensor_inputs(rng, nbytes, dtype)
    del inputs["t"]
    return inputs | {"a": inputs["a"].copy()}


def out_inputs(rng: np.random.Generator, nbytes: int, dtype: str) -> Inputs:
    """Return a tensor to be cast, and an array of the target's dtype, with a tensor over the same memory."""
    inputs = tensor_inputs(rng, nbytes, dtype)
    out = np.empty(inputs["a"].shape, inputs["to_numpy_dtype"])
    return inputs | {"out": out, "out_tensor": as_tensor(out)}


def _least(target: str) -> float:
    if target.startswith("uint"):
        return 1
    return -1 if target == "bool" else -100


def _names_of(source: str, target: str) -> Inputs:
    return {
        "target": target,
        "casting": "same_kind" if np.can_cast(numpy_dtype(source), numpy_dtype(target), "same_kind") else "unsafe",
        "to_numpy_dtype": numpy_dtype(target),
        "to_torch_dtype": torch_dtype(target),
    }


def torch_to_array(inputs: Inputs) -> Array:
    """Let torch cast the tensor, and give an array over the result."""
    return as_array(inputs["t"].to(inputs["to_torch_dtype"]))


def numpy_to_torch(inputs: Inputs) -> object:
    """Let NumPy, or ml_dtypes, cast the array, and give a tensor over the result."""
    return as_tensor(inputs["a"].astype(inputs["to_numpy_dtype"]))


def torch_packed(inputs: Inputs) -> Array:
    """Let torch cast and pack in one call, and give an array over the result."""
    import torch

    return as_array(inputs["t"].to(inputs["to_torch_dtype"], memory_format=torch.contiguous_format))


def torch_in_two_passes(inputs: Inputs) -> Array:
    """Let torch pack first and cast then, and give an array over the result."""
    return as_array(inputs["t"].contiguous().to(inputs["to_torch_dtype"]))


def numpy_packed(inputs: Inputs) -> Array:
    """Let NumPy, or ml_dtypes, cast and pack in one call."""
    packed: Array = inputs["a"].astype(inputs["to_numpy_dtype"], order="C")
    return packed


def nbytes_of_cast(inputs: Inputs) -> int:
    """Return what one pass reads and writes."""
    a, target = inputs["a"], inputs["to_numpy_dtype"]
    return int(a.size) * (int(a.itemsize) + int(target.itemsize))
