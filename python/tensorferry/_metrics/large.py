"""What MetricLog does with large tensors: only what is left of them is sent."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tensorferry._convert.to_python import to_python
from tensorferry._errors import DeviceError
from tensorferry._metrics.histogram import Histogram
from tensorferry._metrics.on_the_way import AwaitedTransfer, OnTheWay
from tensorferry._metrics.statistics import histogram
from tensorferry._transfer.transfer import Transfer

if TYPE_CHECKING:
    from tensorferry._metrics.leaving import Leaving

__all__ = ["array_part", "histogram_part"]


def histogram_part(name: str, tensor: Any, bins: int, leaving: Leaving) -> OnTheWay:
    """Count a histogram where the tensor is, and send it."""
    counts, edges = histogram(tensor, bins)
    if counts.device.type == "cpu":
        known = _histogram([*to_python(counts), *to_python(edges)], bins)
        return OnTheWay([name], None, lambda: [known])
    (part,) = leaving.leave_now({"counts": counts, "edges": edges})
    return OnTheWay([name], part.pending, lambda: [_histogram(part.read(), bins)])


def array_part(name: str, tensor: Any) -> OnTheWay:
    """Begin to copy a tensor to the host."""
    from tensorferry._convert.to_numpy_async import to_numpy_async

    transfer = to_numpy_async(tensor)
    if not isinstance(transfer, Transfer):
        raise DeviceError(
            "log_array() of a tensor inside a capture",
            "an array cannot be sent again by each replay",
            "call it outside, or capture to_numpy_async(x, out=...)",
        )
    pending = None if transfer.done() else AwaitedTransfer(transfer)
    return OnTheWay([name], pending, partial(_result, transfer))


def _result(transfer: Transfer[Any]) -> list[Any]:
    return [transfer.result()]


def _histogram(numbers: Sequence[Any], bins: int) -> Histogram:
    return Histogram(list(numbers[:bins]), list(numbers[bins + 2 :]), numbers[bins], numbers[bins + 1])
