"""Sums and extremes of metrics over several steps, kept on their device until the window ends."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorferry._device.driven import drives_torch
from tensorferry._metrics.combining import Aggregations
from tensorferry._metrics.device_values import Gathered, gathered, send_gathered
from tensorferry._metrics.on_the_way import OnTheWay
from tensorferry._torch import outside_of_modes

if TYPE_CHECKING:
    import torch

__all__ = ["DeviceTotals"]


@dataclass
class _Total:
    names: list[str]
    values: torch.Tensor
    count: int
    stream: Any  # torch's, that the values are ordered in


class DeviceTotals:
    """Totals of one window. Not for two threads at once.

    Each stream has totals of its own, so that none has to wait for another: what came in several of them is made one
    on the host. Sums and means are kept in float64 (float32 on MPS, which has no other), of integers and booleans
    in int64.
    """

    def __init__(self, aggregations: Aggregations) -> None:
        self._aggregations = aggregations
        self._totals: dict[tuple[Any, ...], _Total] = {}

    def add(self, tensors: dict[str, torch.Tensor]) -> None:
        """Add the values that tensors have now, on their devices' current streams; never waits."""
        by_kind: dict[str, dict[str, torch.Tensor]] = {}
        for name, tensor in tensors.items():
            by_kind.setdefault(self._aggregations.of(name), {})[name] = tensor
        for kind, members in by_kind.items():
            for group in gathered(members):
                self._add(kind, group)

    def send(self) -> list[tuple[OnTheWay, int]]:
        """Send the totals, and begin anew."""
        totals, self._totals = self._totals, {}
        parts: list[tuple[OnTheWay, int]] = []
        together: dict[Any, list[_Total]] = {}
        for key, total in totals.items():
            together.setdefault((*key[:2], total.count), []).append(total)
        for (*_, count), members in together.items():
            group = [Gathered(total.names, total.values) for total in members]
            with _working_in(members[0].stream):
                parts.extend((part, count) for part in send_gathered(group))
        return parts

    def _add(self, kind: str, group: Gathered) -> None:
        torch = sys.modules["torch"]
        device = group.values.device
        stream = _current_stream(device)
        key = (device, None if stream is None else stream.cuda_stream, kind, group.values.dtype, tuple(group.names))
        known = self._totals.get(key)
        with outside_of_modes(), torch.no_grad():
            values = _as_total(torch, kind, group.values)
            if known is None:
                self._totals[key] = _Total(group.names, values, 1, stream)
                return
            if kind in ("sum", "mean"):
                known.values += values
            else:
                known.values = (torch.minimum if kind == "min" else torch.maximum)(known.values, values)
        known.count += 1


def _as_total(torch: Any, kind: str, values: Any) -> Any:
    if kind in ("min", "max"):
        few_kernels = values.element_size() == 1 and values.dtype.is_floating_point
        return values.to(torch.float32) if few_kernels else values
    if not values.dtype.is_floating_point:
        return values.to(torch.int64)
    return values.to(torch.float32 if values.device.type == "mps" else torch.float64)


def _current_stream(device: Any) -> Any:
    return sys.modules["torch"].cuda.current_stream(device) if drives_torch(device.type) else None


def _working_in(stream: Any) -> AbstractContextManager[Any]:
    if stream is None:
        return nullcontext()
    context: AbstractContextManager[Any] = sys.modules["torch"].cuda.stream(stream)
    return context
