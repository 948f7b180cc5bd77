"""Layouts by name: tensors of torch and arrays of NumPy whose strides people meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorferry.bench.cases._inputs import Array, as_array, random_tensor, torch_dtype

if TYPE_CHECKING:
    import torch

__all__ = ["ARRAY_LAYOUTS", "LAYOUTS", "laid_out", "laid_out_array"]

_Fill = Callable[..., Any]

LAYOUTS: dict[str, Callable[[_Fill, int, int], Any]] = {
    "contiguous": lambda fill, rows, columns: fill(rows, columns),
    "every other row": lambda fill, rows, columns: fill(2 * rows, columns)[::2],
    "every other column": lambda fill, rows, columns: fill(rows, 2 * columns)[:, ::2],
    "every other row of 7": lambda fill, rows, columns: fill(2 * (rows * columns // 7), 7)[::2],
    "pitched": lambda fill, rows, columns: fill(rows, columns + columns // 4)[:, :columns],
    "transposed": lambda fill, rows, columns: fill(columns, rows).T,
    "channels last": lambda fill, rows, columns: fill(rows, columns // 4, 4).permute(2, 0, 1),
    "patches of 16 by 16": lambda fill, rows, columns: fill(rows // 16, 16, columns // 16, 16).permute(0, 2, 1, 3),
    "two axes of 2 exchanged": lambda fill, rows, columns: fill(2, rows * columns // 4, 2).permute(2, 1, 0),
    "repeated row": lambda fill, rows, columns: fill(1, columns).expand(rows, columns),
    "repeated column": lambda fill, rows, columns: fill(rows, 1).expand(rows, columns),
}
"""Each makes a tensor of ``rows * columns`` elements, given a function that fills a contiguous one of any shape.

Rows of 7, as of boxes in space, leave out those that make no whole row.
"""

ARRAY_LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "rows reversed": lambda a: a[::-1],
    "columns reversed": lambda a: a[:, ::-1],
    "all reversed": lambda a: a[::-1, ::-1],
}
"""Negative strides, which only NumPy has; each view has the shape of what it is a view of."""


def laid_out(
    rng: np.random.Generator, nbytes: int, layout: str, dtype: str, low: float = -100, device: str = "cpu"
) -> torch.Tensor:
    """Return a tensor of values from ``low`` to 100 that shows ``nbytes`` of elements in the layout of that name.

    Extents are powers of two where ``nbytes`` is one: strides that are powers of two are the hardest on caches.
    """
    rows, columns = _extents(nbytes // torch_dtype(dtype).itemsize)
    fill = LAYOUTS[layout]
    made: torch.Tensor = fill(lambda *shape: random_tensor(rng, shape, dtype, low).to(device), rows, columns)
    return made


def laid_out_array(rng: np.random.Generator, nbytes: int, layout: str, dtype: str) -> Array:
    """Return a random array of ``nbytes`` bytes with negative strides, in memory that NumPy allocated."""
    rows, columns = _extents(nbytes // torch_dtype(dtype).itemsize)
    return ARRAY_LAYOUTS[layout](as_array(random_tensor(rng, (rows, columns), dtype)).copy())


def _extents(elements: int) -> tuple[int, int]:
    columns = 1 << (elements.bit_length() // 2)
    return elements // columns, columns
