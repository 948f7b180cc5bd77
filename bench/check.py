"""Checks of values: one scan without temporaries. An accepted tensor is read once and comes back as it is."""

from __future__ import annotations

import numpy as np

from tensorferry.bench import Case, Inputs, at_least, best, naive, ours
from tensorferry.bench.cases._inputs import as_array, footprint, named
from tensorferry.bench.cases._layouts import laid_out
from tensorferry.bench.cases._points import KIB, MIB, sizes

__all__ = ["CASES"]


def _setup(rng: np.random.Generator, nbytes: int, dtype: str, layout: str = "contiguous") -> Inputs:
    t = laid_out(rng, nbytes, layout, dtype)
    return named(t=t, a=as_array(t), low=0 if dtype.startswith("uint") else -100, high=100)


def _finite_extremes(inputs: Inputs) -> bool:
    """NaN and infinity both show in the extremes: one pass, no temporary."""
    torch = inputs["torch"]
    return bool(torch.isfinite(torch.stack(torch.aminmax(inputs["t"]))).all())


def _finite_sum(inputs: Inputs) -> bool:
    """A finite sum proves that every value is finite; only another sum needs a second look."""
    torch, t = inputs["torch"], inputs["t"]
    return bool(torch.isfinite(t.sum())) or bool(torch.isfinite(t).all())


def _within_extremes(inputs: Inputs) -> bool:
    least, most = inputs["torch"].aminmax(inputs["t"])
    return bool(inputs["low"] <= least) and bool(most <= inputs["high"])


_ISFINITE = "bool(torch.isfinite(t).all())"

CASES = (
    Case(
        name="check.finite",
        title="Are all values finite?",
        setup=_setup,
        candidates=(
            ours("ferry.check(t, finite=True) is t"),
            naive(_ISFINITE),
            best("torch.isfinite(torch.stack(torch.aminmax(t))).all()", _finite_extremes),
            best("torch.isfinite(t.sum()) or torch.isfinite(t).all()", _finite_sum),
            best("bool(np.isfinite(a).all())"),
        ),
        expected=lambda inputs: bool(np.isfinite(inputs["a"].astype(np.float64)).all()),
        nbytes=lambda inputs: footprint(inputs["t"]),
        limit="read",
        goals=(at_least(3, _ISFINITE),),
        points=(
            *sizes([4 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB], dtype="float32"),
            *({"nbytes": 4 * MIB, "dtype": dtype} for dtype in ("float64", "float16")),
            {"nbytes": 4 * MIB, "dtype": "float32", "layout": "transposed"},
            {"nbytes": 4 * MIB, "dtype": "float32", "layout": "every other column"},
        ),
        quick=({"nbytes": 4 * MIB, "dtype": "float32"}, {"nbytes": MIB, "dtype": "float64"}),
    ),
    Case(
        name="check.range",
        title="Do all values lie between two bounds?",
        setup=_setup,
        candidates=(
            ours("ferry.check(t, range=(low, high)) is t"),
            naive("bool(((t >= low) & (t <= high)).all())"),
            best("least, most = torch.aminmax(t); low <= least and most <= high", _within_extremes),
            best("bool(low <= a.min() and a.max() <= high)"),
        ),
        expected=lambda inputs: all(inputs["low"] <= value <= 100 for value in (inputs["a"].min(), inputs["a"].max())),
        nbytes=lambda inputs: footprint(inputs["t"]),
        limit="read",
        points=tuple(
            {"nbytes": nbytes, "dtype": dtype}
            for nbytes in (256 * KIB, 4 * MIB)
            for dtype in ("float32", "float64", "int64", "uint8")
        ),
        quick=({"nbytes": MIB, "dtype": "float32"}, {"nbytes": MIB, "dtype": "int64"}),
    ),
)
