"""The one place where values leave a device: a call's tensors are gathered in stream order and sent in one piece.

Everything else knows only :func:`send`, :func:`gathered` and :func:`send_gathered`. A kernel of ours gathers all
tensors of a device by one launch. Without kernels torch does, by one ``stack`` for each dtype on the producer's stream;
those are copied on a stream of ours. Either way the values arrive in one slot of pinned memory.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tensorferry._convert.to_python import to_python
from tensorferry._device.capturing import refuse_in_capture
from tensorferry._device.driven import drives_torch
from tensorferry._device.streams import torch_stream
from tensorferry._device.torch_memory import introduce_torch, note_torch
from tensorferry._dtypes import TORCH
from tensorferry._errors import DTypeError
from tensorferry._metrics.names import element_names
from tensorferry._metrics.on_the_way import OnTheWay
from tensorferry._native import core
from tensorferry._torch import outside_of_modes
from tensorferry._transfer.background import background

if TYPE_CHECKING:
    import torch

__all__ = ["Gathered", "all_names", "check", "gathered", "send", "send_gathered"]


_INSTEAD = (
    "call it before the capture begins or after it has ended, or call log.prepare_capture(metrics) before the capture, "
    "which lets each replay log its values"
)


@dataclass(frozen=True)
class Gathered:
    """Values of one dtype, one behind the other in memory that nobody else knows.

    Attributes
    ----------
    names : list of str
        One for each value.
    values : torch.Tensor
        1-dimensional, on the device, ordered in the stream that was current.
    """

    names: list[str]
    values: torch.Tensor


def check(tensors: dict[str, torch.Tensor]) -> None:
    """Raise what :func:`send` and :func:`gathered` would raise; enqueues nothing."""
    _by_device(tensors)


def send(tensors: dict[str, torch.Tensor]) -> list[OnTheWay]:
    """Send the values that tensors have now, in stream order; returns at once where the driver copies.

    What is enqueued later, in place or not, never changes what arrives. No tensor is held when this returns, only the
    memory of tensors, and that until the device has read it.

    Raises
    ------
    DeviceError
        While the stream is being captured into a CUDA graph; nothing was enqueued.
    """
    return [part for members in _by_device(tensors).values() for part in _send(members)]


def _send(tensors: dict[str, torch.Tensor]) -> list[OnTheWay]:
    device = next(iter(tensors.values())).device
    if drives_torch(device.type):
        introduce_torch(device.index)
        note_torch()
        sent = core.gather_metrics(list(tensors.values()), device.index, torch_stream(device.index))
        if sent is not None:
            background.begin_transfer()
            return [OnTheWay(all_names(tensors), sent, sent.numbers)]
        return send_gathered(_gathered(tensors))
    try:
        return send_gathered(_gathered(tensors))
    except NotImplementedError:  # a backend of others without ``stack``: one by one
        numbers = [number for x in tensors.values() for number in to_python(x.reshape(-1))]
        return [OnTheWay(all_names(tensors), None, partial(list, numbers))]


def gathered(tensors: dict[str, torch.Tensor]) -> list[Gathered]:
    """Gather values by device and dtype, by torch on each device's current stream; never waits. Raises as ``send``."""
    return [group for members in _by_device(tensors).values() for group in _gathered(members)]


def _gathered(tensors: dict[str, torch.Tensor]) -> list[Gathered]:
    torch = sys.modules["torch"]
    groups: dict[Any, dict[str, Any]] = {}
    for name, tensor in tensors.items():
        groups.setdefault(tensor.dtype, {})[name] = tensor
    with outside_of_modes(), torch.no_grad():
        return [Gathered(all_names(members), _stacked(torch, list(members.values()))) for members in groups.values()]


def send_gathered(group: Sequence[Gathered]) -> list[OnTheWay]:
    """Send what was gathered on one device, in the order of its current stream."""
    device = group[0].values.device
    sent = None
    if drives_torch(device.type):
        introduce_torch(device.index)
        note_torch()
        stream = torch_stream(device.index)
        sent = core.send_metrics([(_block(one.values, stream), _reads_as(one.values.dtype)) for one in group])
    if sent is not None:
        background.begin_transfer()
        return [OnTheWay([name for one in group for name in one.names], sent, sent.numbers)]
    # No driver of ours, or no pinned memory: this waits.
    return [OnTheWay(one.names, None, partial(list, to_python(one.values))) for one in group]


def _block(values: torch.Tensor, stream: int) -> core.DeviceSource:
    from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

    block = values.view(sys.modules["torch"].uint8)
    return core.DeviceSource.from_capsule(to_dlpack(block), stream).as_snapshot()


def _stacked(torch: Any, tensors: list[Any]) -> Any:
    dtype = tensors[0].dtype
    if dtype.itemsize == 1 and dtype not in (torch.uint8, torch.int8, torch.bool):
        return _stacked(torch, [x.view(torch.uint8) for x in tensors]).view(dtype)  # few kernels know the small floats
    if all(x.dim() == 0 for x in tensors):
        return torch.stack(tensors)
    return torch.cat([x.reshape(-1) for x in tensors])


def _by_device(tensors: dict[str, torch.Tensor]) -> dict[Any, dict[str, torch.Tensor]]:
    """Sort them by device, once everything is checked."""
    found: dict[Any, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        try:
            _reads_as(tensor.dtype)
        except DTypeError as error:
            error.given = f"metric {name!r}: {error.given}"
            raise
        found.setdefault(tensor.device, {})[name] = tensor
    for device in found:
        if drives_torch(device.type):
            refuse_in_capture(f"MetricLog.log() of a tensor on {device}", device.index, None, _INSTEAD)
    return found


def _reads_as(dtype: Any) -> str:
    known = TORCH[str(dtype).removeprefix("torch.")]
    if known.reads_as is None or known.name == "float4_e2m1fn_x2":
        why = known.note if known.reads_as is None else "two values in a byte have no name each"
        raise DTypeError(f"a tensor of {dtype}", why, "log x.dequantize(), or its values as float32")
    return known.reads_as


def all_names(tensors: dict[str, Any]) -> list[str]:
    """Return a name for each element of tensors, in their order."""
    return [name for known, x in tensors.items() for name in element_names(known, tuple(x.shape))]
