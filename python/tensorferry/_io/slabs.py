"""Arrays cut into parts that lie one after the other in a file."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

__all__ = ["Index", "slabs"]

Index = tuple[Any, ...]


def slabs(shape: tuple[int, ...], itemsize: int, limit_nbytes: int) -> Iterator[tuple[Index, tuple[int, ...]]]:
    """Cut an array into parts that lie one after the other in C order.

    Yields
    ------
    (tuple, tuple of int)
        Index of the part, and its shape: of at most `limit_nbytes`, or of one element where that is larger. Parts of
        the last axis begin at even positions.
    """
    if math.prod(shape) == 0:
        return
    inner = itemsize
    axis = len(shape)
    while axis > 0 and inner * shape[axis - 1] <= limit_nbytes:
        axis -= 1
        inner *= shape[axis]
    if axis == 0:
        yield (), shape
        return
    axis -= 1
    step = max(1, limit_nbytes // max(1, inner))
    step -= step % 2 if step > 1 else 0
    for outer in itertools.product(*(range(extent) for extent in shape[:axis])):
        for start in range(0, shape[axis], step):
            stop = min(start + step, shape[axis])
            yield (*outer, slice(start, stop)), (stop - start, *shape[axis + 1 :])
