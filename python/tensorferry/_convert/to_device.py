"""From host memory to a device: through pinned memory of ours where the driver copies, else by torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorferry import _torch
from tensorferry._convert import from_numpy as _from_numpy
from tensorferry._convert.options import FromNumpyOptions
from tensorferry._convert.take import is_array_like
from tensorferry._device.driven import drives_torch
from tensorferry._device.sending import fill, send_new
from tensorferry._errors import ArgumentError, AutogradError, BufferMismatchError, StreamError
from tensorferry._native import core
from tensorferry._nest import is_nest, map_leaves, visit_leaves
from tensorferry._torch import fallback
from tensorferry._torch import make as torch_make
from tensorferry._torch.autograd import part_in_autograd
from tensorferry._torch.fallback_refusals import require_fit

if TYPE_CHECKING:
    import torch

__all__ = ["placed", "to_device"]


def to_device(a: Any, device: Any, /, *, out: Any = None, dtype: Any = None, stream: Any = None) -> Any:
    """See :func:`tensorferry.to_device`."""
    _torch.require("to_device")
    place = _existing(device)
    if stream is not None and not drives_torch(place.type):
        raise StreamError(
            f"stream={stream!r} for device {place}", "only CUDA copies are ordered in a stream", "leave stream out"
        )
    if not is_nest(a):
        with _torch.outside_of_modes():
            return _Placement(a, place, dtype, out, in_nest=False).carry_out(stream)

    placements: list[_Placement | None] = []

    def check(node: Any, destination: Any = None) -> None:
        with _torch.outside_of_modes():
            is_array = is_array_like(node)
            placements.append(_Placement(node, place, dtype, destination, in_nest=True) if is_array else None)

    others = () if out is None else (out,)
    visit_leaves(check, a, *others)  # every leaf is checked before the first is copied
    following = iter(placements)

    def leaf(node: Any, _destination: Any = None) -> Any:
        placement = next(following)
        with _torch.outside_of_modes():
            return node if placement is None else placement.carry_out(stream)

    return map_leaves(leaf, a, *others)


def placed(prepared: _from_numpy.Prepared, options: FromNumpyOptions) -> Any:
    """Return what ``from_numpy`` decided on as a tensor on the device that it was asked for."""
    return _new(prepared, options.casting, _existing(options.device), None)


def _existing(device: Any) -> torch.device:
    import torch

    torch_make.require_device(device)
    place = torch.device(device)
    if place.type == "cuda" and place.index is None:
        place = torch.device("cuda", torch.cuda.current_device())
    return place


class _Placement:
    """One copy to a device, checked and not yet made."""

    def __init__(self, a: Any, place: torch.device, dtype: Any, out: Any, *, in_nest: bool) -> None:
        if _torch.is_tensor(a):
            _refuse_tensor(a, place)
        if out is not None:
            dtype = _agreed_dtype(out, dtype)
        self._options = FromNumpyOptions.parse(None, dtype, "same_kind", None, "share", False)
        self._prepared = _from_numpy.prepare(a, self._options, in_nest=in_nest)
        self._place, self._out = place, out
        source = self._prepared.taken.source
        assert source is not None
        if out is not None:
            require_fit(out, tuple(source.shape), torch_make.torch_dtype(self._prepared.result_dtype), place)

    def carry_out(self, stream: Any) -> Any:
        """Copy."""
        prepared, out = self._prepared, self._out
        if out is None:
            return _new(prepared, self._options.casting, self._place, stream)
        if not drives_torch(self._place.type):
            return fallback.from_host(_from_numpy.carry_out(prepared), self._place, out=out)
        return fill(out, _from_numpy.read(prepared), _decided(prepared, self._options.casting), stream)


def _new(prepared: _from_numpy.Prepared, casting: str, place: torch.device, stream: Any) -> Any:
    if not drives_torch(place.type):
        return fallback.from_host(_from_numpy.carry_out(prepared), place)
    return send_new(_from_numpy.read(prepared), _decided(prepared, casting), place, stream)


def _decided(prepared: _from_numpy.Prepared, casting: str) -> core.Decision:
    """Decide on the copy that casts and packs on its way into pinned memory."""
    assert prepared.taken.source is not None
    return core.decide(
        prepared.taken.source,
        target="torch",
        copy="always",
        dtype=prepared.result_dtype,
        casting=casting,
        readonly="share",
    )


def _refuse_tensor(a: torch.Tensor, place: torch.device) -> None:
    if a.device.type != "cpu":
        raise ArgumentError(
            f"to_device of a tensor on {a.device}",
            "it is on a device already, and copies between devices are torch's",
            f"use x.to({str(place)!r})",
        )
    found = part_in_autograd(a)
    if found:
        raise AutogradError(
            f"to_device of a tensor that {found}",
            "the copy would not be recorded for the backward pass",
            "pass x.detach(), or use torch's own x.to(device)",
        )


def _agreed_dtype(out: Any, dtype: Any) -> Any:
    """The destination's dtype wins, and must agree with ``dtype=``."""
    if not _torch.is_tensor(out):
        raise ArgumentError(
            f"out of type {type(out).__name__}", "a device's memory is a tensor", "pass a torch.Tensor of that device"
        )
    if dtype is not None and str(dtype).removeprefix("torch.") != str(out.dtype).removeprefix("torch."):
        raise BufferMismatchError(
            f"out of dtype {out.dtype} with dtype={dtype}",
            "the two disagree",
            "leave dtype out: the destination's dtype is used",
        )
    return out.dtype
