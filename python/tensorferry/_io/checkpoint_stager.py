"""Stages sharded state for ``torch.distributed.checkpoint.async_save``."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from tensorferry import _torch
from tensorferry._convert.to_numpy_async import to_numpy_async
from tensorferry._dtypes import NATIVE
from tensorferry._errors import FerryError
from tensorferry._io.checkpoint_nest import SplitState
from tensorferry._native import core

__all__ = ["stage"]


def stage(state: Any) -> Any:
    """Copy a state dict to host memory; see :meth:`tensorferry.io.CheckpointStager.stage`."""
    _torch.require("CheckpointStager().stage(state_dict)")
    split = SplitState(state)
    tensors = list(map(_bits, split.tensors))
    dtypes = [tensor.dtype for tensor in split.tensors]
    away = [at for at, tensor in enumerate(tensors) if tensor.device.type not in ("cpu", "meta")]
    made = {at: _copied(tensor, split.names[at]) for at, tensor in enumerate(tensors) if at not in set(away)}

    def whole() -> Any:
        values = [made[at] for at in range(len(dtypes))]
        pairs = zip(values, dtypes, strict=True)
        return split.rebuilt([value if value.dtype is dtype else value.view(dtype) for value, dtype in pairs])

    if not away:
        return whole()
    transfer = _enqueued([tensors[at] for at in away])
    split.tensors.clear()
    tensors.clear()

    def arrived() -> Any:
        made.update(zip(away, map(core.from_numpy, transfer.result()), strict=True))
        return whole()

    return _when_done(transfer, arrived)


def _when_done(transfer: Any, result: Callable[[], Any]) -> Future[Any]:
    staged: Future[Any] = Future()
    staged.set_running_or_notify_cancel()

    def settle(_: Any) -> None:
        try:
            staged.set_result(result())
        except BaseException as error:  # raised by whoever asks for the staged state
            staged.set_exception(error)

    transfer.add_done_callback(settle)
    return staged


def _enqueued(tensors: list[Any]) -> Any:
    known = {"out": None, "dtype": None, "casting": "same_kind", "order": "K"}
    return to_numpy_async(tensors, **known, stream=None, pinned="auto", snapshot="auto")


def _bits(x: Any) -> Any:
    """Return a tensor of a dtype that NumPy has, over the same memory."""
    torch = _torch.require("staging")
    name = str(x.dtype).removeprefix("torch.")
    if x.layout is not torch.strided or x.is_quantized or NATIVE.get(name, {}).get("numpy_native"):
        return x
    return x.resolve_conj().view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[x.element_size()])


def _copied(x: Any, name: str) -> Any:
    torch = _torch.require("staging")
    if x.device.type == "meta" or x.layout is not torch.strided or x.is_quantized:
        return x.clone()
    try:
        return core.from_numpy(core.to_numpy(x, copy=True))
    except FerryError as error:
        error.given = f"tensor {name!r}: {error.given}"
        raise
