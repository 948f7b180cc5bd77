"""Sizes, settings and where goals hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tensorferry.bench import Point

__all__ = ["KIB", "MIB", "between", "from_size", "matrix", "sizes"]

KIB = 1 << 10
MIB = 1 << 20


def from_size(nbytes: int) -> Callable[[Point], bool]:
    """Return the condition of having a source of at least so many bytes."""
    return lambda point: int(point["nbytes"]) >= nbytes


def between(low: int, high: int, **fixed: str) -> tuple[Point, ...]:
    """Return settings of 4x steps in size, from ``low`` to ``high`` bytes inclusive."""
    steps = []
    while low <= high:
        steps.append(low)
        low *= 4
    return sizes(steps, **fixed)


def sizes(nbytes: Iterable[int], **fixed: str) -> tuple[Point, ...]:
    """Return one setting a size."""
    return tuple({"nbytes": size, **fixed} for size in nbytes)


def matrix(rows: int, columns: int, dtype: str, itemsize: int) -> Point:
    """Return the setting of a matrix, with the bytes that it has."""
    return {"nbytes": rows * columns * itemsize, "rows": rows, "columns": columns, "dtype": dtype}
