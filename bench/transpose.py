"""Transposes and permutations: to memory that is C-contiguous in the new order of the axes."""

from __future__ import annotations

import numpy as np

from tensorferry.bench import (
    BEST_PEER,
    Case,
    Goal,
    Inputs,
    Point,
    at_least,
    at_most,
    best,
    ours,
    share_of_limit,
)
from tensorferry.bench.cases._inputs import bytes_moved, named, random_tensor, torch_dtype
from tensorferry.bench.cases._points import MIB, matrix

__all__ = ["CASES"]

_PERMUTATIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "NCHW to NHWC": ((8, 16, 64, 128), (0, 2, 3, 1)),
    "NHWC to NCHW": ((8, 64, 128, 16), (0, 3, 1, 2)),
    "8 channels last to first": ((8, 64, 256, 8), (0, 3, 1, 2)),
    "8 channels first to last": ((8, 8, 64, 256), (0, 2, 3, 1)),
    "heads first": ((8, 128, 16, 64), (0, 2, 1, 3)),
    "three axes reversed": ((64, 128, 128), (2, 1, 0)),
    "four axes reversed": ((16, 64, 16, 64), (3, 2, 1, 0)),
}
"""Shape of 2 ** 20 elements, and the order that its axes are taken in."""


def _matrix(rng: np.random.Generator, rows: int, columns: int, dtype: str, nbytes: int) -> Inputs:
    return named(x=random_tensor(rng, (rows, columns), dtype).T)


def _matrix_and_out(rng: np.random.Generator, rows: int, columns: int, dtype: str, nbytes: int) -> Inputs:
    import torch

    x = random_tensor(rng, (rows, columns), dtype).T
    out = np.empty((columns, rows), dtype)
    return named(x=x, a=x.numpy(), out=out, out_tensor=torch.from_numpy(out))


def _permuted(rng: np.random.Generator, layout: str, dtype: str, nbytes: int) -> Inputs:
    shape, axes = _PERMUTATIONS[layout]
    leading = nbytes // torch_dtype(dtype).itemsize * shape[0] // MIB
    return named(x=random_tensor(rng, (leading, *shape[1:]), dtype).permute(axes))


def _matrix_of(rows: int, columns: int, dtype: str = "float32") -> Point:
    return matrix(rows, columns, dtype, np.dtype(dtype).itemsize)


def _permutations(nbytes: int, *dtypes: str) -> tuple[Point, ...]:
    return tuple({"layout": layout, "dtype": dtype, "nbytes": nbytes} for layout in _PERMUTATIONS for dtype in dtypes)


def _is_tiled(point: Point) -> bool:
    """Tell whether the goals of the transpose hold: they leave 16-byte elements out."""
    return int(point["nbytes"]) >= MIB and point["dtype"] != "complex128"


def _goals(torch_label: str, numpy_label: str | None = None) -> tuple[Goal, ...]:
    return (
        at_least(4, torch_label, _is_tiled),
        *((at_least(8, numpy_label, _is_tiled),) if numpy_label else ()),
        share_of_limit(0.5, _is_tiled),
        at_least(1.5, BEST_PEER),
        at_most(1.0, BEST_PEER),
    )


_DTYPES = (
    _matrix_of(2048, 2048, "uint8"),
    _matrix_of(2048, 2048, "float16"),
    _matrix_of(1024, 1024, "float64"),
    _matrix_of(512, 1024, "complex128"),
)
_SIZES = (_matrix_of(128, 128), _matrix_of(512, 512), _matrix_of(511, 513), _matrix_of(2048, 2048))

CASES = (
    Case(
        name="transpose.matrix",
        title="A private C-contiguous copy of x, the transpose of a matrix",
        setup=_matrix,
        candidates=(
            ours('ferry.to_numpy(x, copy=True, order="C")'),
            best("x.contiguous().numpy()"),
            best("np.ascontiguousarray(x.numpy())"),
        ),
        expected=lambda inputs: np.array(inputs["x"].numpy(), order="C"),
        nbytes=lambda inputs: bytes_moved(inputs["x"]),
        limit="non-temporal copy",
        goals=_goals("x.contiguous().numpy()", "np.ascontiguousarray(x.numpy())"),
        points=(*_SIZES, _matrix_of(1 << 20, 3), *_DTYPES),
        quick=(_matrix_of(512, 512), _matrix_of(511, 513), _matrix_of(1024, 1024, "uint8")),
        plan='ferry.plan(x, copy=True, order="C")',
    ),
    Case(
        name="transpose.out",
        title="The transpose x of a matrix, into an array that exists",
        setup=_matrix_and_out,
        candidates=(
            ours("ferry.to_numpy(x, out=out)"),
            best("out_tensor.copy_(x)"),
            best("(np.copyto(out, a), out)[1]"),
        ),
        expected=lambda inputs: np.array(inputs["a"], order="C"),
        nbytes=lambda inputs: bytes_moved(inputs["x"]),
        limit="non-temporal copy",
        goals=_goals("out_tensor.copy_(x)", "(np.copyto(out, a), out)[1]"),
        points=(*_SIZES, _matrix_of(4096, 4096), _matrix_of(4099, 4093), *_DTYPES),
        quick=(_matrix_of(1024, 1024), _matrix_of(512, 512, "float64")),
        destinations=("out", "out_tensor"),
        plan="ferry.plan(x, out=out)",
    ),
    Case(
        name="transpose.large",
        title="The transpose x of a large matrix, into an array that exists; NumPy takes seconds and is left out",
        setup=_matrix_and_out,
        candidates=(ours("ferry.to_numpy(x, out=out)"), best("out_tensor.copy_(x)")),
        expected=lambda inputs: np.array(inputs["a"], order="C"),
        nbytes=lambda inputs: bytes_moved(inputs["x"]),
        limit="non-temporal copy",
        goals=_goals("out_tensor.copy_(x)"),
        points=(_matrix_of(8192, 8192),),
        quick=(_matrix_of(1024, 1024),),
        destinations=("out", "out_tensor"),
        plan="ferry.plan(x, out=out)",
    ),
    Case(
        name="transpose.permute",
        title="A private C-contiguous copy of x, a tensor with its axes in another order",
        setup=_permuted,
        candidates=(
            ours('ferry.to_numpy(x, copy=True, order="C")'),
            best("x.contiguous().numpy()"),
            best("np.ascontiguousarray(x.numpy())"),
        ),
        expected=lambda inputs: np.array(inputs["x"].numpy(), order="C"),
        nbytes=lambda inputs: bytes_moved(inputs["x"]),
        limit="non-temporal copy",
        goals=(at_most(1.0, BEST_PEER), at_least(1.5, BEST_PEER)),
        points=_permutations(2 * MIB, "uint8", "float16", "float32", "float64", "complex128")
        + _permutations(16 * MIB, "float32"),
        quick=_permutations(MIB, "float32"),
        plan='ferry.plan(x, copy=True, order="C")',
    ),
)
