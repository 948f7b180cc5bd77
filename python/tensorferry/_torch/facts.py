"""What is known about a torch tensor without reading its values; every kind of tensor answers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from tensorferry import _torch
from tensorferry._convert.take import take
from tensorferry._dtypes import NATIVE, TORCH
from tensorferry._errors import FerryError
from tensorferry._inspect.description import Description
from tensorferry._inspect.layout_facts import of_source
from tensorferry._native import core

if TYPE_CHECKING:
    import torch

__all__ = [
    "describe_tensor",
    "exports_itself",
    "is_pinned",
    "metadata",
    "plain_shape",
    "readable_memory",
]

T = TypeVar("T")


def describe_tensor(x: torch.Tensor) -> Description:
    """Describe any tensor; one that does not convert has a note instead of facts about its memory."""
    import torch

    memory: dict[str, Any]
    with torch._C.DisableTorchFunctionSubclass():
        try:
            memory = _memory_facts(x)
        except FerryError as error:
            memory = {"note": str(error)}
        shape = plain_shape(x)
        if shape is None and not x.is_nested:
            memory["note"] += f" (its extents are symbols: {tuple(x.shape)})"
        return Description(
            kind="torch tensor",
            class_name=type(x).__name__,
            dtype=_torch.dtype_name(x),
            shape=shape,
            device=str(x.device),
            byte_order=sys.byteorder if x.element_size() > 1 else None,
            pinned=is_pinned(x),
            requires_grad=_known(lambda: x.requires_grad),
            is_leaf=_known(lambda: x.is_leaf),
            grad_fn=_known(lambda: None if x.grad_fn is None else type(x.grad_fn).__name__),
            version=_known(lambda: x._version),
            conjugated=bool(_known(lambda: x.is_conj())),
            negated=bool(_known(lambda: x.is_neg())),
            is_view=_known(lambda: x._is_view()),
            base=_base_of(x),
            **memory,
        )


def plain_shape(x: torch.Tensor) -> tuple[int, ...] | None:
    """Return the shape, or None where extents are symbols or differ between rows."""
    try:
        shape = tuple(x.shape)
    except RuntimeError:  # nested tensors of strided layout have no shape to give
        return None
    return shape if all(type(extent) is int for extent in shape) else None


def metadata(x: torch.Tensor) -> tuple[tuple[int, ...] | None, str, str, bool]:
    """Return shape, dtype, device and ``requires_grad`` as torch knows them, whatever a subclass says."""
    import torch

    with torch._C.DisableTorchFunctionSubclass():
        return plain_shape(x), _torch.dtype_name(x), str(x.device), bool(x.requires_grad)


def exports_itself(x: torch.Tensor) -> bool:
    """Does the tensor's class say itself, in a ``__dlpack__`` of its own, where the values are?"""
    import torch

    return type(x).__dlpack__ is not torch.Tensor.__dlpack__ and type(x) is not torch.nn.Parameter


def is_pinned(x: torch.Tensor) -> bool:
    """Is this page-locked host memory? Never asked before CUDA runs: the question itself could start a device."""
    import torch

    if x.device.type != "cpu" or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return False
    return bool(_known(lambda: x.is_pinned()))


def readable_memory(x: torch.Tensor) -> tuple[core.Source, int | None]:
    """Return a native description of the tensor's own memory and the address of its first element.

    The description has the layout and no memory to read; the address is None when there is none, as for zero tensors
    and backends that do not tell. Copy-on-write storage stays shared.

    Raises
    ------
    FerryError
        For tensors that ``to_numpy`` refuses.
    """
    plain = _torch.to_plain(x)
    if plain.device.type == "cpu" and _is_copy_on_write(plain):
        _torch.take(plain.new_empty(0))  # the same questions, without pulling the storage apart
    else:
        _torch.take(plain, move=False)
    reads_as = TORCH[_torch.dtype_name(plain)].reads_as
    assert reads_as is not None  # refused before
    itemsize = plain.element_size()
    source = core.Source.described(reads_as, list(plain.shape), [step * itemsize for step in plain.stride()])
    if plain._is_zerotensor():
        return source, None
    return source, _known(lambda: _address_of(plain))


def _address_of(x: torch.Tensor) -> int:
    """Return where the first element lies; unlike ``data_ptr()`` this leaves copy-on-write storage shared."""
    import torch

    if x.numel() == 0:
        return 0
    storage_address = getattr(torch._C, "_data_address", None)
    if storage_address is None:
        return int(x.data_ptr())
    return int(storage_address(x)) + int(x.storage_offset()) * x.element_size()


def _is_copy_on_write(x: torch.Tensor) -> bool:
    import torch

    asked = getattr(torch._C, "_is_cow_tensor", None)
    return asked is not None and bool(_known(lambda: asked(x)))


def _memory_facts(x: torch.Tensor) -> dict[str, Any]:
    if exports_itself(x):
        source = take(x, move=False).source
        assert source is not None
        note = "its class exports itself (__dlpack__): the layout is that of what it gives"
        facts = of_source(source) | {"note": note, "writable": not source.read_only}
        return facts | {"aligned": bool(source.layout_facts()["aligned"])}
    source, address = readable_memory(x)
    facts = of_source(source, address or 0)
    no_memory = bool(x._is_zerotensor())
    return facts | {
        "aligned": None if not address else _is_aligned(source, address),
        "writable": not facts["overlapping"] and not no_memory,
        "storage_offset": _known(lambda: int(x.storage_offset())),
        "storage_nbytes": _known(lambda: int(x.untyped_storage().nbytes())),
        "note": "a zero tensor: every value is zero and there is no memory" if no_memory else "",
    }


def _is_aligned(source: core.Source, address: int) -> bool:
    entry = NATIVE[source.dtype]
    unit = int(entry["itemsize"]) // (2 if entry["kind"] == "complex" else 1)
    return address % unit == 0  # strides of tensors are whole elements


def _base_of(x: torch.Tensor) -> str:
    base = _known(lambda: x._base)
    if base is None:
        return ""
    return f"view of a {plain_shape(base)} {_torch.dtype_name(base)} tensor"


def _known(ask: Callable[[], T]) -> T | None:
    """Return the answer, or None from a tensor that has no such thing (inference, functional, foreign backends)."""
    try:
        return ask()
    except (RuntimeError, NotImplementedError, TypeError, AttributeError):
        return None
