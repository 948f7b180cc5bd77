"""Torch's kernels for CUDA tensors, on simulated device memory.

Copies without a change of dtype, ``fill_``, ``zero_``, ``cat`` and ``stack`` are enqueued in the current stream.
Whatever else torch asks for waits for that stream, computes on the host and enqueues the writing of the results: right
in stream order, with a wait that no GPU needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from helpers.torch_on_fake_memory import CPU_KEYS, NotABit, allocate, copy_later, read, span, write_later

__all__ = ["register_kernels"]

_METADATA_IN_PLACE = ("set_", "set_.source_Storage", "set_.source_Storage_storage_offset", "set_.source_Tensor")
_libraries: list[torch.library.Library] = []  # what they register ends with them


def _on_device(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.device.type == "cuda"


def _empty(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    dtype = dtype or torch.get_default_dtype()
    form = torch.contiguous_format if memory_format is None else memory_format
    return allocate(size, torch.empty(size, device="meta", memory_format=form).stride(), dtype, device)


def _empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> torch.Tensor:
    return allocate(size, stride, dtype or torch.get_default_dtype(), device)


def _copy(self: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    if self is src:
        return self
    src = src.expand(self.shape)
    if not _on_device(self):
        return _copy_to_host(self, src)
    if not _on_device(src):
        write_later(self, src.to(self.dtype))
        return self
    try:
        if self.dtype != src.dtype:
            raise NotABit
        copy_later(self, src)
    except NotABit:
        write_later(self, read(src).to(self.dtype))
    return self


def _copy_to_host(self: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
    values = read(src)
    if self.dtype == values.dtype and self.stride() == values.stride() and not (self.is_conj() or self.is_neg()):
        # By bytes: on the host torch cannot copy every dtype.
        nbytes = span(self.shape, self.stride()) * self.element_size()
        torch.empty(0, dtype=torch.uint8).set_(
            self.untyped_storage(), self.storage_offset() * self.element_size(), (nbytes,)
        ).copy_(torch.empty(0, dtype=torch.uint8).set_(values.untyped_storage(), 0, (nbytes,)))
        return self
    return self.copy_(values)


def _fill(self: torch.Tensor, value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return _copy(self, value)
    return _copy(self, torch.full((), value, dtype=self.dtype))


def _zero(self: torch.Tensor) -> torch.Tensor:
    return _fill(self, 0)


def _cat(tensors: Sequence[torch.Tensor], dim: int = 0) -> torch.Tensor:
    planned = torch.cat([torch.empty_like(x, device="meta") for x in tensors], dim)
    out, at = allocate(planned.shape, planned.stride(), planned.dtype, tensors[0].device), 0
    for x in tensors:
        if x.shape == (0,):
            continue  # torch lets these go with any shape
        _copy(out.narrow(dim, at, x.shape[dim]), x)
        at += x.shape[dim]
    return out


def _item(self: torch.Tensor) -> Any:
    return torch.ops.aten._local_scalar_dense.default(read(self))


def _computed_on_host(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Any other operation: views by their own arithmetic, the rest by the host's kernel on the host's copies."""
    if any(entry.alias_info is not None and not entry.alias_info.is_write for entry in op._schema.returns):
        return op.redispatch(CPU_KEYS, *args, **kwargs)
    devices: list[torch.device] = []
    copies: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def lower(x: Any) -> Any:
        if isinstance(x, torch.device) and x.type == "cuda":
            devices.append(x)
            return torch.device("cpu")
        if not _on_device(x):
            return x
        devices.append(x.device)
        return copies.setdefault(id(x), (x, read(x)))[1]

    lowered_args, lowered_kwargs = tree_map(lower, (args, kwargs))
    results = op(*lowered_args, **lowered_kwargs)
    for original in _written(op, args, kwargs):
        _give_back(original, copies[id(original)][1])
    originals = {id(copy): original for original, copy in copies.values()}

    def lift(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        if id(x) in originals:
            return originals[id(x)]
        made = allocate(x.shape, x.stride(), x.dtype, devices[0])
        write_later(made, x)
        return made

    return tree_map(lift, results)


def _written(op: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """The device tensors that an operation writes into."""
    arguments = op._schema.arguments
    by_name = {**dict(zip((one.name for one in arguments), args, strict=False)), **kwargs}
    writes = [by_name.get(one.name) for one in arguments if one.alias_info is not None and one.alias_info.is_write]
    return [x for x in tree_leaves(writes) if _on_device(x)]


def _give_back(original: torch.Tensor, copy: torch.Tensor) -> None:
    if original.shape != copy.shape:  # an ``out`` that had to be resized
        resized = allocate(copy.shape, copy.stride(), copy.dtype, original.device)
        torch.ops.aten.set_.source_Tensor.redispatch(CPU_KEYS, original, resized)
    write_later(original, copy)


def register_kernels() -> None:
    """Give torch its CUDA kernels, once in a process."""
    aten = torch.library.Library("aten", "IMPL")
    aten.impl("empty.memory_format", _empty, "CUDA")
    aten.impl("empty_strided", _empty_strided, "CUDA")
    aten.impl("copy_", _copy, "CUDA")
    aten.impl("fill_.Scalar", _fill, "CUDA")
    aten.impl("fill_.Tensor", _fill, "CUDA")
    aten.impl("zero_", _zero, "CUDA")
    aten.impl("cat", _cat, "CUDA")
    aten.impl("_local_scalar_dense", _item, "CUDA")
    for name in _METADATA_IN_PLACE:
        packet, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, packet), overload or "default")
        aten.impl(name, lambda *args, _op=op, **kwargs: _op.redispatch(CPU_KEYS, *args, **kwargs), "CUDA")
    everything = torch.library.Library("_", "IMPL")
    everything.fallback(_computed_on_host, "CUDA")
    _libraries.extend([aten, everything])
