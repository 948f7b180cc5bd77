"""One way to look at the leaves of results and inputs, whether arrays or tensors. Nothing of the package's own converts
here: what is measured must not be its own judge.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorferry._nest import labelled_leaves

__all__ = ["arrays_in", "as_array", "byte_range", "count_values", "dtype_name", "is_array", "is_tensor"]

Array = np.ndarray[Any, Any]


def is_tensor(x: object) -> bool:
    """Is it a torch tensor? Does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_array(x: object) -> bool:
    """Is it an array, a NumPy scalar or a tensor, of NumPy, torch or CuPy?"""
    return isinstance(x, (np.ndarray, np.generic)) or is_tensor(x) or _is_cupy(x)


def _is_cupy(x: object) -> bool:
    return type(x).__module__.partition(".")[0] == "cupy" and hasattr(x, "get")


def dtype_name(x: Any) -> str:
    """Return the name of an array's or tensor's dtype; equal names mean equal dtypes."""
    return str(x.dtype).removeprefix("torch.") if is_tensor(x) else str(x.dtype.name)


def as_array(x: Any) -> Array:
    """Return an array over the values, in host memory. Shares memory where torch allows it.

    bfloat16 and float8 tensors become arrays of ml_dtypes; those of dtypes that NumPy has no word for become arrays of
    unsigned integers of the same width.
    """
    if _is_cupy(x):
        return np.asarray(x.get())
    if not is_tensor(x):
        return np.asarray(x)
    torch = sys.modules["torch"]
    tensor = x.detach().cpu().resolve_conj().resolve_neg()
    name = dtype_name(tensor)
    if _is_of_numpy(name):
        return np.asarray(tensor.numpy())
    # torch.Tensor.numpy() knows no such dtype: its bits are taken instead.
    bits = np.asarray(tensor.view(getattr(torch, f"int{8 * tensor.element_size()}")).numpy())
    import ml_dtypes

    return bits.view(getattr(ml_dtypes, name, f"u{tensor.element_size()}"))


def _is_of_numpy(name: str) -> bool:
    try:
        return np.dtype(name).isbuiltin == 1  # 2 for those that ml_dtypes registers
    except TypeError:
        return False


def arrays_in(x: object) -> Iterator[tuple[str, Any]]:
    """Yield every array and tensor of a nest with its place in it."""
    for place, leaf in labelled_leaves(x):
        if is_array(leaf):
            yield place, leaf


def byte_range(x: Any) -> range:
    """Return the addresses from the first byte of an array or a tensor to its last; nothing for other kinds."""
    if is_tensor(x):
        address, steps = int(x.data_ptr()), [step * x.element_size() for step in x.stride()]
    elif isinstance(x, np.ndarray):
        address, steps = int(x.ctypes.data), list(x.strides)
    else:
        return range(0)
    if 0 in x.shape:
        return range(0)
    ends = [(extent - 1) * step for extent, step in zip(x.shape, steps, strict=True)]
    return range(
        address + sum(end for end in ends if end < 0), address + sum(end for end in ends if end > 0) + x.itemsize
    )


def count_values(x: object) -> int:
    """Return how many values a nest has: the elements of arrays and tensors, and one for any other leaf."""
    return sum(int(np.prod(leaf.shape)) if is_array(leaf) else 1 for _, leaf in labelled_leaves(x))
