"""Arrays of a dtype that only NumPy has, read as one that we know, given consent."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorferry._convert.take import refuse_array
from tensorferry._dtypes import CHOICES
from tensorferry._errors import DTypeError, PrecisionLossError
from tensorferry._native import core

__all__ = ["as_known_dtype"]


def as_known_dtype(x: np.ndarray[Any, Any], wanted: str, casting: str, what: str) -> core.Source:
    """Read an array whose dtype only NumPy has, given consent by a ``dtype=``.

    Raises
    ------
    DTypeError
        Without that consent, and for what `what` can never hold.
    PrecisionLossError
        Under "same_value", when extended precision does not survive.
    """
    if x.dtype.kind in "mM" and wanted == "int64":
        return core.Source.from_array(x.view(np.dtype("i8").newbyteorder(x.dtype.byteorder)))
    if x.dtype.kind in "fc" and wanted not in CHOICES and casting in ("same_value", "unsafe", "same_kind"):
        return _narrowed(x, wanted, casting, what)
    raise refuse_array(x, what)


def _narrowed(x: np.ndarray[Any, Any], wanted: str, casting: str, what: str) -> core.Source:
    """Round extended precision once: straight to what was asked for, or to double where that loses nothing."""
    kind = x.dtype.kind
    direct = wanted in (("complex64", "complex128") if kind == "c" else ("float16", "float32", "float64"))
    target = np.dtype(wanted if direct else "complex128" if kind == "c" else "float64")
    with np.errstate(all="ignore"):
        narrowed = x.astype(target)
    survived = (narrowed == x) | ((narrowed != narrowed) & (x != x))
    if casting == "same_value" and not np.all(survived):
        index = tuple(int(i) for i in np.argwhere(~survived)[0])
        error = PrecisionLossError(
            f'a {x.shape} {x.dtype} array, casting="same_value"',
            f"the value at index {index} is not a value of {target}",
            'choose a wider dtype, or pass casting="unsafe" to accept the change',
        )
        error.index = index
        raise error
    if not direct and not np.all(survived):
        raise DTypeError(
            f"a {x.shape} {x.dtype} array, dtype={wanted}",
            f"it would be rounded twice, through {target}, since {what} has no extended precision",
            f"round it yourself: x.astype({target})",
        )
    return core.Source.from_array(narrowed)
