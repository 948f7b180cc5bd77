"""Makes torch tensors: over shared memory, new ones to be filled, and aliases of tensors we made views of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert.options import FromNumpyOptions
from tensorferry._dtypes import NATIVE, TORCH, for_leaf
from tensorferry._errors import ArgumentError, AutogradError, DeviceError, DTypeError
from tensorferry._native import core
from tensorferry._torch import fallback

if TYPE_CHECKING:
    import torch

__all__ = ["Alias", "adjusted", "alias_of", "empty", "finished", "share", "storable"]

# What torch takes from DLPack only in newer versions goes as integers of the same width, and is viewed.
_CARRIERS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}


def torch_dtype(native: str) -> torch.dtype:
    """Return torch's dtype of the same name, or refuse."""
    import torch

    found = getattr(torch, native, None)
    if native in TORCH and isinstance(found, torch.dtype):
        return found
    raise DTypeError(
        f"an array of dtype {native}",
        f"torch {torch.__version__} has no such dtype",
        f'pass dtype="{NATIVE[native]["native"]}", which holds every value',
    )


def storable(source: core.Source, wanted: str) -> str:
    """Return the dtype to decide with: torch packs float4 in pairs, and lacks some dtypes altogether."""
    target = source.dtype if wanted == "keep" else wanted
    if target == "float4_e2m1fn":
        target = wanted = "float4_e2m1fn_x2"
    if target not in ("numpy", "bits"):
        torch_dtype(target)
    return wanted


def share(source: core.Source, native: str) -> torch.Tensor:
    """Return a tensor over the source's memory, which it keeps alive."""
    from torch.utils.dlpack import from_dlpack

    if NATIVE[native]["numpy_native"]:
        capsule = core.export_capsule(source.relabelled(native), versioned=False)
        return from_dlpack(capsule)
    carrier = source.relabelled(_CARRIERS[NATIVE[native]["itemsize"]])
    return from_dlpack(core.export_capsule(carrier, versioned=False)).view(torch_dtype(native))


def empty(decision: core.Decision) -> tuple[torch.Tensor, core.Source]:
    """Return a new host tensor as decided, and the description through which to fill it."""
    import torch

    made = core.empty_tensor(decision)
    if made is not None:
        return made
    itemsize = NATIVE[decision.value_dtype]["itemsize"]
    strides = tuple(step // itemsize for step in decision.strides)
    if 0 in decision.shape:
        dtype = torch_dtype(decision.result_dtype)
        tensor = torch.empty_strided(decision.shape, strides, dtype=dtype, device="cpu")
        return tensor, _torch.take(tensor).source.relabelled(decision.value_dtype)
    destination = core.owned_source(decision)
    tensor = share(destination, decision.result_dtype)
    if tensor.stride() != strides:  # DLPack leaves the steps of axes of one element to chance
        tensor = tensor.as_strided(decision.shape, strides)
    return tensor, destination


def require_finishable(dtype: str, options: FromNumpyOptions) -> None:
    """Raise for what :func:`finished` cannot do with a tensor of native or torch dtype `dtype`, before it is made."""
    if options.device is not None:
        require_device(options.device)
    if options.requires_grad and NATIVE[dtype]["kind"] not in ("floating", "complex"):
        raise AutogradError(
            f"requires_grad=True for a torch.{dtype} tensor",
            "only floating and complex tensors have gradients",
            'pass dtype="float32" as well',
        )


def require_device(device: Any) -> None:
    import torch

    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError) as error:
        raise _no_device(device, error) from error
    backend = getattr(torch, kind, None)
    if backend is not None and hasattr(backend, "is_available") and not backend.is_available():
        raise _no_device(device, f"torch finds no {kind} device")


def _no_device(device: Any, why: object) -> DeviceError:
    return DeviceError(
        f"device={device!r}",
        f"torch cannot put a tensor there ({str(why).splitlines()[0]})",
        "run `tensorferry doctor` to see which devices there are",
    )


def finished(tensor: torch.Tensor, options: FromNumpyOptions) -> torch.Tensor:
    """Move to the device asked for and mark for autograd."""
    if options.device is not None and tensor.device.type == "cpu":
        tensor = fallback.from_host(tensor, options.device)
    if options.requires_grad:
        tensor.requires_grad_(True)
    return tensor


def adjusted(tensor: torch.Tensor, options: FromNumpyOptions) -> torch.Tensor:
    """What was a tensor already comes back as it is; changing it is torch's business."""
    name = TORCH.get(_torch.dtype_name(tensor))
    changes = name is None or name.reads_as is None or for_leaf(options.dtype, name.reads_as, in_nest=False) != "keep"
    if (changes and options.dtype is not None) or options.copy == "always" or options.requires_grad or options.device:
        raise ArgumentError(
            "from_numpy of a torch tensor with arguments that change it",
            "it is a tensor already",
            "use torch's own methods: x.to(...), x.clone(), x.requires_grad_()",
        )
    return tensor


@dataclass
class Alias:
    """How an array lies in the storage of a tensor that its view remembers."""

    origin: torch.Tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: torch.dtype

    def tensor(self) -> torch.Tensor:
        """Return the alias: same memory, same version counter, no autograd history."""
        alias = _torch.to_plain(self.origin).detach()
        if alias.dtype != self.dtype:
            alias = alias.view(self.dtype)
        return alias.as_strided(self.shape, self.strides, self.offset)


def alias_of(array: np.ndarray[Any, Any], source: core.Source) -> Alias | None:
    """Find the tensor that one of our arrays, or a view of one, was made from."""
    view = _view_under(array)
    if view is None or view.tensor is None or source.byte_swapped:
        return None
    origin, itemsize = view.tensor, array.itemsize
    memory = origin.untyped_storage()
    first = source.address - memory.data_ptr()
    strides = [step if extent > 1 else itemsize for extent, step in zip(array.shape, array.strides, strict=True)]
    low, high = source.layout_facts()["span"]
    inside = first + low >= 0 and first + high <= memory.nbytes()
    whole = first % itemsize == 0 and all(step >= 0 and step % itemsize == 0 for step in strides)
    if not inside or not whole or origin.element_size() != itemsize:
        return None
    dtype = torch_dtype(source.dtype)
    return Alias(origin, array.shape, tuple(step // itemsize for step in strides), first // itemsize, dtype)


def _view_under(array: np.ndarray[Any, Any]) -> core.ReadOnlyView | None:
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, core.ReadOnlyView) else None
