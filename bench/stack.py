"""Many arrays into one tensor: one allocation and one pass, with a cast where one is asked for."""

from __future__ import annotations

import numpy as np

from tensorferry.bench import BEST_PEER, Case, Inputs, at_least, at_most, best, naive, ours
from tensorferry.bench.cases._inputs import as_array, named, numpy_dtype, random_tensor
from tensorferry.bench.cases._points import KIB

__all__ = ["CASES"]

COUNT = 256


def _arrays(rng: np.random.Generator, nbytes: int, dtype: str = "float32") -> Inputs:
    elements = nbytes // COUNT // numpy_dtype(dtype).itemsize
    return named(arrays=[as_array(random_tensor(rng, (elements,), dtype, low=0)).copy() for _ in range(COUNT)])


def _arrays_and_out(rng: np.random.Generator, nbytes: int) -> Inputs:
    inputs = _arrays(rng, nbytes)
    out = np.empty((COUNT, *inputs["arrays"][0].shape), np.float32)
    return inputs | {"out": out}


def _tensors(rng: np.random.Generator, nbytes: int) -> Inputs:
    elements = nbytes // COUNT // 4
    return named(tensors=[random_tensor(rng, (elements,), "float32") for _ in range(COUNT)])


def _bytes_moved(inputs: Inputs, itemsize: int | None = None) -> int:
    items = inputs.get("arrays") or inputs["tensors"]
    read = sum(int(item.nbytes) for item in items)
    return read + (read if itemsize is None else sum(int(np.prod(item.shape)) for item in items) * itemsize)


_POINTS = tuple({"nbytes": COUNT * nbytes} for nbytes in (KIB, 16 * KIB, 64 * KIB))
_QUICK = tuple({"nbytes": COUNT * nbytes} for nbytes in (KIB, 16 * KIB))

CASES = (
    Case(
        name="stack.arrays",
        title="256 float32 arrays into one tensor",
        setup=_arrays,
        candidates=(
            ours("ferry.stack(arrays)"),
            best("torch.from_numpy(np.stack(arrays))"),
            best("torch.stack([torch.from_numpy(a) for a in arrays])"),
            naive("torch.stack([torch.tensor(a) for a in arrays])"),
        ),
        expected=lambda inputs: np.stack(inputs["arrays"]),
        nbytes=_bytes_moved,
        limit="non-temporal copy",
        goals=(at_least(1.5, "torch.from_numpy(np.stack(arrays))"),),
        points=_POINTS,
        quick=_QUICK,
    ),
    Case(
        name="stack.cast",
        title="256 arrays into one float32 tensor",
        setup=_arrays,
        candidates=(
            ours('ferry.stack(arrays, dtype="float32")'),
            best('torch.from_numpy(np.stack(arrays, dtype="float32", casting="same_kind"))'),
            best("torch.from_numpy(np.stack(arrays)).float()"),
            naive("torch.stack([torch.from_numpy(a).float() for a in arrays])"),
        ),
        expected=lambda inputs: np.stack([a.astype(np.float32) for a in inputs["arrays"]]),
        nbytes=lambda inputs: _bytes_moved(inputs, itemsize=4),
        limit="non-temporal copy",
        goals=(at_least(1.5, BEST_PEER),),
        points=tuple(
            {"nbytes": COUNT * nbytes, "dtype": dtype}
            for dtype in ("uint8", "float64", "float16")
            for nbytes in (KIB, 16 * KIB)
        ),
        quick=({"nbytes": COUNT * 4 * KIB, "dtype": "uint8"}, {"nbytes": COUNT * 4 * KIB, "dtype": "float64"}),
    ),
    Case(
        name="stack.out",
        title="256 float32 arrays into an array that exists",
        setup=_arrays_and_out,
        candidates=(
            ours('ferry.stack(arrays, to="numpy", out=out)'),
            best("np.stack(arrays, out=out)"),
            best("torch.stack([torch.from_numpy(a) for a in arrays], out=torch.from_numpy(out))"),
        ),
        expected=lambda inputs: np.stack(inputs["arrays"]),
        nbytes=_bytes_moved,
        limit="non-temporal copy",
        goals=(at_most(1.0, BEST_PEER),),
        points=_POINTS,
        quick=_QUICK,
        destinations=("out",),
    ),
    Case(
        name="stack.tensors",
        title="256 float32 tensors into one",
        setup=_tensors,
        candidates=(
            ours("ferry.stack(tensors)"),
            best("torch.stack(tensors)"),
            naive("torch.from_numpy(np.stack([t.numpy() for t in tensors]))"),
        ),
        expected=lambda inputs: np.stack([t.numpy() for t in inputs["tensors"]]),
        nbytes=_bytes_moved,
        limit="non-temporal copy",
        goals=(at_most(1.0, BEST_PEER),),
        points=_POINTS,
        quick=_QUICK,
    ),
)
