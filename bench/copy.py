"""Private copies: of contiguous tensors of any size, of strided ones, and into memory that exists."""

from __future__ import annotations

import numpy as np

from tensorferry.bench import (
    BEST_PEER,
    Case,
    Inputs,
    Point,
    at_least,
    at_most,
    best,
    naive,
    ours,
    share_of_limit,
)
from tensorferry.bench.cases._inputs import bytes_moved, named
from tensorferry.bench.cases._layouts import ARRAY_LAYOUTS, LAYOUTS, laid_out, laid_out_array
from tensorferry.bench.cases._points import KIB, MIB, between, from_size, sizes

__all__ = ["CASES"]


def _tensor(rng: np.random.Generator, nbytes: int, layout: str = "contiguous", dtype: str = "float32") -> Inputs:
    return named(t=laid_out(rng, nbytes, layout, dtype))


def _tensor_and_out(rng: np.random.Generator, nbytes: int, layout: str, dtype: str = "float32") -> Inputs:
    import torch

    inputs = _tensor(rng, nbytes, layout, dtype)
    out = np.empty(tuple(inputs["t"].shape), inputs["t"].numpy().dtype)
    return inputs | {"out": out, "out_tensor": torch.from_numpy(out), "a": inputs["t"].numpy()}


def _reversed(rng: np.random.Generator, nbytes: int, layout: str, dtype: str = "float32") -> Inputs:
    return named(a=laid_out_array(rng, nbytes, layout, dtype))


def _flip_with_torch(inputs: Inputs) -> object:
    """Turn the array the right way round for torch, and let torch copy it the wrong way round."""
    a, torch = inputs["a"], inputs["torch"]
    axes = tuple(axis for axis, step in enumerate(a.strides) if step < 0)
    return torch.from_numpy(np.flip(a, axes)).flip(axes)


def _assign(inputs: Inputs) -> object:
    out = inputs["out"]
    out[...] = inputs["t"].cpu().numpy()
    return out


def _is_strided(point: Point) -> bool:
    return point["layout"] != "contiguous"


_COPY = (
    ours("ferry.to_numpy(t, copy=True)"),
    best("t.clone().numpy()"),
    best("t.numpy().copy()"),
    naive("np.array(t)"),
)
_PACK = (
    ours('ferry.to_numpy(t, copy=True, order="C")'),
    best("t.clone(memory_format=torch.contiguous_format).numpy()"),
    best("t.numpy().copy()"),
)
_GOALS_BY_LAYOUT = (at_most(1.0, BEST_PEER), at_least(1.5, BEST_PEER, _is_strided))


def _by_layout(*nbytes: int, layouts: tuple[str, ...] = tuple(LAYOUTS)) -> tuple[Point, ...]:
    return tuple(point for layout in layouts for point in sizes(nbytes, layout=layout))


CASES = (
    Case(
        name="copy.small",
        title="A private copy of a contiguous float32 tensor that fits into the cache",
        setup=_tensor,
        candidates=_COPY,
        expected=lambda inputs: np.array(inputs["t"].numpy()),
        nbytes=lambda inputs: bytes_moved(inputs["t"]),
        limit="memcpy",
        goals=(at_most(1.0, BEST_PEER),),
        points=between(4 * KIB, 256 * KIB),
        quick=sizes([4 * KIB, 256 * KIB]),
        plan="ferry.plan(t, copy=True)",
    ),
    Case(
        name="copy.private",
        title="A private copy of a contiguous float32 tensor",
        setup=_tensor,
        candidates=_COPY,
        expected=lambda inputs: np.array(inputs["t"].numpy()),
        nbytes=lambda inputs: bytes_moved(inputs["t"]),
        limit="non-temporal copy",
        goals=(
            at_least(3, "t.clone().numpy()", from_size(64 * MIB)),
            share_of_limit(0.8, from_size(64 * MIB)),
            at_most(1.0, BEST_PEER),
        ),
        points=between(MIB, 256 * MIB),
        quick=sizes([4 * MIB]),
        plan="ferry.plan(t, copy=True)",
    ),
    Case(
        name="copy.sweep",
        title="A private C-contiguous copy of a float32 tensor, by size and layout",
        setup=_tensor,
        candidates=_PACK,
        expected=lambda inputs: np.array(inputs["t"].numpy(), order="C"),
        nbytes=lambda inputs: bytes_moved(inputs["t"]),
        limit="memcpy",
        goals=_GOALS_BY_LAYOUT,
        points=(
            *_by_layout(KIB, 128 * KIB, MIB, 8 * MIB, 64 * MIB),
            *_by_layout(256 * MIB, layouts=("contiguous", "every other column")),
        ),
        quick=_by_layout(MIB) + _by_layout(16 * KIB, layouts=("contiguous", "transposed")),
        plan='ferry.plan(t, copy=True, order="C")',
    ),
    Case(
        name="copy.elements",
        title="A private C-contiguous copy of 2 MiB, by layout and element size",
        setup=_tensor,
        candidates=_PACK,
        expected=lambda inputs: np.array(inputs["t"].numpy(), order="C"),
        nbytes=lambda inputs: bytes_moved(inputs["t"]),
        limit="memcpy",
        goals=_GOALS_BY_LAYOUT,
        points=tuple(
            point
            for dtype in ("uint8", "float16", "float64", "complex128")
            for layout in LAYOUTS
            for point in sizes([2 * MIB], layout=layout, dtype=dtype)
        ),
        quick=sizes([MIB], layout="every other column", dtype="uint8")
        + sizes([MIB], layout="channels last", dtype="complex128"),
        plan='ferry.plan(t, copy=True, order="C")',
    ),
    Case(
        name="copy.out",
        title="A copy of a float32 tensor into an array that exists",
        setup=_tensor_and_out,
        candidates=(
            ours("ferry.to_numpy(t, out=out)"),
            best("out_tensor.copy_(t)"),
            best("(np.copyto(out, a), out)[1]"),
            naive("out[...] = t.cpu().numpy()", _assign),
        ),
        expected=lambda inputs: np.array(inputs["a"], order="C"),
        nbytes=lambda inputs: bytes_moved(inputs["t"]),
        limit="non-temporal copy",
        goals=_GOALS_BY_LAYOUT,
        points=_by_layout(128 * KIB, 16 * MIB),
        quick=_by_layout(MIB, layouts=("contiguous", "pitched", "repeated row")),
        destinations=("out", "out_tensor"),
        plan="ferry.plan(t, out=out)",
    ),
    Case(
        name="copy.reversed",
        title="A tensor of a float32 array with negative strides",
        setup=_reversed,
        candidates=(
            ours("ferry.from_numpy(a)"),
            best("torch.from_numpy(np.ascontiguousarray(a))"),
            best("torch.from_numpy(a[::-1]).flip(0)", _flip_with_torch),
            naive("torch.tensor(a.copy())"),
        ),
        expected=lambda inputs: np.array(inputs["a"], order="C"),
        nbytes=lambda inputs: 2 * int(inputs["a"].nbytes),
        limit="memcpy",
        goals=(at_most(1.0, BEST_PEER), at_least(1.5, BEST_PEER)),
        points=_by_layout(KIB, MIB, 16 * MIB, layouts=tuple(ARRAY_LAYOUTS)),
        quick=_by_layout(MIB, layouts=tuple(ARRAY_LAYOUTS)),
        plan='ferry.plan(a, to="torch")',
    ),
)
