"""Statistics and histograms of large tensors, by torch on the tensors' own device; nothing here waits for it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tensorferry._errors import ArgumentError, DTypeError
from tensorferry._torch import is_tensor, outside_of_modes, require

if TYPE_CHECKING:
    import torch

__all__ = ["histogram", "statistics"]

# So many values are widened at a time: temporary memory of some tens of MiB, whatever the size of the tensor.
_PIECE = 1 << 20


def statistics(x: Any) -> dict[str, torch.Tensor]:
    """Return count, min, max, mean, std and norm of the finite values, and the counts of NaN and infinite ones.

    Each is a 0-dimensional tensor on the device of `x`. Min to norm are NaN where nothing is finite.
    """
    torch, x = _prepared(x)
    with outside_of_modes(), torch.no_grad():
        wide = _wide(torch, x.device)

        def constant(value: float, dtype: Any = wide) -> Any:
            return torch.full((), value, dtype=dtype, device=x.device)

        count, nan = constant(0, torch.int64), constant(0, torch.int64)
        total, squares, smallest, largest = constant(0), constant(0), constant(math.inf), constant(-math.inf)
        for piece in _pieces(x):
            values = piece.to(wide)
            finite = values.isfinite()
            count, nan = count + finite.sum(), nan + values.isnan().sum()
            known = values.where(finite, 0)
            total, squares = total + known.sum(), squares + (known * known).sum()
            smallest = torch.minimum(smallest, values.where(finite, math.inf).amin())
            largest = torch.maximum(largest, values.where(finite, -math.inf).amax())
        mean, spread = total / count, constant(0)
        for piece in _pieces(x):
            values = piece.to(wide)
            distance = (values - mean).where(values.isfinite(), 0)
            spread = spread + (distance * distance).sum()
        none = count == 0
        return {
            "count": count,
            "min": smallest.masked_fill(none, math.nan),
            "max": largest.masked_fill(none, math.nan),
            "mean": mean,
            "std": (spread / count).sqrt(),
            "norm": squares.sqrt().masked_fill(none, math.nan),
            "nan": nan,
            "infinite": x.numel() - count - nan,
        }


def histogram(x: Any, bins: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the counts of the bins, behind them those of NaN and of infinite values, and the edges, on its device."""
    if not isinstance(bins, int) or isinstance(bins, bool) or bins < 1:
        raise ArgumentError(f"bins={bins!r}", "that is no number of bins", "pass an int of at least 1")
    torch, x = _prepared(x)
    with outside_of_modes(), torch.no_grad():
        wide = _wide(torch, x.device)
        edges = _edges(torch, x, bins, wide)
        counts = torch.zeros(bins + 2, dtype=torch.int64, device=x.device)
        for piece in _pieces(x):
            values = piece.to(wide).contiguous()
            place = (torch.bucketize(values, edges, right=True) - 1).clamp(0, bins - 1)
            place = place.masked_fill(values.isnan(), bins).masked_fill(values.isinf(), bins + 1)
            counts.scatter_add_(0, place, torch.ones_like(place))
        return counts, edges


def _edges(torch: Any, x: Any, bins: int, wide: Any) -> Any:
    low = torch.full((), math.inf, dtype=wide, device=x.device)
    high = torch.full((), -math.inf, dtype=wide, device=x.device)
    for piece in _pieces(x):
        values = piece.to(wide)
        finite = values.isfinite()
        low = torch.minimum(low, values.where(finite, math.inf).amin())
        high = torch.maximum(high, values.where(finite, -math.inf).amax())
    none = low > high
    low, high = low.masked_fill(none, 0), high.masked_fill(none, 1)
    half = 0.5 * (low == high).to(wide)  # as numpy.histogram does: a range of no width gets one of 1
    low, high = low - half, high + half
    steps = torch.arange(bins + 1, dtype=wide, device=x.device) / bins
    edges = low + (high - low) * steps
    edges[-1] = high
    return edges


def _prepared(x: Any) -> tuple[Any, Any]:
    torch = require("statistics of a tensor")
    if not is_tensor(x):
        from tensorferry._native import core

        x = core.from_numpy(core.to_numpy(x))
    if x.is_complex():
        raise DTypeError(
            f"a tensor of {x.dtype}", "complex numbers have no order", "pass x.abs(), or torch.view_as_real(x)"
        )
    x = x.detach()
    return torch, x.dequantize() if x.is_quantized else x


def _wide(torch: Any, device: Any) -> Any:
    return torch.float32 if device.type == "mps" else torch.float64


def _pieces(x: Any) -> Iterator[Any]:
    """Yield parts of at most some length, 1-dimensional; no part is larger, whatever the layout."""
    if x.numel() == 0:
        return
    if x.numel() <= _PIECE:
        yield x.reshape(-1)
        return
    longest = max(range(x.dim()), key=lambda axis: x.shape[axis])
    length = max(1, x.shape[longest] * _PIECE // x.numel())
    for part in x.split(length, longest):
        yield from _pieces(part)
