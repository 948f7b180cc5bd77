"""A torch device of our own, "remote", whose copies finish only when they are waited for.

Registering a device is final for a process, so this is for programs that run in an interpreter of their own:
``from helpers.remote_device import install``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

__all__ = ["Remote", "install"]

_CPU_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)


class Remote:
    """The device's memory, and the copies that were enqueued and have not run.

    Attributes
    ----------
    waiting : list of callable
        One for each copy that was asked for with ``non_blocking=True``.
    copies : int
        How many copies have run.
    """

    def __init__(self) -> None:
        self._memory: dict[int, torch.Tensor] = {}  # address on the device -> where the values really are
        self._next_address = 1 << 20
        self.waiting: list[Callable[[], None]] = []
        self.copies = 0

    def synchronize(self) -> None:
        """Let everything that was enqueued happen."""
        while self.waiting:
            self.waiting.pop(0)()

    def _empty_strided(self, size: Any, stride: Any, dtype: Any = None, **_: Any) -> torch.Tensor:
        values = torch.empty_strided(size, stride, dtype=dtype or torch.get_default_dtype())
        address, nbytes = self._next_address, values.untyped_storage().nbytes()
        self._next_address += nbytes + 4096
        self._memory[address] = values
        storage = torch._C._construct_storage_from_data_pointer(address, torch.device("remote:0"), nbytes)
        bare = torch._C._acc.create_empty_tensor((0,), values.dtype)
        place = torch.ops.aten.set_.source_Storage_storage_offset
        return place.redispatch(_CPU_KEYS, bare, storage, 0, size, stride)

    def _values(self, x: torch.Tensor) -> torch.Tensor:
        return self._memory[x.data_ptr()] if x.device.type == "remote" else x

    def _copy_from(self, source: torch.Tensor, destination: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        def run() -> None:
            self._values(destination).copy_(self._values(source))
            self.copies += 1

        if non_blocking:
            self.waiting.append(run)
        else:
            self.synchronize()
            run()
        return destination


def install() -> Remote:
    """Register the device, once in a process."""
    remote = Remote()
    _setup_privateuseone_for_python_backend("remote")
    library = torch.library.Library("aten", "IMPL")
    library.impl("empty_strided", remote._empty_strided, "PrivateUse1")
    library.impl("_copy_from", remote._copy_from, "PrivateUse1")
    remote._library = library  # type: ignore[attr-defined]  # unregisters when it dies
    return remote
