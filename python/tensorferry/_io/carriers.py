"""Dtypes that a library of others does not know, carried as unsigned integers of the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorferry._dtypes import NATIVE
from tensorferry._io.failures import refused
from tensorferry._io.readable import as_dtype

__all__ = ["carrier_of", "restored"]

_UNSIGNED = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}


def carrier_of(dtype: np.dtype[Any], *, kinds: str) -> tuple[np.dtype[Any], str | None] | None:
    """Return the dtype to write and a tag for the true one; None for what cannot be carried.

    Parameters
    ----------
    dtype : numpy.dtype
        Of the values.
    kinds : str
        NumPy's kinds, and codes, that the library knows.
    """
    if dtype.name in NATIVE and not NATIVE[dtype.name]["numpy_native"]:
        return np.dtype(_UNSIGNED[dtype.itemsize]), dtype.name
    if dtype.kind in kinds and dtype.char not in "gG":
        return dtype, None
    if dtype.kind in "mM":
        return np.dtype("i8"), dtype.str
    return None


def restored(path: str, tag: str) -> np.dtype[Any]:
    """Return the dtype that a tag stands for.

    Raises
    ------
    ExportError
        For a tag that we never write.
    """
    if tag in NATIVE and not NATIVE[tag]["numpy_native"] and NATIVE[tag]["array"] == tag:
        return as_dtype(tag)
    if tag[:2] in ("<m", "<M"):
        return np.dtype(tag)
    raise refused(path, f"its tag {tag!r} stands for no dtype", "check where it comes from")
