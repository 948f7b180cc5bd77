"""Strict hand-off through DLPack, with the guards that the protocol leaves to the producer."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert import from_numpy as _from_numpy
from tensorferry._convert.options import FromNumpyOptions, ToNumpyOptions, choose
from tensorferry._convert.prepare import prepare
from tensorferry._convert.take import Taken, is_producer, refuse_array, take
from tensorferry._convert.to_numpy import carry_out
from tensorferry._dtypes import NATIVE
from tensorferry._errors import (
    ArgumentError,
    AutogradError,
    DeviceError,
    DTypeError,
    FerryError,
    LayoutError,
    ReadOnlyError,
    StreamError,
    as_buffer_error,
)
from tensorferry._native import core
from tensorferry._torch import make as torch_make
from tensorferry._torch.autograd import part_in_autograd

__all__ = ["Producer", "from_dlpack", "to_dlpack"]

_CPU = (1, 0)
_READ_ONLY = 1 << 0
_IS_COPIED = 1 << 1


class Producer:
    """A tensor offered through DLPack. Every ``__dlpack__`` call makes a new capsule; each can be consumed once.

    Made by :func:`to_dlpack`. Holds the memory as long as it, or any tensor made from it, lives.
    """

    def __init__(self, source: core.Source, *, copied: bool) -> None:
        self._source = source
        self._copied = copied

    def __repr__(self) -> str:
        """Shape, dtype, and whether consumers are asked not to write."""
        kind = "read-only " if self._source.read_only else ""
        return f"<{kind}DLPack producer of {self._source.summary()}>"

    def __dlpack_device__(self) -> tuple[int, int]:
        """Host memory: ``(kDLCPU, 0)``."""
        return _CPU

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a new capsule, as the array API standard describes.

        Raises
        ------
        BufferError
            For a stream, another device, or a consumer too old to hear that the memory is read-only.
        """
        try:
            return self._capsule(stream, max_version, dl_device, copy)
        except FerryError as error:
            raise as_buffer_error(error) from None

    def _capsule(self, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
        if stream is not None and not (isinstance(stream, int) and stream == -1):
            raise StreamError(f"stream={stream!r}", "no stream works on host memory", "pass stream=None")
        if dl_device is not None and _pair("dl_device", dl_device) != _CPU:
            raise DeviceError(
                f"dl_device={tuple(dl_device)}", "this memory is the host's", "ask for (1, 0), then move the result"
            )
        # A consumer may take a copy for its own and write to it: so each gets one, and ours keeps the values.
        copied = bool(copy) or self._copied
        source = _copied(self._source) if copied else self._source
        versioned = max_version is not None and _pair("max_version", max_version)[0] >= 1
        if source.read_only and not versioned:
            raise ReadOnlyError(
                f"a consumer that asks for DLPack {max_version or 'without a version'}",
                "only version 1.0 and newer can say that memory is read-only",
                "upgrade the consumer, or pass writable=True or copy=True to to_dlpack",
            )
        flags = (_READ_ONLY if source.read_only else 0) | (_IS_COPIED if copied else 0)
        return core.export_capsule(source, versioned=versioned, flags=flags if versioned else 0)


def _pair(name: str, given: Any) -> tuple[int, int]:
    try:
        first, second = given
        return int(first), int(second)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}={given!r}", "it is no pair of integers", "pass a tuple such as (1, 0)") from None


def to_dlpack(x: Any, /, *, copy: bool | None = False, detach: bool = False, writable: bool = False) -> Producer:
    """See :func:`tensorferry.to_dlpack`."""
    try:
        return _offer(x, copy, detach, writable)
    except FerryError as error:
        raise as_buffer_error(error) from None


def _offer(x: Any, copy: Any, detach: bool, writable: bool) -> Producer:
    words = {None: "if_needed", True: "always", False: "never"}
    _require_copy_choice(copy)
    _refuse_attached(x, detach, "to_dlpack(x, detach=True)")
    taken = take(x, move=False)
    source = _known(taken)
    if taken.moved_from is not None:
        raise DeviceError(
            f"{source.summary()} on device {taken.moved_from}",
            "only host memory is offered here",
            "hand over the tensor itself: it is a DLPack producer for its own device",
        )
    _refuse_small_integers(source)
    decision = core.decide(source, target="torch", copy=words[copy], dtype="keep", readonly="share")
    if decision.path == "copy":
        return Producer(_copied(source), copied=True)
    if taken.tensor is not None:
        source = _torch.keep_storage(taken.tensor, source)
    if writable and source.read_only:
        raise ReadOnlyError(
            f"{source.summary()} that is read-only, writable=True", "nobody may write to it", "pass copy=True"
        )
    if writable and source.layout_facts()["may_overlap_itself"]:
        raise LayoutError(
            f"{source.summary()}, writable=True",
            "its elements overlap, so a write to one would change others",
            "pass copy=True, or leave writable out",
        )
    return Producer(source.marked_read_only(not writable), copied=False)


def _require_copy_choice(copy: Any) -> None:
    if not (copy is None or isinstance(copy, bool)):
        raise ArgumentError(f"copy={copy!r}", "that is no choice for this argument", "pass None, True or False")


def _known(taken: Taken) -> core.Source:
    if isinstance(taken.array, np.ma.MaskedArray):
        raise DTypeError("a masked array", "DLPack has no mask", "fill it first: x.filled(value)")
    if taken.source is None:
        assert taken.array is not None
        raise refuse_array(taken.array, "DLPack")
    return taken.source


def _refuse_small_integers(source: core.Source) -> None:
    entry = NATIVE[source.dtype]
    if entry["value_bits"] < 8 and entry["kind"] != "bool" and entry["elements_per_item"] == 1:
        raise DTypeError(
            source.summary(),
            "DLPack packs dtypes below a byte, and these elements take a byte each",
            f'convert it to {entry["native"]} first: to_numpy(x, dtype="numpy")',
        )


def _refuse_attached(x: Any, detach: bool, call: str) -> None:
    part = part_in_autograd(x) if _torch.is_tensor(x) and not detach else ""
    if part:
        raise AutogradError(
            f"a {tuple(x.shape)} {x.dtype} tensor that {part}",
            "the consumer's operations would not be recorded",
            f"consent with {call}, or pass x.detach()",
        )


def _copied(source: core.Source) -> core.Source:
    """Return a private packed copy, in C order, with nothing left to resolve."""
    decision = core.decide(source, copy="always", order="C", dtype="bits" if _is_odd(source) else "keep")
    copied = core.Source.from_array(core.execute(source, decision))
    return copied.relabelled(source.dtype) if _is_odd(source) else copied


def _is_odd(source: core.Source) -> bool:
    """Does NumPy convert this dtype on the way, so that only its bits can be copied as they are?"""
    return bool(NATIVE[source.dtype]["array"] != source.dtype)


def from_dlpack(
    x: Any, /, *, to: str = "torch", copy: bool | None = False, detach: bool = False, readonly: str = "raise"
) -> Any:
    """See :func:`tensorferry.from_dlpack`."""
    choose("to", to, ("torch", "numpy"))
    _require_copy_choice(copy)
    if not is_producer(x):
        raise LayoutError(
            f"a {type(x).__name__} without __dlpack__", "it is no DLPack producer", "pass it to to_numpy or from_numpy"
        )
    _refuse_attached(x, detach, f"from_dlpack(x, to={to!r}, detach=True)")
    if to == "numpy":
        options = ToNumpyOptions.parse(copy, None, "same_kind", "K", None, None, "auto")
        foreign = _as_foreign(take(x, move=copy is not False))  # refused before a device is waited for
        return carry_out(prepare(foreign, options), options, None)
    _torch.require('from_dlpack(to="torch")')
    if readonly == "copy" and copy is False:
        copy = None
    torch_options = FromNumpyOptions.parse(None, None, "same_kind", copy, readonly, False)
    if _torch.is_tensor(x) and copy is not True and not _torch.exports_itself(x):
        return _torch.alias(x)  # other libraries' tensors have no version counter to share
    return torch_make.finished(_from_numpy.carry_out(_from_numpy.prepare(x, torch_options)), torch_options)


def _as_foreign(taken: Taken) -> Taken:
    """An array is a producer like any other here: what comes back is a read-only view, not the object itself."""
    return Taken(_known(taken), tensor=taken.tensor, on_device=taken.on_device, moved_from=taken.moved_from)
