"""Facts about shape, strides and memory, as keyword arguments of a Description."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorferry._dtypes import NATIVE
from tensorferry._inspect.description import Pitch
from tensorferry._native import core

__all__ = ["of_array", "of_source"]


def of_source(source: core.Source, address: int | None = None) -> dict[str, Any]:
    """Facts about a native source; `address` is where its first element lies, when the source does not know."""
    itemsize = int(NATIVE[source.dtype]["itemsize"])
    address = address if address is not None else source.address
    return _facts(source.shape, source.strides, itemsize, source.layout_facts(), address)


def of_array(x: np.ndarray[Any, Any], source: core.Source | None) -> dict[str, Any]:
    """Facts about an array; `source` is its native description, None for dtypes that only NumPy has."""
    if source is not None:
        return of_source(source)
    # The same memory as bytes: what the native layer says of the block of bytes holds for the elements. Axes of size
    # 1 play no part, and leaving them out keeps room for the axis of bytes.
    axes = [(extent, step) for extent, step in zip(x.shape, x.strides, strict=True) if extent != 1]
    shape, strides = [extent for extent, _ in axes], [step for _, step in axes]
    native = core.Source.described("uint8", [*shape, x.itemsize], [*strides, 1]).layout_facts()
    native |= {"c_contiguous": x.flags.c_contiguous, "f_contiguous": x.flags.f_contiguous}
    return _facts(x.shape, x.strides, x.itemsize, native, x.__array_interface__["data"][0])


def _facts(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, native: dict[str, Any], address: int
) -> dict[str, Any]:
    low, high = native["span"]
    whole = itemsize > 0 and all(step % itemsize == 0 for step in strides)
    return {
        "strides": tuple(strides),
        "strides_in_elements": tuple(step // itemsize for step in strides) if whole else None,
        "c_contiguous": bool(native["c_contiguous"]),
        "f_contiguous": bool(native["f_contiguous"]),
        "dense": bool(native["dense"]),
        "pitch": None if native["pitch"] is None else Pitch(*native["pitch"]),
        "overlapping": bool(native["may_overlap_itself"]),
        "nbytes": math.prod(shape) * itemsize,
        "span_nbytes": high - low,
        "addresses": (address + low, address + high) if high > low and address else None,
    }
