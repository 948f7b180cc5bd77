"""Casts, fused with the copy: to arrays, to tensors, into memory that exists, packed, checked, and byte-swapped.

Values are such that torch, NumPy and we agree on every bit: casts that round once, of numbers within range.
"""

from __future__ import annotations

import numpy as np

from tensorferry.bench import BEST_PEER, Candidate, Case, Inputs, Point, at_least, at_most, best, naive, ours
from tensorferry.bench.cases import _casts
from tensorferry.bench.cases._inputs import Array, as_tensor, named
from tensorferry.bench.cases._points import KIB, MIB

__all__ = ["CASES"]

_ASTYPE = "a.astype(dtype)"
_GOALS = (at_least(1.5, BEST_PEER), at_most(1.0, BEST_PEER))
_GOALS_AND_HALF = (*_GOALS, at_least(4, _ASTYPE, _casts.involves_half))
_MAIN_PAIRS = ("float64 to float32", "float16 to float32", "float32 to bfloat16", "bfloat16 to float32")


def _numpy_cast(inputs: Inputs) -> object:
    return inputs["a"].astype(inputs["to_numpy_dtype"])


def _torch_from_array(inputs: Inputs) -> object:
    return as_tensor(inputs["a"]).to(inputs["to_torch_dtype"])


def _cast_into(inputs: Inputs) -> object:
    np.copyto(inputs["out"], inputs["a"], casting="unsafe")
    return inputs["out"]


def _checked_by_torch(inputs: Inputs) -> object:
    t = inputs["t"]
    narrow = t.to(inputs["to_torch_dtype"])
    if not inputs["torch"].equal(narrow.to(t.dtype), t):
        raise ValueError("a value changed")
    return narrow


def _checked_by_numpy(inputs: Inputs) -> object:
    a = inputs["a"]
    narrow = a.astype(inputs["to_numpy_dtype"])
    if not np.array_equal(narrow.astype(a.dtype), a):
        raise ValueError("a value changed")
    return narrow


def _whole_numbers(rng: np.random.Generator, nbytes: int, dtype: str) -> Inputs:
    return _casts.tensor_inputs(rng, nbytes, dtype, whole=True)


def _swapped(rng: np.random.Generator, nbytes: int, dtype: str) -> Inputs:
    native = _casts.array_inputs(rng, nbytes, f"{dtype} to {dtype}")["a"]
    swapped: Array = native.astype(native.dtype.newbyteorder())
    return named(a=swapped)


def _points(pairs: tuple[str, ...], *nbytes: int) -> tuple[Point, ...]:
    return tuple({"dtype": dtype, "nbytes": size} for dtype in pairs for size in nbytes)


def _expected(inputs: Inputs) -> object:
    return inputs["t"].to(inputs["to_torch_dtype"])


_TO_ARRAY: tuple[Candidate, ...] = (
    ours("ferry.to_numpy(t, dtype=target, casting=casting)"),
    best("t.to(dtype).numpy()", _casts.torch_to_array),
    best(_ASTYPE, _numpy_cast),
)
_NUMPY_KNOWS_SAME_VALUE = np.lib.NumpyVersion(np.__version__) >= "2.4.0"
_CHECKED_BY_ASTYPE: tuple[Candidate, ...] = (
    (best('a.astype(target, casting="same_value")'),) if _NUMPY_KNOWS_SAME_VALUE else ()
)

CASES = (
    Case(
        name="cast.to_numpy",
        title="A contiguous tensor to an array of another dtype",
        setup=_casts.tensor_inputs,
        candidates=_TO_ARRAY,
        expected=_expected,
        nbytes=_casts.nbytes_of_cast,
        limit="non-temporal copy",
        goals=_GOALS_AND_HALF,
        points=_points(_casts.PAIRS, 2 * MIB) + _points(_MAIN_PAIRS, 64 * KIB, 16 * MIB),
        quick=_points((*_MAIN_PAIRS, "float32 to float8_e4m3fn", "uint8 to float32", "int64 to int32"), MIB),
        plan="ferry.plan(t, dtype=target, casting=casting)",
    ),
    Case(
        name="cast.from_numpy",
        title="A contiguous array to a tensor of another dtype",
        setup=_casts.array_inputs,
        candidates=(
            ours("ferry.from_numpy(a, dtype=target, casting=casting)"),
            best("torch.from_numpy(a).to(dtype)", _torch_from_array),
            best("torch.from_numpy(a.astype(dtype))", _casts.numpy_to_torch),
        ),
        expected=lambda inputs: inputs["a"].astype(inputs["to_numpy_dtype"]),
        nbytes=_casts.nbytes_of_cast,
        limit="non-temporal copy",
        goals=(*_GOALS, at_least(4, "torch.from_numpy(a.astype(dtype))", _casts.involves_half)),
        points=_points(_casts.COMMON_PAIRS, 2 * MIB) + _points(_MAIN_PAIRS, 16 * MIB),
        quick=_points((*_MAIN_PAIRS, "float64 to float16", "float32 to bool", "complex128 to complex64"), MIB),
        plan='ferry.plan(a, to="torch", dtype=target, casting=casting)',
    ),
    Case(
        name="cast.out",
        title="A contiguous tensor into an array of another dtype that exists",
        setup=_casts.out_inputs,
        candidates=(
            ours('ferry.to_numpy(t, out=out, casting="unsafe")'),
            best("out_tensor.copy_(t)"),
            best("np.copyto(out, a)", _cast_into),
        ),
        expected=_expected,
        nbytes=_casts.nbytes_of_cast,
        limit="non-temporal copy",
        goals=(*_GOALS, at_least(4, "np.copyto(out, a)", _casts.involves_half)),
        points=_points(_casts.COMMON_PAIRS, 2 * MIB) + _points(_MAIN_PAIRS, 64 * MIB),
        quick=_points(_MAIN_PAIRS, MIB),
        destinations=("out", "out_tensor"),
        plan='ferry.plan(t, out=out, casting="unsafe")',
    ),
    Case(
        name="cast.packed",
        title="A strided tensor to a C-contiguous array of another dtype",
        setup=_casts.tensor_inputs,
        candidates=(
            ours('ferry.to_numpy(t, dtype=target, casting=casting, order="C")'),
            best("t.to(dtype, memory_format=torch.contiguous_format).numpy()", _casts.torch_packed),
            best('a.astype(dtype, order="C")', _casts.numpy_packed),
            naive("t.contiguous().to(dtype).numpy()", _casts.torch_in_two_passes),
        ),
        expected=_expected,
        nbytes=_casts.nbytes_of_cast,
        limit="memcpy",
        goals=(*_GOALS, at_least(4, 'a.astype(dtype, order="C")', _casts.involves_half)),
        points=tuple(
            {"layout": layout, "dtype": dtype, "nbytes": 2 * MIB}
            for layout in (
                "every other column",
                "every other row of 7",
                "pitched",
                "transposed",
                "channels last",
                "two axes of 2 exchanged",
            )
            for dtype in (*_MAIN_PAIRS, "uint8 to float32")
        ),
        quick=tuple(
            {"layout": layout, "dtype": dtype, "nbytes": MIB}
            for layout in ("transposed", "pitched")
            for dtype in ("float64 to float32", "uint8 to float32")
        ),
        plan='ferry.plan(t, dtype=target, casting=casting, order="C")',
    ),
    Case(
        name="cast.same_value",
        title="A contiguous tensor to an array of a narrower dtype, every value checked to survive",
        setup=_whole_numbers,
        candidates=(
            ours('ferry.to_numpy(t, dtype=target, casting="same_value")'),
            best("narrow = t.to(dtype); torch.equal(narrow.to(t.dtype), t)", _checked_by_torch),
            best("narrow = a.astype(dtype); np.array_equal(narrow.astype(a.dtype), a)", _checked_by_numpy),
            *_CHECKED_BY_ASTYPE,
        ),
        expected=_expected,
        nbytes=_casts.nbytes_of_cast,
        limit="non-temporal copy",
        goals=_GOALS,
        points=_points(_casts.EXACT_PAIRS, 2 * MIB) + _points(("float64 to float32",), 16 * MIB),
        quick=_points(("float64 to float32", "int64 to int32"), MIB),
        plan='ferry.plan(t, dtype=target, casting="same_value")',
    ),
    Case(
        name="cast.byte_swapped",
        title="A tensor of an array in the other byte order",
        setup=_swapped,
        candidates=(
            ours("ferry.from_numpy(a)"),
            best('torch.from_numpy(a.astype(a.dtype.newbyteorder("=")))'),
            best('torch.from_numpy(a.byteswap().view(a.dtype.newbyteorder("=")))'),
        ),
        expected=lambda inputs: inputs["a"].astype(inputs["a"].dtype.newbyteorder("=")),
        nbytes=lambda inputs: 2 * int(inputs["a"].nbytes),
        limit="non-temporal copy",
        goals=(at_most(1.0, BEST_PEER),),
        points=_points(("int16", "float32", "float64"), 2 * MIB) + _points(("float32",), 16 * MIB),
        quick=_points(("float32",), MIB),
        plan='ferry.plan(a, to="torch")',
    ),
)
