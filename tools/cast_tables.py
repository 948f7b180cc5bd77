"""Which casts each casting rule allows, and what casts do with values that do not fit."""

from __future__ import annotations

import numpy as np
from markdown_text import code, table

import tensorferry as ferry
from tensorferry._dtypes import NATIVE
from tensorferry._native import core

__all__ = ["cast_values", "casting_matrix"]

_VALUES = ("nan", "inf", "-inf", "1e6", "300", "-1.5", "0.1")
_DESTINATIONS = (
    *("bool", "int8", "uint8", "int32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"),
    *("float8_e8m0fnu", "float6_e2m3fn", "float4_e2m1fn"),
)


def _symbol(source: str, target: str) -> str:
    if source == target:
        return "="
    if core.can_cast(source, target, "safe"):
        return "s"
    return "k" if core.can_cast(source, target, "same_kind") else "."


def casting_matrix() -> str:
    """Rows are what is cast from, columns what is cast to."""
    names = [name for name, entry in NATIVE.items() if entry["array"] == name]
    width = max(map(len, names))
    numbers = [f"{number:2}" for number in range(1, len(names) + 1)]
    lines = [" " * (width + 5) + " ".join(numbers)]
    for number, source in zip(numbers, names, strict=True):
        cells = " ".join(f" {_symbol(source, target)}" for target in names)
        lines.append(f"{number} {source:<{width}}  {cells}")
    return "\n".join(["```text", *lines, "```"])


def _cast(value: str, target: str) -> str:
    bits = np.array([float(value)], np.float32)
    result = ferry.to_numpy(ferry.to_numpy(bits, dtype=target, casting="unsafe"), dtype="numpy")
    return str(result[0])


def cast_values() -> str:
    """What float32 values become, row by row of the destination."""
    rows = [[code(target), *(_cast(value, target) for value in _VALUES)] for target in _DESTINATIONS]
    return table(["to", *(code(value) for value in _VALUES)], rows)
