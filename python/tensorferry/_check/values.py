"""The values that ``check`` looks at: finiteness and ranges, counted and located exactly."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry._convert.take import Taken
from tensorferry._dtypes import NATIVE
from tensorferry._errors import ArgumentError, DeviceError, DTypeError, FerryError
from tensorferry._native import core

__all__ = ["Range", "parse_range", "value_violations"]

Bound = int | float
Range = tuple[Bound | None, Bound | None]


@dataclass(frozen=True)
class _Finding:
    count: int
    size: int
    index: tuple[int, ...]
    value: object


def parse_range(given: object) -> Range:
    """Return the bounds as exact ints and floats."""
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ArgumentError(f"range={given!r}", "it is no pair of bounds", "pass (low, high), with None for no bound")
    low, high = (_bound(bound, given) for bound in given)
    if low is not None and high is not None and low > high:
        raise ArgumentError(f"range={given!r}", "its low end is above its high end", "pass (low, high)")
    return low, high


def _bound(bound: Any, given: object) -> Bound | None:
    if bound is None:
        return None
    try:
        return operator.index(bound)
    except TypeError:
        pass
    if isinstance(bound, (float, np.floating)) and not math.isnan(bound):
        return float(bound)
    raise ArgumentError(f"range={given!r}", f"{bound!r} is no bound", "pass numbers, or None for no bound")


def value_violations(
    read: Callable[[], Taken], is_readable: Callable[[], bool], finite: bool, limits: Range | None
) -> list[str]:
    """Say which values are not finite and which are outside of `limits`; `read` gives the values.

    What can never be read misses the requirement; a device that fails says nothing about the values.

    Raises
    ------
    DeviceError
        Where `is_readable` says that the values could be read, and their device failed.
    """
    try:
        taken = read()
    except FerryError as error:
        if isinstance(error, DeviceError) and is_readable():
            raise
        return [f"its values cannot be checked: {error}"]
    found = []
    if finite:
        found += _sentence(lambda: _nonfinite(taken), "not finite")
    if limits is not None:
        found += _sentence(lambda: _outside(taken, limits), f"outside of {_range_text(limits)}")
    return found


def _range_text(limits: Range) -> str:
    low, high = limits
    return f"{'(-inf' if low is None else f'[{low!r}'}, {'inf)' if high is None else f'{high!r}]'}"


def _sentence(find: Callable[[], _Finding], what: str) -> list[str]:
    try:
        finding = find()
    except FerryError as error:
        return [f"whether values are {what} cannot be checked: {error}"]
    if finding.count == 0:
        return []
    verb = "is" if finding.count == 1 else "are"
    first = f"the first, at index {finding.index}, is {finding.value!r}"
    return [f"{finding.count:,} of {finding.size:,} values {verb} {what}: {first}"]


def _nonfinite(taken: Taken) -> _Finding:
    if _is_for_numpy(taken):
        return _by_numpy(taken, lambda x: ~np.isfinite(x), "finite")
    assert taken.source is not None
    return _located(taken, *core.scan_nonfinite(taken.source))


def _outside(taken: Taken, limits: Range) -> _Finding:
    if _is_for_numpy(taken):
        return _by_numpy(taken, lambda x: ~_inside(x, limits), "in a range of numbers")
    assert taken.source is not None
    entry = NATIVE[taken.source.dtype]
    low, high = limits
    if entry["kind"] in ("bool", "signed", "unsigned"):
        low, high = _integer_limits(limits, entry)
        if not (_is_double(low) and _is_double(high)):  # NumPy compares integers as integers
            return _by_numpy(taken, lambda x: ~_inside(x, (low, high)), "in a range of numbers")
    low = -math.inf if low is None else _rounded(low, math.inf)
    high = math.inf if high is None else _rounded(high, -math.inf)
    return _located(taken, *core.scan_outside(taken.source, low, high))


def _integer_limits(limits: Range, entry: dict[str, Any]) -> Range:
    """Put the bounds at integers; one that every value of the dtype meets becomes None, or all are outside."""
    low, high = limits
    bits, signed = 1 if entry["kind"] == "bool" else int(entry["value_bits"]), entry["kind"] == "signed"
    smallest = -(1 << (bits - 1)) if signed else 0
    largest = (1 << (bits - signed)) - 1
    if low is not None and low <= smallest:
        low = None
    if high is not None and high >= largest:
        high = None
    if (low is not None and low > largest) or (high is not None and high < smallest):
        return math.inf, -math.inf
    return (None if low is None else math.ceil(low), None if high is None else math.floor(high))


def _is_double(bound: Bound | None) -> bool:
    return bound is None or bound == float(bound)


def _rounded(bound: Bound, toward: float) -> float:
    """Return the double next to `bound` on the side of `toward`: no double lies between the two."""
    if isinstance(bound, float):
        return bound
    try:
        near = float(bound)
    except OverflowError:
        near = math.inf if bound > 0 else -math.inf
    beyond = near > bound if toward < 0 else near < bound
    return math.nextafter(near, toward) if beyond else near


def _inside(x: np.ndarray[Any, Any], limits: Range) -> Any:
    low, high = limits
    inside = np.ones(x.shape, dtype=bool)
    if low is not None:
        inside = inside & (x >= low)
    return inside if high is None else inside & (x <= high)


def _is_for_numpy(taken: Taken) -> bool:
    """Does the native layer not know the dtype, or the mask?"""
    return taken.source is None or isinstance(taken.array, np.ma.MaskedArray)


def _by_numpy(taken: Taken, find: Callable[[np.ndarray[Any, Any]], Any], what: str) -> _Finding:
    x = taken.array if taken.array is not None and _is_for_numpy(taken) else _as_array(taken)
    try:
        found = np.ma.filled(find(x), False)  # values under a mask are no values
    except TypeError:
        why = f"NumPy cannot tell which of them are {what}"
        raise DTypeError(f"values of dtype {x.dtype}", why, "leave this requirement out") from None
    count = int(np.count_nonzero(found))
    size = x.count() if isinstance(x, np.ma.MaskedArray) else x.size
    return _finding(x, count, int(np.argmax(found)) if count else 0, size, _plain)


def _located(taken: Taken, count: int, flat: int) -> _Finding:
    if count == 0:
        return _Finding(0, 0, (), None)
    x = _as_array(taken)
    assert taken.source is not None
    read = {"floating": float, "complex": complex, "bool": bool}.get(NATIVE[taken.source.dtype]["kind"], int)
    return _finding(x, count, flat, x.size, read)


def _finding(x: np.ndarray[Any, Any], count: int, flat: int, size: int, read: Callable[[Any], object]) -> _Finding:
    if count == 0:
        return _Finding(0, size, (), None)
    index = tuple(int(i) for i in np.unravel_index(flat, x.shape))
    return _Finding(count, size, index, read(x[index]))


def _as_array(taken: Taken) -> np.ndarray[Any, Any]:
    assert taken.source is not None
    return core.execute(taken.source, core.decide(taken.source))


def _plain(value: Any) -> object:
    return str(value) if value.dtype.kind in "mM" else value.item()
