"""Dtypes that a format has no word for: their bits are written as integers, with a tag that says what they are."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tensorferry._dtypes import NATIVE
from tensorferry._io.readable import as_dtype

__all__ = ["IN_PAIRS", "SAFETENSORS", "from_npy", "safetensors_word", "to_npy"]

# The words of the safetensors format, of the dtypes that arrays have.
SAFETENSORS: dict[str, str] = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "F16": "float16",
    "BF16": "bfloat16",
    "U32": "uint32",
    "I32": "int32",
    "F32": "float32",
    "U64": "uint64",
    "I64": "int64",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
    "F4": "float4_e2m1fn",
}
IN_PAIRS = "F4"  # two values in a byte; what cannot be paired is written as bits, a byte each
_WORDS = {name: word for word, name in SAFETENSORS.items() if word != IN_PAIRS}
_CARRIERS = {1: "U8", 2: "U16", 4: "U32", 8: "U64"}


@functools.cache
def to_npy(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return what stands in the header of a .npy file.

    A dtype that NumPy lacks becomes a record with one field of unsigned integers, named after it: any reader of .npy
    files gives ``array["bfloat16"]``, the bits.
    """
    if dtype.name in NATIVE and not NATIVE[dtype.name]["numpy_native"]:
        return np.dtype([(dtype.name, f"<u{dtype.itemsize}")])
    return dtype


def from_npy(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the values, given what stands in the header."""
    if dtype.names is not None and len(dtype.names) == 1 and dtype[0].kind == "u":
        name = dtype.names[0]
        if name in NATIVE and not NATIVE[name]["numpy_native"] and NATIVE[name]["array"] == name:
            known = as_dtype(name)
            if known.itemsize == dtype.itemsize:
                return known
    return dtype


@functools.cache
def safetensors_word(dtype: np.dtype[Any]) -> tuple[str, str | None] | None:
    """Return the word of the format, and a tag where that stands for the bits only; None for what only NumPy has."""
    if dtype.name in _WORDS:
        return _WORDS[dtype.name], None
    if dtype.name in NATIVE and dtype.itemsize in _CARRIERS and dtype.kind != "c":
        return _CARRIERS[dtype.itemsize], dtype.name
    return None
