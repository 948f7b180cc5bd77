"""What ``dtype=`` asks for in ``check``, and what a tensor's dtype is held against it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorferry._dtypes import NATIVE, TORCH
from tensorferry._errors import ArgumentError

__all__ = ["CLASSES", "DType", "array_dtype", "dtype_text", "kind_of", "parse_dtype", "satisfies", "wanted_text"]

# The words for many dtypes at once; "bool" is the word and the one dtype it stands for.
CLASSES: dict[str, tuple[str, ...]] = {
    "floating": ("floating",),
    "integer": ("signed", "unsigned"),
    "signed": ("signed",),
    "unsigned": ("unsigned",),
    "complex": ("complex",),
    "bool": ("bool",),
}

# A name that torch, ml_dtypes and NumPy share, or a dtype that only NumPy has (dates, text, the other byte order).
DType = str | np.dtype[Any]

_UNORDERED = ("bits8", "bits16", "bits1x8", "bits2x4", "bits4x2")  # torch gives these bits no meaning
_NUMPY_KINDS = {"b": "bool", "i": "signed", "u": "unsigned", "f": "floating", "c": "complex"}


def parse_dtype(wanted: object) -> tuple[DType, ...]:
    """Return the alternatives that ``dtype=`` names: dtypes, or the words of `CLASSES`."""
    alternatives = wanted if isinstance(wanted, tuple) else (wanted,)
    if not alternatives:
        raise ArgumentError("dtype=()", "no dtype can satisfy it", "name at least one dtype")
    return tuple(_parse_one(one) for one in alternatives)


def _parse_one(wanted: Any) -> DType:
    if isinstance(wanted, str):
        name = wanted.removeprefix("torch.")
        if name in CLASSES or name in NATIVE or name in TORCH:
            return name
    if type(wanted).__module__ == "torch" and type(wanted).__name__ == "dtype":
        return str(wanted).removeprefix("torch.")
    try:
        if wanted is None:
            raise TypeError
        return _named(np.dtype(wanted))
    except TypeError:
        raise ArgumentError(
            f"dtype={wanted!r}",
            "it is no dtype",
            f"pass a NumPy, ml_dtypes or torch dtype, its name, one of {', '.join(CLASSES)}, or a tuple of these",
        ) from None


def _named(dtype: np.dtype[Any]) -> DType:
    return str(dtype.name) if dtype.isnative and dtype.name in NATIVE else dtype


def array_dtype(x: np.ndarray[Any, Any] | np.generic) -> DType:
    """Return the dtype of an array as `parse_dtype` would name it."""
    return _named(x.dtype)


def kind_of(dtype: DType) -> str | None:
    """Return "bool", "signed", "unsigned", "floating" or "complex", or None for what is none of these."""
    if isinstance(dtype, np.dtype):
        return _NUMPY_KINDS.get(dtype.kind)
    if dtype in _UNORDERED:
        return None
    native = dtype if dtype in NATIVE else TORCH[dtype].reads_as if dtype in TORCH else None
    return None if native is None else str(NATIVE[native]["kind"])


def satisfies(dtype: DType, wanted: tuple[DType, ...]) -> bool:
    """Is `dtype` one of the alternatives, or of one of their classes?"""
    kind = kind_of(dtype)
    return any(
        kind in CLASSES[one] if isinstance(one, str) and one in CLASSES else type(one) is type(dtype) and one == dtype
        for one in wanted
    )


def wanted_text(wanted: tuple[DType, ...]) -> str:
    """The alternatives as a person would list them."""
    return " or ".join(dtype_text(one) for one in wanted)


def dtype_text(dtype: DType) -> str:
    """The dtype's name, with its byte order where that is not this machine's."""
    if isinstance(dtype, np.dtype) and not dtype.isnative:
        return f"{dtype.name} in the other byte order ({dtype.str})"
    return str(dtype)
