"""The general path from any array to a torch tensor."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert.known_dtype import as_known_dtype
from tensorferry._convert.options import FromNumpyOptions
from tensorferry._convert.take import Taken, is_array_like, take
from tensorferry._dtypes import for_leaf, resolve
from tensorferry._errors import CopyRequiredError, DTypeError, ReadOnlyError
from tensorferry._native import core
from tensorferry._nest import is_nest, map_leaves
from tensorferry._torch import make as torch_make

__all__ = ["Prepared", "carry_out", "convert", "convert_leaf", "prepare", "read"]


@dataclass
class Prepared:
    """A conversion that was decided on and not yet carried out.

    Attributes
    ----------
    taken : Taken
        The source.
    decision : _core.Decision or None
        What the native layer will do; None when an alias of a tensor is returned.
    alias : torch_make.Alias or None
        How the array lies in a tensor that is still alive.
    """

    taken: Taken
    decision: core.Decision | None
    alias: torch_make.Alias | None = None

    @property
    def result_dtype(self) -> str:
        """Name of the tensor's dtype."""
        if self.alias is not None:
            return str(self.alias.dtype).removeprefix("torch.")
        assert self.decision is not None
        return str(self.decision.result_dtype)


def convert(
    a: Any,
    /,
    *,
    device: Any = None,
    dtype: Any = None,
    casting: Any = "same_kind",
    copy: Any = None,
    readonly: Any = "copy",
    requires_grad: Any = False,
) -> Any:
    """``from_numpy`` for everything that the native path does not know; see there."""
    options = FromNumpyOptions.parse(device, dtype, casting, copy, readonly, requires_grad)
    _torch.require("from_numpy")
    if not is_nest(a):
        return _convert_one(a, options, in_nest=False)

    def leaf(node: Any) -> Any:
        return _convert_one(node, options, in_nest=True) if is_array_like(node) else node

    return map_leaves(leaf, a)


def convert_leaf(a: Any) -> Any:
    """Convert one leaf of a nest that the native walk does not know; what is no array passes through."""
    options = FromNumpyOptions.parse(None, None, "same_kind", None, "copy", False)
    return _convert_one(a, options, in_nest=True) if is_array_like(a) else a


def _convert_one(a: Any, options: FromNumpyOptions, *, in_nest: bool) -> Any:
    if _torch.is_tensor(a):
        return torch_make.adjusted(a, options)
    prepared = prepare(a, options, in_nest=in_nest)
    torch_make.require_finishable(prepared.result_dtype, options)
    with _torch.outside_of_modes():
        if options.device is None:
            return torch_make.finished(carry_out(prepared), options)
        from tensorferry._convert.to_device import placed

        return torch_make.finished(placed(prepared, options), options)


def prepare(a: Any, options: FromNumpyOptions, *, in_nest: bool = False) -> Prepared:
    """Decide what happens to one array. ``plan`` and the conversion both come through here."""
    if isinstance(a, np.ma.MaskedArray):
        raise DTypeError(
            f"a masked {a.shape} {a.dtype} array", "a tensor has no mask", "fill it first: a.filled(value)"
        )
    taken = take(a, move=False)
    if taken.on_device is not None and options.copy == "never":
        raise CopyRequiredError(
            f"a {type(a).__name__} on {taken.on_device.name}, copy=False",
            "a tensor on the host cannot share that device's memory",
            "pass copy=None, or hand it to torch.from_dlpack for a tensor on its device",
        )
    source = taken.source
    if source is None:
        assert taken.array is not None
        wanted = "keep" if isinstance(options.dtype, Mapping) else resolve(options.dtype)
        source = as_known_dtype(taken.array, wanted, options.casting, "torch")
        taken = Taken(source)
    wanted = torch_make.storable(source, for_leaf(options.dtype, source.dtype, in_nest=in_nest))
    if taken.array is not None and options.copy != "always" and wanted in ("keep", source.dtype):
        alias = torch_make.alias_of(taken.array, source)
        if alias is not None:
            return Prepared(taken, None, alias)
    decision = core.decide(
        source,
        target="torch",
        copy=options.copy,
        dtype=wanted,
        casting=options.casting,
        readonly=options.readonly,
        private_memory=taken.on_device is not None,
    )
    consented = options.copy == "always" or options.readonly != "copy" or wanted not in ("keep", source.dtype)
    if decision.path == "copy" and not consented:
        _refuse_silent_copy_of_a_file(taken)
    return Prepared(taken, decision)


def _refuse_silent_copy_of_a_file(taken: Taken) -> None:
    """Reading a whole file into memory is not something to do unasked."""
    x = taken.array
    if x is None or x.flags.writeable or not _is_file_backed(x):
        return
    raise ReadOnlyError(
        f"a {x.shape} {x.dtype} array mapped read-only from a file",
        "a tensor over it would crash the process at its first write, and a copy would read the whole file",
        'open it with mmap_mode="c" (private writes), or pass readonly="share" and never write, or copy=True',
    )


def _is_file_backed(x: Any) -> bool:
    while x is not None:
        if isinstance(x, (np.memmap, mmap.mmap)):
            return True
        x = x.obj if isinstance(x, memoryview) else getattr(x, "base", None)
    return False


def read(prepared: Prepared) -> core.Source:
    """Return the values: those on a device are brought to the host, and waited for."""
    source, on_device = prepared.taken.source, prepared.taken.on_device
    assert source is not None
    if on_device is None:
        return source
    from tensorferry._device.reception import received

    return received(on_device)


def carry_out(prepared: Prepared) -> Any:
    """Do what was decided."""
    with _torch.outside_of_modes():
        return _made(prepared)


def _made(prepared: Prepared) -> Any:
    if prepared.alias is not None:
        return prepared.alias.tensor()
    source, decision = read(prepared), prepared.decision
    assert decision is not None
    if decision.path == "view":
        return torch_make.share(source, decision.result_dtype)
    tensor, destination = torch_make.empty(decision)
    core.copy_into(destination, source, check_values=decision.checks_values)
    return tensor
