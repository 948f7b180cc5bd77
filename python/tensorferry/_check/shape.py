"""Shape patterns such as ``("B", 3, "H", "W")``."""

from __future__ import annotations

import operator
from typing import Any

from tensorferry._errors import ArgumentError

__all__ = ["Names", "parse_shape", "shape_violations"]

Pattern = tuple[Any, ...]

# name -> (extent, where it was first seen)
Names = dict[str, tuple[int, str]]


def parse_shape(pattern: object) -> Pattern:
    """Return the pattern as a tuple of int, None, str and at most one Ellipsis."""
    if not isinstance(pattern, (tuple, list)):
        raise ArgumentError(
            f"shape={pattern!r}", "it is no sequence of extents", 'pass a tuple such as ("B", 3, None, ...)'
        )
    parsed = tuple(_extent(entry, pattern) for entry in pattern)
    if sum(entry is ... for entry in parsed) > 1:
        raise ArgumentError(
            f"shape={pattern!r}", "two ... can be matched in many ways", "use ... once, and None for one axis"
        )
    return parsed


def _extent(entry: Any, pattern: object) -> Any:
    if entry is None or entry is ... or (isinstance(entry, str) and entry.isidentifier()):
        return entry
    try:
        extent = operator.index(entry)
    except TypeError:
        extent = -1
    if isinstance(entry, bool) or extent < 0:
        raise ArgumentError(
            f"shape={pattern!r}",
            f"{entry!r} is no extent",
            'use an int, None for any extent, a name such as "B" for equal ones, or ... for any number of axes',
        )
    return extent


def shape_violations(shape: tuple[int, ...] | None, pattern: Pattern, names: Names, place: str) -> list[str]:
    """Say what is wrong with `shape`; names seen for the first time are added to `names`."""
    if shape is None:
        return [f"its shape is not made of plain numbers, wanted {_text(pattern)}"]
    rest = pattern.index(...) if ... in pattern else None
    fixed = len(pattern) - (rest is not None)
    if len(shape) < fixed or (rest is None and len(shape) != fixed):
        least = "at least " if rest is not None else ""
        return [f"shape is {shape} with {len(shape)} axes, wanted {_text(pattern)} with {least}{fixed}"]
    if rest is None:
        matched = list(enumerate(pattern))
    else:
        tail = pattern[rest + 1 :]
        first_of_tail = len(shape) - len(tail)
        matched = [*enumerate(pattern[:rest]), *((first_of_tail + i, entry) for i, entry in enumerate(tail))]
    found = []
    for axis, entry in matched:
        extent = shape[axis]
        if isinstance(entry, str):
            known, where = names.setdefault(entry, (extent, f"axis {axis}{place and f' of {place}'}"))
            if known != extent:
                found.append(f'shape is {shape}: axis {axis} is {extent}, but "{entry}" is {known} from {where}')
        elif entry is not None and entry != extent:
            found.append(f"shape is {shape}: axis {axis} is {extent}, wanted {entry}")
    return found


def _text(pattern: Pattern) -> str:
    entries = ", ".join("..." if entry is ... else repr(entry) for entry in pattern)
    return f"({entries},)" if len(pattern) == 1 else f"({entries})"
