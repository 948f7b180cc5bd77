"""Compares results with what they must be, and poisons what they are written to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensorferry._errors import ReadOnlyError
from tensorferry._nest import open_node, place
from tensorferry.bench._leaf import Array, arrays_in, as_array, dtype_name, is_array, is_tensor

__all__ = ["close", "poison", "same"]

_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_POISON = 0xA5


def same(result: object, expected: object) -> int:
    """Check that two nests are equal: containers, dtypes, shapes and values, NaN equal to NaN.

    A tensor equals an array of the same values, and a number of NumPy an array without dimensions. Values of bfloat16
    and float8 are compared bit by bit, NaN apart.

    Returns
    -------
    int
        How many values were compared.

    Raises
    ------
    AssertionError
        Says where they differ first and in how many values.
    """
    return _walk(result, expected, (), _equal)


def close(rtol: float = 0.0, atol: float = 0.0) -> Callable[[Any, Any], int]:
    """Return a check that lets numbers differ by at most ``atol + rtol * abs(expected)``; the rest as :func:`same`.

    >>> close(atol=0.5)(np.array([1.0, 2.0]), np.array([1.25, 2.0]))
    2
    """

    def near(result: Array, expected: Array) -> Array:
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        a, b = result.astype(wide), expected.astype(wide)
        with np.errstate(invalid="ignore"):
            inside = np.isfinite(b) & (np.abs(a - b) <= atol + rtol * np.abs(b))
        found: Array = inside | (a == b) | (np.isnan(a) & np.isnan(b))
        return found

    return lambda result, expected: _walk(result, expected, (), near)


def _walk(
    result: Any, expected: Any, trail: tuple[tuple[Any, int], ...], equal: Callable[[Array, Array], Array]
) -> int:
    opened = open_node(expected)
    if opened is None:
        return _leaf(result, expected, place(trail), equal)
    found = open_node(result)
    where = place(trail) or "the result"
    if found is None or _family(result) is not _family(expected):
        raise AssertionError(f"{where} is a {type(result).__name__}, not a {type(expected).__name__}")
    children, wanted = found[0], opened[0]
    if isinstance(expected, Mapping):
        if set(result) != set(expected):
            raise AssertionError(f"{where} has other keys: {sorted(map(str, set(result) ^ set(expected)))}")
        children = [result[key] for key in expected]
    if len(children) != len(wanted):
        raise AssertionError(f"{where} has {len(children)} children, not {len(wanted)}")
    return sum(
        _walk(a, b, (*trail, (expected, i)), equal) for i, (a, b) in enumerate(zip(children, wanted, strict=True))
    )


def _family(node: object) -> type:
    return next((base for base in (dict, list, tuple, Mapping) if isinstance(node, base)), type(node))


def _leaf(result: Any, expected: Any, where: str, equal: Callable[[Array, Array], Array]) -> int:
    if not is_array(expected):
        _same_object(result, expected, where or "the result")
        return 1
    label = where or "the result"
    if not is_array(result):
        raise AssertionError(f"{label} is a {type(result).__name__}, not an array or a tensor")
    if dtype_name(result) != dtype_name(expected):
        raise AssertionError(f"{label} has dtype {dtype_name(result)}, not {dtype_name(expected)}")
    if tuple(result.shape) != tuple(expected.shape):
        raise AssertionError(f"{label} has shape {tuple(result.shape)}, not {tuple(expected.shape)}")
    a, b = as_array(result), as_array(expected)
    agree = equal(a, b)
    if not agree.all():
        wrong = np.flatnonzero(~agree)
        index = tuple(int(i) for i in np.unravel_index(wrong[0], a.shape))
        found = f"{a[index]!s} instead of {b[index]!s} at {index}"
        raise AssertionError(f"{label}: {wrong.size:,} of {a.size:,} values differ, the first is {found}")
    return int(a.size)


def _same_object(result: Any, expected: Any, label: str) -> None:
    if type(result) is not type(expected):
        raise AssertionError(f"{label} is a {type(result).__name__}, not a {type(expected).__name__}")
    both_nan = isinstance(result, float) and math.isnan(result) and math.isnan(expected)
    if not both_nan and not bool(result == expected):
        raise AssertionError(f"{label} is {result!r}, not {expected!r}")


def _equal(a: Array, b: Array) -> Array:
    """Return where two arrays of one dtype and shape agree."""
    swapped = not (a.dtype.isnative and b.dtype.isnative)
    if np.issubdtype(a.dtype, np.inexact) or a.dtype.itemsize not in _BITS or swapped:
        agree = np.asarray(a == b)
    else:  # bits tell a poisoned bool from True
        agree = np.asarray(a.view(_BITS[a.dtype.itemsize]) == b.view(_BITS[b.dtype.itemsize]))
    if a.dtype.kind not in "biuMm" and a.dtype.names is None and not agree.all():
        agree = agree | np.asarray((a != a) & (b != b))
    return agree


def poison(destination: object) -> int:
    """Fill every array and tensor of a nest with what no candidate would write: NaN, or bytes of 0xA5.

    NaN goes into NumPy's own floating and complex dtypes; any other, also those of ml_dtypes, gets the bytes. Only
    the elements are written, not what lies between them.

    Returns
    -------
    int
        How many elements were filled.

    Raises
    ------
    ReadOnlyError
        When an array is read-only.
    """
    count = 0
    for where, leaf in arrays_in(destination):
        if not is_tensor(leaf) and not leaf.flags.writeable:
            raise ReadOnlyError(
                f"a read-only array as destination{where and ' at '}{where}",
                "destinations are poisoned before each check",
                "let setup make a writable one",
            )
        (_poison_tensor if is_tensor(leaf) else _poison_array)(leaf)
        count += math.prod(leaf.shape)
    return count


def _poison_array(array: Array) -> None:
    if np.issubdtype(array.dtype, np.inexact):
        array[...] = np.nan if array.dtype.kind == "f" else complex(np.nan, np.nan)
    elif array.dtype.itemsize in _BITS:
        array.view(_BITS[array.dtype.itemsize])[...] = int.from_bytes(bytes([_POISON]) * array.dtype.itemsize, "little")
    else:
        array[...] = np.frombuffer(bytes([_POISON]) * array.dtype.itemsize, array.dtype)[0]


def _poison_tensor(tensor: Any) -> None:
    import torch

    target = tensor.detach()
    if dtype_name(target) in ("float16", "float32", "float64", "complex64", "complex128"):
        target.fill_(math.nan if target.is_floating_point() else complex(math.nan, math.nan))
        return
    width = target.element_size()
    pattern = int.from_bytes(bytes([_POISON]) * width, "little", signed=True)
    target.view(getattr(torch, f"int{8 * width}")).fill_(pattern)
