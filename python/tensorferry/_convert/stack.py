"""Many tensors of one shape into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert import destination as _destination
from tensorferry._convert.known_dtype import as_known_dtype
from tensorferry._convert.options import FromNumpyOptions, choose
from tensorferry._convert.take import Taken, take
from tensorferry._device.reception import Reception
from tensorferry._dtypes import NATIVE, resolve
from tensorferry._errors import (
    ArgumentError,
    AutogradError,
    BufferMismatchError,
    DTypeError,
    FerryError,
    LayoutError,
    ReadOnlyError,
)
from tensorferry._native import core
from tensorferry._torch import make as torch_make
from tensorferry._torch.autograd import may_have_tangents, part_in_autograd

__all__ = ["stack"]

_Read = Callable[[], core.Batch]  # reads what lies on devices, once nothing can be refused any more


def stack(items: Sequence[Any], /, *, to: str = "torch", dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    """See :func:`tensorferry.stack`."""
    choose("to", to, ("torch", "numpy"))
    if to == "numpy" and device is not None:
        raise ArgumentError(f'device={device!r} with to="numpy"', "arrays live on the host", "leave device out")
    if out is not None and device is not None:
        raise ArgumentError(
            f"device={device!r} with out=", "the destination is where it is", "leave out one of the two arguments"
        )
    wanted = resolve(dtype)
    if wanted == "bits":
        raise ArgumentError('stack(dtype="bits")', "bits of several dtypes do not mix", "stack views of the bits")
    items = _listed(items)
    if to == "torch":
        _torch.require('stack(to="torch")')
    into_torch = to == "torch" or _torch.is_tensor(out)
    described: dict[int, Taken] = {}
    batch = _take_all(items, wanted, into_torch, lambda i, item: _describe(i, item, described))

    def read() -> core.Batch:
        if not described:
            return batch
        arrived = _arrived(items, described)
        return _take_all(items, wanted, into_torch, lambda i, item: arrived.get(i) or take(item))

    _require_one_shape(batch)
    shape = (len(batch), *batch.shape)
    if out is not None:
        return _fill_given(out, batch, read, shape, wanted, dtype)
    target = _common_dtype(batch) if wanted == "keep" else _choice(batch, wanted)
    _require_castable(batch, target)
    if to == "numpy":
        return _filled_array(read, target, shape)[0]
    _require_unpacked(target)
    torch_make.torch_dtype(target)
    options = FromNumpyOptions.parse(device, None, "same_kind", None, "copy", False)
    torch_make.require_finishable(target, options)
    # Over an array, whose memory is warm where torch's would be new.
    _, filled = _filled_array(read, target, shape)
    with _torch.outside_of_modes():
        return torch_make.finished(torch_make.share(filled, target), options)


def _listed(items: Any) -> list[Any]:
    if not isinstance(items, Sequence) or isinstance(items, (str, bytes)):
        raise ArgumentError(f"stack() of a {type(items).__name__}", "it is no sequence", "pass a list of tensors")
    listed = list(items)  # reading an item may run code that changes the sequence
    if not listed:
        raise LayoutError("stack() of no items", "the shape of the result is not known", "pass at least one tensor")
    return listed


def _describe(i: int, item: Any, described: dict[int, Taken]) -> Taken:
    """Take an item, or note its description when it lies on a device."""
    taken = take(item, move=False)
    if taken.is_described:
        described[i] = taken
    return taken


def _arrived(items: list[Any], described: dict[int, Taken]) -> dict[int, Taken]:
    """Bring the items that lie on devices to the host; those that the driver copies are waited for once."""
    reception = Reception(None, "auto")
    reception.look_for_captures([taken.on_device for taken in described.values()])
    arrived = {}
    for i, taken in described.items():
        if taken.on_device is None:
            arrived[i] = take(items[i])
        else:
            arrived[i] = Taken(reception.enqueue(taken.on_device), moved_from=taken.moved_from)
    reception.wait()
    return arrived


def _take_all(items: list[Any], wanted: str, into_torch: bool, read: Callable[[int, Any], Taken]) -> core.Batch:
    def take_one(i: int, item: Any) -> core.Source:
        return _take_one(i, item, wanted, into_torch, read)

    if into_torch and may_have_tangents():  # the native layer does not ask
        return core.batch([take_one(i, item) for i, item in enumerate(items)], lambda _, source: source, False)
    return core.batch(items, take_one, into_torch)


def _take_one(i: int, item: Any, wanted: str, into_torch: bool, read: Callable[[int, Any], Taken]) -> core.Source:
    part = part_in_autograd(item) if into_torch and _torch.is_tensor(item) else ""
    if part:
        raise AutogradError(
            f"item {i}, which {part}",
            "copying its values would cut the graph",
            "use torch.stack to stay in the graph, or x.detach() to leave it",
        )
    if isinstance(item, np.ma.MaskedArray):
        raise DTypeError(f"item {i}, a masked array", "the mask would be lost", "fill it first: x.filled(value)")
    try:
        taken = read(i, item)
        if taken.source is not None:
            return taken.source
        assert taken.array is not None
        return as_known_dtype(taken.array, wanted, "same_kind", "a stack")
    except FerryError as error:
        error.given = f"item {i}: {error.given}"
        raise


def _require_one_shape(batch: core.Batch) -> None:
    i = batch.first_of_other_shape()
    if i is not None:
        raise LayoutError(
            f"item {i} of shape {tuple(core.decide(batch[i]).shape)}",
            f"item 0 has shape {batch.shape}, and one array has one shape",
            "bring all items to one shape first (crop, or pad with numpy.pad)",
        )


def _common_dtype(batch: core.Batch) -> str:
    names = sorted({str(NATIVE[dtype]["array"]) for dtype in batch.first_of_each_dtype()})
    if len(names) == 1:
        return names[0]
    if all(NATIVE[name]["numpy_native"] for name in names):
        return str(np.result_type(*names).name)
    raise DTypeError(
        f"items of dtypes {', '.join(names)}",
        "NumPy has no rule which dtype holds them all",
        'pass dtype=, for example dtype="float32"',
    )


def _choice(batch: core.Batch, wanted: str) -> str:
    if wanted == "numpy":
        return str(np.result_type(*{NATIVE[dtype]["native"] for dtype in batch.first_of_each_dtype()}).name)
    return wanted


def _require_castable(batch: core.Batch, target: str) -> None:
    for i in batch.first_of_each_dtype().values():
        try:
            core.decide(batch[i], dtype=target)
        except DTypeError as error:
            error.given = f"item {i}: {error.given}"
            error.instead = f'convert it first: to_numpy(x, dtype="{target}", casting="unsafe") or "same_value"'
            raise


def _require_unpacked(target: str) -> None:
    if target.startswith("float4"):
        raise DTypeError(
            f"a stack of dtype {target}",
            "torch packs two elements of this dtype into a byte",
            'stack to="numpy" and convert the result with from_numpy, or pass dtype="float32"',
        )


def _filled_array(read: _Read, target: str, shape: tuple[int, ...]) -> tuple[Any, core.Source]:
    batch = read()
    result = core.empty_array(target.removesuffix("_x2"), shape)  # arrays hold one value a byte
    destination = core.Source.from_array(result)
    batch.fill(destination)
    return result, destination


def _fill_given(out: Any, batch: core.Batch, read: _Read, shape: tuple[int, ...], wanted: str, dtype: Any) -> Any:
    if _torch.is_tensor(out):
        taken = take(out, move=False)
        if part_in_autograd(out) or taken.moved_from is not None or taken.tensor is None:
            raise BufferMismatchError(
                f"out of type {type(out).__name__} on device {out.device}, requires_grad={out.requires_grad}",
                "only plain host tensors can be filled",
                "stack to the host first, then copy_",
            )
        destination = taken.source
        assert destination is not None
        _require_unpacked(destination.dtype)
        _destination.require_agreement(destination.dtype, wanted, dtype)
    else:
        _destination.agreed_dtype(out, wanted, dtype)
        destination = core.Source.from_array(out)
    if tuple(destination.shape) == shape and destination.read_only:
        raise ReadOnlyError(f"out of shape {shape}", "it is read-only", "pass writable memory")
    if tuple(destination.shape) != shape or destination.layout_facts()["may_overlap_itself"]:
        raise BufferMismatchError(
            f"out of shape {tuple(destination.shape)}",
            f"the result needs memory of shape {shape} whose elements do not overlap",
            f"pass an array or tensor of shape {shape}",
        )
    _require_castable(batch, destination.dtype)
    for i in batch.near(destination):
        _destination.refuse_overlap(destination, batch[i])
    read().fill(destination)
    if _torch.is_tensor(out):
        import torch

        torch.autograd.graph.increment_version(out)
    return out
