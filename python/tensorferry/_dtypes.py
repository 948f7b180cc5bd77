"""What a ``dtype=`` argument means, and the table of torch's dtypes.

Native dtype names are those of ``_core.dtype_table()``, the one table that C++ uses; "keep", "numpy" and "bits" are the
three choices that are no dtype.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry._errors import DTypeError
from tensorferry._native import core

__all__ = ["CHOICES", "KINDS", "NATIVE", "TORCH", "TorchDType", "for_leaf", "resolve"]

NATIVE: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in core.dtype_table()}
CHOICES = ("keep", "numpy", "bits")

# The words a dtype mapping may use for many dtypes at once.
KINDS: dict[str, tuple[str, ...]] = {
    "floating": ("floating",),
    "complex": ("complex",),
    "integer": ("signed", "unsigned"),
    "bool": ("bool",),
}


@dataclass(frozen=True)
class TorchDType:
    """How tensors of one torch dtype are read.

    Attributes
    ----------
    name : str
        As in ``torch.<name>``.
    reads_as : str or None
        The native dtype that describes the memory; None when the dtype is refused.
    note : str
        What is special about it, or why it is refused.
    remedy : str
        What to write instead when it is refused.
    """

    name: str
    reads_as: str | None
    note: str = ""
    remedy: str = ""

    @property
    def array(self) -> str | None:
        """The dtype of the array that ``to_numpy`` returns."""
        return None if self.reads_as is None else str(NATIVE[self.reads_as]["array"])


_RAW = "torch gives these bits no meaning; the array holds the raw bytes"
_ODD_WIDTH = "one value a byte; the smallest native dtype that holds it"
_QUANTIZED = "quantised integers mean nothing without their scale and zero point"
_QUANTIZED_REMEDY = "take x.dequantize() for the values, or x.int_repr() for the integers"


def _torch_table() -> dict[str, TorchDType]:
    same = [
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float32",
        "float64",
        "bfloat16",
        "complex64",
        "complex128",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    ]
    table = [TorchDType(name, name) for name in same]
    table.append(TorchDType("complex32", "complex32", "NumPy has no complex32: widened exactly"))
    table.append(TorchDType("float4_e2m1fn_x2", "float4_e2m1fn_x2", "unpacked: the last axis doubles"))
    for bits in range(1, 8):
        for sign in ("", "u"):
            small = f"{sign}int{bits}"
            known = small in NATIVE
            table.append(
                TorchDType(small, small if known else f"{sign}int8", "one value a byte" if known else _ODD_WIDTH)
            )
    for name, reads_as in (
        ("bits8", "uint8"),
        ("bits16", "uint16"),
        ("bits1x8", "uint8"),
        ("bits2x4", "uint8"),
        ("bits4x2", "uint8"),
    ):
        table.append(TorchDType(name, reads_as, _RAW))
    for name in ("qint8", "qint32", "quint8", "quint4x2", "quint2x4"):
        table.append(TorchDType(name, None, _QUANTIZED, _QUANTIZED_REMEDY))
    return {entry.name: entry for entry in table}


TORCH: dict[str, TorchDType] = _torch_table()


def _is_torch_dtype(dtype: object) -> bool:
    return type(dtype).__module__ == "torch" and type(dtype).__name__ == "dtype"


def _refuse(dtype: object, why: str) -> DTypeError:
    return DTypeError(
        f"dtype={dtype!r}", why, 'pass a NumPy, ml_dtypes or torch dtype, its name, "numpy" (smallest native) or "bits"'
    )


def resolve(dtype: object) -> str:
    """Return the native name, or the choice, that a ``dtype=`` argument means.

    Raises
    ------
    DTypeError
        When nothing like it can be converted to.
    """
    if dtype is None:
        return "keep"
    if isinstance(dtype, str) and (dtype in CHOICES[1:] or dtype in NATIVE):
        return dtype
    if _is_torch_dtype(dtype):
        entry = TORCH.get(str(dtype).removeprefix("torch."))
        if entry is None or entry.reads_as is None:
            raise _refuse(dtype, entry.note if entry else "this torch dtype is not known here")
        return entry.reads_as
    try:
        converted = np.dtype(dtype)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise _refuse(dtype, "it is no dtype") from None
    if converted.name not in NATIVE:
        raise _refuse(dtype, f"arrays of {converted.name} have no counterpart among tensors")
    if not converted.isnative:
        raise _refuse(dtype, "results are always in this machine's byte order")
    return str(converted.name)


def _resolve_mapping(mapping: Mapping[object, object], source: str) -> str:
    kind = NATIVE[source]["kind"]
    by_kind = None
    for key, wanted in mapping.items():
        if isinstance(key, str) and key in KINDS and key != "bool":
            if kind in KINDS[key]:
                by_kind = wanted
        elif resolve(key) == source:
            return resolve(wanted)
    return resolve(by_kind)


def for_leaf(dtype: object, source: str, *, in_nest: bool) -> str:
    """Return what ``dtype=`` means for a tensor of native dtype `source`.

    In a nest a plain dtype applies to floating and complex leaves only; a mapping from dtypes, or from the words
    "floating", "complex", "integer" and "bool", to dtypes says more.
    """
    if isinstance(dtype, Mapping):
        return _resolve_mapping(dtype, source)
    wanted = resolve(dtype)
    if in_nest and wanted != "numpy" and NATIVE[source]["kind"] not in ("floating", "complex"):
        return "keep"
    return wanted
