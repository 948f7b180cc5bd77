"""The streams that are current in one thread, made current in another one."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Any

__all__ = ["CurrentStreams"]


class CurrentStreams:
    """What torch's work of the calling thread is ordered in; a context manager for another thread.

    Parameters
    ----------
    tensors : iterable or None
        Whose devices matter; what is no tensor does not. None stands for all devices that torch has begun to use.
    """

    def __init__(self, tensors: Iterable[Any] | None) -> None:
        self._stack = ExitStack()
        torch = sys.modules.get("torch")
        self._streams: list[Any] = []
        if torch is None:
            return
        devices = _in_use(torch) if tensors is None else _devices_of(torch, tensors)
        for device in devices:
            module = torch.get_device_module(device)
            if hasattr(module, "current_stream") and hasattr(module, "stream"):
                self._streams.append((module, module.current_stream(device)))

    def __enter__(self) -> None:
        for module, stream in self._streams:
            self._stack.enter_context(module.stream(stream))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def _devices_of(torch: Any, tensors: Iterable[Any]) -> list[Any]:
    found = {x.device: None for x in tensors if isinstance(x, torch.Tensor) and x.device.type not in ("cpu", "meta")}
    return list(found)


def _in_use(torch: Any) -> list[Any]:
    if not torch.cuda.is_initialized():
        return []
    return [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
