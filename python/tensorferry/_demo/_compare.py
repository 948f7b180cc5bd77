"""Compares every value of a result with an independent one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorferry._demo._report import Check

__all__ = ["same_arrays", "same_values"]


def same_arrays(what: str, got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> Check:
    """Compare shape, dtype and every value, bit for bit up to NaN."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return Check(what, expected.size, expected.size)
    right = (got == expected) | ((got != got) & (expected != expected))
    return Check(what, expected.size, int(expected.size - np.count_nonzero(right)))


def same_values(what: str, got: Any, expected: Any) -> Check:
    """Compare two nests of Python values, types included."""
    flat_got, flat_expected = list(_flatten(got)), list(_flatten(expected))
    if len(flat_got) != len(flat_expected):
        return Check(what, len(flat_expected), len(flat_expected))
    wrong = sum(type(a) is not type(b) or a != b for a, b in zip(flat_got, flat_expected, strict=True))
    return Check(what, len(flat_expected), wrong)


def _flatten(node: Any) -> Any:
    if isinstance(node, dict):
        for key, value in node.items():
            yield key
            yield from _flatten(value)
    elif isinstance(node, list):
        for value in node:
            yield from _flatten(value)
    else:
        yield node
