"""Random tensors and arrays of any dtype, and the names that candidates use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tensorferry as ferry
from tensorferry.bench import Inputs

if TYPE_CHECKING:
    import torch

__all__ = ["as_array", "as_tensor", "bytes_moved", "footprint", "named", "numpy_dtype", "random_tensor", "torch_dtype"]

Array = np.ndarray[Any, Any]


def named(**inputs: Any) -> Inputs:
    """Return inputs, with the modules that expressions name: ``ferry``, ``np`` and ``torch``."""
    import torch

    return {"ferry": ferry, "np": np, "torch": torch, **inputs}


def torch_dtype(name: str) -> Any:
    """Return torch's dtype of that name."""
    import torch

    return getattr(torch, name)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return NumPy's dtype of that name, or that of ml_dtypes where NumPy has none."""
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name, None) or name)


def random_tensor(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str, low: float = -100, high: float = 100
) -> torch.Tensor:
    """Return a contiguous tensor of random values between ``low`` and ``high``, in memory that torch allocated.

    Every value is one of float32 or narrower: casting it to a narrow dtype rounds once, whether or not an
    implementation goes through float32. Unsigned integers begin at 0 where ``low`` is less.
    """
    import torch

    target = torch_dtype(dtype)
    if target.is_complex:
        parts = random_tensor(rng, (*shape, 2), "float32" if dtype == "complex64" else "float64", low, high)
        return torch.view_as_complex(parts)
    if dtype == "bool":
        return torch.from_numpy(rng.integers(0, 2, shape, dtype=np.uint8)).to(target)
    if not target.is_floating_point:
        least = max(low, 0) if dtype.startswith("uint") else low
        return torch.from_numpy(rng.integers(int(least), int(high) + 1, shape, dtype=numpy_dtype(dtype).type)).clone()
    values = torch.empty(shape)
    rng.random(dtype=np.float32, out=values.numpy())
    return values.mul_(high - low).add_(low).to(target)


def as_array(t: torch.Tensor) -> Array:
    """Return a view of the tensor as NumPy users get one, through the bits where NumPy has no such dtype."""
    import torch

    dtype = numpy_dtype(str(t.dtype).removeprefix("torch."))
    if _is_numpys_own(dtype):
        return t.numpy()
    return t.view(torch.uint8 if dtype.itemsize == 1 else torch.int16).numpy().view(dtype)


def as_tensor(a: Array) -> torch.Tensor:
    """Return a tensor over the array, through the bits where torch's bridge does not know its dtype."""
    import torch

    if _is_numpys_own(a.dtype):
        return torch.from_numpy(a)
    return torch.from_numpy(a.view(np.uint8 if a.itemsize == 1 else np.int16)).view(torch_dtype(a.dtype.name))


def _is_numpys_own(dtype: np.dtype[Any]) -> bool:
    return dtype.isbuiltin == 1  # 2 for those that another package has registered


def footprint(source: torch.Tensor) -> int:
    """Return how many bytes of memory the elements take; those that an axis repeats count once."""
    extents = [extent for extent, step in zip(source.shape, source.stride(), strict=True) if step]
    return int(np.prod(extents, dtype=np.int64)) * source.element_size()


def bytes_moved(source: torch.Tensor, itemsize: int | None = None) -> int:
    """Return bytes read plus written by one pass that gives each element ``itemsize`` bytes."""
    return footprint(source) + source.numel() * (itemsize or source.element_size())
