"""What is refused on the way to another device: by us beforehand, or by its backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorferry._dtypes import NATIVE, TORCH
from tensorferry._errors import AutogradError, BufferMismatchError, DeviceError, DTypeError, FerryError
from tensorferry._native import core

if TYPE_CHECKING:
    import torch

__all__ = ["refused_by_backend", "require_fit", "shown", "words_of"]

# What to try on a device that lacks a dtype: the nearest that a cast of the same kind leads to.
_INSTEAD = {
    "floating": ("float32", "float16"),
    "complex": ("complex64",),
    "signed": ("int64", "int32"),
    "unsigned": ("int64", "int32", "uint8"),
    "bool": ("uint8",),
}


def shown(x: torch.Tensor) -> str:
    """Return how a message names a tensor."""
    return f"a {tuple(x.shape)} {x.dtype} tensor"


def words_of(error: Exception) -> str:
    """Return what a backend said, without torch's lists of backends and back-traces."""
    line = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {line.partition('. This could be because')[0]}"


def require_fit(out: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
    """Raise unless `out`, on `device`, can be filled with values of this shape and dtype; copies nothing.

    Raises
    ------
    BufferMismatchError
        For another device, shape or dtype, for elements that overlap, and for marked views.
    AutogradError
        For a tensor that requires grad.
    """
    given = f"out, {shown(out)} on device {out.device}"
    if out.device.type != device.type or device.index not in (None, out.device.index):
        raise BufferMismatchError(given, f"the result is wanted on {device}", f"pass a tensor on {device}")
    if tuple(out.shape) != shape or out.dtype != dtype:
        wanted = f"shape {shape} and dtype {dtype}"
        raise BufferMismatchError(given, f"the result has {wanted}", f"pass a tensor of {wanted}")
    layout = core.Source.described("uint8", list(out.shape), list(out.stride()))
    if layout.layout_facts()["may_overlap_itself"]:
        raise BufferMismatchError(
            given, "its elements overlap each other", "pass a tensor without expanded or overlapping strides"
        )
    if out.is_conj() or out.is_neg():
        raise BufferMismatchError(
            given, "it is a conjugated or negated view", "pass the tensor that it is a view of, or new memory"
        )
    if out.requires_grad:
        raise AutogradError(
            given,
            "what is copied into it would not be recorded",
            "pass out.detach() to write to its memory all the same",
        )


def refused_by_backend(tensor: torch.Tensor, device: torch.device, error: Exception) -> FerryError:
    """Return the error for a host tensor that the backend of `device` did not take; it is asked once more for why."""
    said = words_of(error)
    given = f"{shown(tensor)} for device {device}"
    instead = None if _takes(tensor.dtype, device) else _dtype_that_works(tensor.dtype, device)
    if instead is None:  # it takes this dtype, or nothing at all
        return DeviceError(
            given,
            f"torch cannot put it there ({said})",
            "run `tensorferry doctor` to see which devices there are",
        )
    return DTypeError(
        given,
        f"the device does not take this dtype ({said})",
        f'pass dtype="{instead}", which it takes',
    )


def _dtype_that_works(dtype: torch.dtype, device: torch.device) -> str | None:
    import torch

    entry = TORCH.get(str(dtype).removeprefix("torch."))
    kind = NATIVE[entry.reads_as]["kind"] if entry is not None and entry.reads_as is not None else "floating"
    choices = [name for name in _INSTEAD[kind] if getattr(torch, name) != dtype]
    return next((name for name in choices if _takes(getattr(torch, name), device)), None)


def _takes(dtype: torch.dtype, device: torch.device) -> bool:
    """Can the device hold one element of this dtype?"""
    import torch

    try:
        torch.empty(1, dtype=dtype, device=device).copy_(torch.empty(1, dtype=dtype, device="cpu"))
    except Exception:
        return False
    return True
