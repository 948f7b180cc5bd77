"""Copies and casts of tensors whose layouts were drawn at random: what the other cases did not think of."""

from __future__ import annotations

import numpy as np

from tensorferry.bench import BEST_PEER, Case, Inputs, at_most, best, ours
from tensorferry.bench.cases import _casts
from tensorferry.bench.cases._drawn import drawn_layouts, drawn_tensor
from tensorferry.bench.cases._inputs import bytes_moved, named, random_tensor

__all__ = ["CASES"]

_DTYPES = ("float32", "uint8", "int64", "float16", "bool", "float64", "int16", "complex64")
_PAIRS = (
    "float32 to float16",
    "uint8 to float32",
    "float16 to float32",
    "float64 to float32",
    "int64 to int32",
    "float32 to uint8",
)
_COPIES = drawn_layouts(_DTYPES, 48)
_CASTS = drawn_layouts(_PAIRS, 36)


def _tensor(rng: np.random.Generator, shape: str, strides: str, dtype: str) -> Inputs:
    return named(t=drawn_tensor(lambda count: random_tensor(rng, (count,), dtype), shape, strides))


CASES = (
    Case(
        name="layout.copy",
        title="A private C-contiguous copy of a tensor whose layout was drawn at random",
        setup=_tensor,
        candidates=(
            ours('ferry.to_numpy(t, copy=True, order="C")'),
            best("t.clone(memory_format=torch.contiguous_format).numpy()"),
            best("np.ascontiguousarray(t.numpy())"),
        ),
        expected=lambda inputs: np.array(inputs["t"].numpy(), order="C"),
        nbytes=lambda inputs: bytes_moved(inputs["t"]),
        limit="memcpy",
        goals=(at_most(1.0, BEST_PEER),),
        points=_COPIES,
        quick=_COPIES[:2],
        plan='ferry.plan(t, copy=True, order="C")',
    ),
    Case(
        name="layout.cast",
        title="A tensor whose layout was drawn at random to a C-contiguous array of another dtype",
        setup=_casts.drawn_inputs,
        candidates=(
            ours('ferry.to_numpy(t, dtype=target, casting=casting, order="C")'),
            best("t.to(dtype, memory_format=torch.contiguous_format).numpy()", _casts.torch_packed),
            best('a.astype(dtype, order="C")', _casts.numpy_packed),
        ),
        expected=lambda inputs: inputs["a"].astype(inputs["to_numpy_dtype"], order="C"),
        nbytes=_casts.nbytes_of_cast,
        limit="memcpy",
        goals=(at_most(1.0, BEST_PEER),),
        points=_CASTS,
        quick=_CASTS[:2],
        plan='ferry.plan(t, dtype=target, casting=casting, order="C")',
    ),
)
