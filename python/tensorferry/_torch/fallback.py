"""Every device but the host and CUDA with a usable driver: copies by torch itself, and each of them blocks.

Nothing here ever passes ``non_blocking=True``: on several backends values can then be read before they have arrived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorferry._dtypes import NATIVE
from tensorferry._errors import DeviceError
from tensorferry._native import core
from tensorferry._torch.fallback_refusals import refused_by_backend, require_fit, shown, words_of

if TYPE_CHECKING:
    import torch

__all__ = ["copied_strides", "from_host", "is_native_kind", "reason", "to_host"]

# Integers of the same width: backends copy them, whatever they think of the dtype that is read into the bits.
_CARRIERS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}


def is_native_kind(device: torch.device | str) -> bool:
    """Is this the kind of device that tensorferry copies from and to by itself, once its driver is usable?"""
    import torch

    return torch.device(device).type == "cuda" and torch.version.hip is None


def reason(device: torch.device | str, driver_status: str | None = None) -> str:
    """Return in one clause why tensors of `device` go through torch; no device is asked.

    Parameters
    ----------
    device : torch.device or str
        Any device but the host.
    driver_status : str, optional
        For CUDA, what the driver said when it was used. None asks what opening its library shows, and starts nothing.
    """
    import torch

    if is_native_kind(device):
        said = core.driver_problem(initialise=False) if driver_status is None else driver_status
        return "the CUDA driver cannot be used here" + (f" ({said})" if said else "")
    kind = torch.device(device).type
    name = "ROCm" if kind == "cuda" else kind
    return f"tensorferry copies natively between the host and CUDA only, not from or to {name}"


def copied_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a packed copy that keeps the order of the axes.

    They are those of ``to_numpy(x, copy=True)`` for a host tensor, so a layout does not depend on the device.
    """
    return tuple(_packed("uint8", shape, strides, 1).strides)


def _packed(native: str, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> core.Decision:
    described = core.Source.described(native, list(shape), [step * itemsize for step in strides])
    return core.decide(described, target="torch", copy="always")


def to_host(alias: torch.Tensor) -> torch.Tensor:
    """Copy a tensor of another device to new host memory, and wait until it is there.

    Parameters
    ----------
    alias : torch.Tensor
        Strided and outside of any graph.

    Returns
    -------
    torch.Tensor
        Packed, with the strides of :func:`copied_strides`. Conjugate and negative marks are kept, not resolved: of
        those, backends make what they like when values cross from device to device.

    Raises
    ------
    DeviceError
        With what the backend said.
    """
    import torch

    _refuse_capture(alias.device)
    host = _new_host_tensor(alias)
    try:
        stored, conjugated, negated = _without_marks(alias)
        _copy(host, stored)
    except Exception as error:
        raise DeviceError(
            f"{shown(alias)} on device {alias.device}",
            f"its backend cannot copy it to the host ({words_of(error)})",
            "move it with the backend's own means first",
        ) from error
    if negated:
        host = torch._neg_view(host)
    return host.conj() if conjugated else host


def _refuse_capture(device: torch.device) -> None:
    """Raise inside a capture of torch's: the copy waits, and would end it."""
    import torch

    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        raise DeviceError(
            f"a copy from or to {device} in a stream that is being captured into a graph",
            "torch makes it, and waits for it, which is not allowed during a capture",
            "call it before the capture begins or after it has ended",
        )


def _without_marks(x: torch.Tensor) -> tuple[torch.Tensor, bool, bool]:
    """Return the values as they are stored, and which marks were on them."""
    import torch

    conjugated, negated = x.is_conj(), x.is_neg()
    if conjugated:
        x = x.conj()  # flips the mark, not the values
    return (torch._neg_view(x) if negated else x), conjugated, negated


def _new_host_tensor(like: torch.Tensor) -> torch.Tensor:
    """Return a packed tensor to be filled; its memory is of the pool of private copies."""
    import torch

    from tensorferry._torch import make

    itemsize = like.element_size()
    shape, strides = tuple(like.shape), tuple(like.stride())
    carrier = _CARRIERS.get(itemsize)
    if carrier is None or like.numel() == 0:
        return torch.empty_strided(shape, copied_strides(shape, strides), dtype=like.dtype, device="cpu")
    return make.empty(_packed(carrier, shape, strides, itemsize))[0].view(like.dtype)


def _copy(host: torch.Tensor, stored: torch.Tensor) -> None:
    """Copy the values, and where the backend cannot copy a dtype that few know, their bits."""
    import torch

    try:
        host.copy_(stored)
    except Exception:
        entry = NATIVE.get(str(stored.dtype).removeprefix("torch."))
        if entry is not None and entry["numpy_native"]:
            raise
        carrier = getattr(torch, _CARRIERS[stored.element_size()])
        host.view(carrier).copy_(stored.view(carrier))


def from_host(tensor: torch.Tensor, device: torch.device | str, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Copy a host tensor to another device, and wait until it is there.

    Parameters
    ----------
    tensor : torch.Tensor
        In host memory.
    device : torch.device or str
        Where to. Without `out`, the host gets the tensor as it is.
    out : torch.Tensor, optional
        Filled and returned, where new memory is not wanted. Its version counter is raised.

    Returns
    -------
    torch.Tensor
        Packed, with the strides of :func:`copied_strides`, or `out`. Outside of any graph.

    Raises
    ------
    DTypeError
        For a dtype that the device lacks, with what it said and the nearest dtype that it takes.
    DeviceError
        For everything else that the backend refuses, with what it said.
    BufferMismatchError, AutogradError
        For an `out` that does not fit; nothing was copied then.
    """
    import torch

    target = torch.device(device)
    if out is not None:
        require_fit(out, tuple(tensor.shape), tensor.dtype, target)
    elif target.type == "cpu":
        return tensor
    _refuse_capture(target)
    tensor = tensor.detach()
    try:
        return _sent(tensor, target) if out is None else _filled(out, tensor)
    except Exception as error:
        raise refused_by_backend(tensor, target, error) from error


def _sent(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    import torch

    strides = copied_strides(tuple(tensor.shape), tuple(tensor.stride()))
    sent = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=device)
    return sent.copy_(tensor.resolve_conj().resolve_neg())


def _filled(out: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    import torch

    # What was made in inference mode can be written to there only; everything else also outside of it.
    with torch.inference_mode(out.is_inference()), torch.no_grad():
        return out.copy_(tensor.resolve_conj().resolve_neg())
