"""CUDA tensors over simulated device memory: made, written, copied and read in the current stream of their device."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch

from helpers.fake_cuda import fake_cuda
from helpers.torch_on_fake_build import Elements, guard_library, kernels_library

__all__ = ["CPU_KEYS", "NotABit", "allocate", "copy_later", "device_of", "read", "span", "write_later"]

CPU_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)  # what only moves shapes about works for any memory
_aten = torch.ops.aten
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


class NotABit(Exception):
    """The difference between two tensors' marks is no flipped bit: integers are negated by arithmetic."""


def device_of(device: Any) -> int:
    """Ordinal of a torch device, the current one if it has none."""
    index = None if device is None else torch.device(device).index
    return guard_library().torch_on_fake_device() if index is None else index


def _stream(device: int) -> Any:
    return guard_library().torch_on_fake_stream(device)


def _require(code: int, what: str) -> None:
    if code != 0:
        raise RuntimeError(f"CUDA error: the fake driver refused {what} with code {code}")


def span(size: Sequence[int], stride: Sequence[int]) -> int:
    """How many elements a storage needs for this layout."""
    if 0 in size:
        return 0
    return 1 + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True))


def allocate(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype, device: Any) -> torch.Tensor:
    """A tensor of fresh poison, allocated for the current stream as torch's caching allocator does."""
    guard, index = guard_library(), device_of(device)
    if index >= guard.torch_on_fake_devices():
        raise RuntimeError("CUDA error: invalid device ordinal")
    guard.torch_on_fake_need_context()
    nbytes = span(size, stride) * dtype.itemsize
    address = None
    if nbytes:
        address = fake_cuda().library.fake_alloc(nbytes, index)
        if address == 0:
            raise torch.OutOfMemoryError("CUDA out of memory: the fake driver's arena is used up")
    managed = guard.torch_on_fake_wrap(address, nbytes, index, _stream(index))
    flat = torch._C._from_dlpack(_new_capsule(managed, b"dltensor", None))
    typed = _aten.view.dtype.redispatch(CPU_KEYS, flat, dtype)
    return _aten.as_strided.default.redispatch(CPU_KEYS, typed, list(size), list(stride), 0)


def _elements(x: torch.Tensor, to: Sequence[int], source: Sequence[int], flip: bytes | None = None) -> Elements:
    def array(values: Sequence[int], unit: int) -> Any:
        return (ctypes.c_int64 * len(values))(*(value * unit for value in values))

    unit = x.element_size()
    return Elements(x.ndim, array(x.shape, 1), array(to, unit), array(source, unit), unit, flip)


def _flip(to: torch.Tensor, source: torch.Tensor) -> bytes | None:
    """The bits to invert in each element where only one side is marked as conjugate or negative."""
    conjugate = to.is_conj() != source.is_conj()
    negative = to.is_neg() != source.is_neg()
    if not conjugate and not negative:
        return None
    if not (to.is_complex() or to.is_floating_point()):
        raise NotABit
    mask = bytearray(to.element_size())
    component = to.element_size() // 2 if to.is_complex() else to.element_size()
    if negative:
        mask[component - 1 :: component] = b"\x80" * (to.element_size() // component)
    if conjugate:
        mask[-1] ^= 0x80
    return bytes(mask)


def write_later(to: torch.Tensor, source: torch.Tensor) -> None:
    """Put host values of the same shape and dtype into a tensor, taken now and written when the stream gets there."""
    guard_library().torch_on_fake_need_context()
    if to.is_conj() != source.is_conj():
        source = source.conj().resolve_conj() if to.is_conj() else source.resolve_conj()
    if to.is_neg() != source.is_neg():
        source = torch._neg_view(source).resolve_neg() if to.is_neg() else source.resolve_neg()
    elements, index = _elements(to, to.stride(), source.stride()), to.device.index
    code = kernels_library().fake_write_strided_later(to.data_ptr(), source.data_ptr(), elements, _stream(index), index)
    _require(code, "a write")


def copy_later(to: torch.Tensor, source: torch.Tensor) -> None:
    """Copy between device tensors of the same shape and dtype when the stream gets there."""
    guard_library().torch_on_fake_need_context()
    elements = _elements(to, to.stride(), source.stride(), _flip(to, source))
    here, there = source.device.index, to.device.index
    kernels = kernels_library()
    if here != there:  # torch copies in the source's stream, which waits for the other one, which waits for the copy
        _require(kernels.fake_order_across(_stream(here), here, _stream(there), there), "a wait")
    code = kernels.fake_copy_strided_later(to.data_ptr(), source.data_ptr(), elements, _stream(here), here)
    _require(code, "a copy")
    if here != there:
        _require(kernels.fake_order_across(_stream(there), there, _stream(here), here), "a wait")


def read(source: torch.Tensor) -> torch.Tensor:
    """A host tensor with the values and, if it is dense, the layout; waits for the current stream."""
    guard_library().torch_on_fake_need_context()
    bare = torch.empty_like(source, device="meta")
    out = torch.empty_strided(source.shape, bare.stride(), dtype=source.dtype)
    try:
        flip = _flip(out, source)
    except NotABit:
        return torch._neg_view(read(torch._neg_view(source))).resolve_neg()
    elements, index = _elements(source, out.stride(), source.stride(), flip), source.device.index
    code = kernels_library().fake_read_strided(source.data_ptr(), out.data_ptr(), elements, _stream(index), index)
    _require(code, "a read")
    return out
