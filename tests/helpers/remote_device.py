"""A torch device of our own, "remote", whose bytes the host cannot see and whose copies finish only when waited for.

Registering a device is final for a process, so this is for programs that run in an interpreter of their own:
``from helpers.remote_device import install``. Its memory is a side table; a tensor's address lies where no process can
have memory, so that whoever reads it as if it were the host's dies at once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

__all__ = ["Remote", "install"]

_CPU_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_FIRST_ADDRESS = 1 << 56  # no processor maps memory there
_SAME_WIDTH = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}
_METADATA_ONLY = (
    "as_strided",
    "unfold",
    "view",
    "view.dtype",
    "view_as_complex",
    "view_as_real",
)


class Remote:
    """The device's memory, and the copies that were enqueued and have not run.

    Attributes
    ----------
    waiting : list of callable
        One for each copy that was asked for with ``non_blocking=True``.
    copies : int
        How many copies have run.
    marked_copies : int
        How many copies met a source or destination with a conjugate or negative mark; many backends ignore those.
    lacks : set of torch.dtype
        What the device refuses to hold, as MPS refuses float64.
    ignores_marks : bool
        Copy values as they are stored, whatever the marks say, as many backends do.
    cannot_copy : set of torch.dtype
        What the backend holds and has no copy kernel for.
    capacity_nbytes : int or None
        The largest allocation that it makes.
    fails_with : Exception or None
        What every copy raises while it is set.
    """

    def __init__(self) -> None:
        self._memory: dict[int, torch.UntypedStorage] = {}  # address on the device -> where the values really are
        self._next_address = _FIRST_ADDRESS
        self.waiting: list[Callable[[], None]] = []
        self.copies = 0
        self.marked_copies = 0
        self.behave()

    def behave(self) -> None:
        """From now on, lack nothing and fail nowhere."""
        self.lacks: set[torch.dtype] = set()
        self.cannot_copy: set[torch.dtype] = set()
        self.ignores_marks = False
        self.capacity_nbytes: int | None = None
        self.fails_with: Exception | None = None

    @property
    def allocations(self) -> int:
        """How many blocks of the device's memory are in use."""
        return len(self._memory)

    def synchronize(self) -> None:
        """Let everything that was enqueued happen."""
        while self.waiting:
            self.waiting.pop(0)()

    def empty(self, size: Any, dtype: Any = None, **_: Any) -> torch.Tensor:
        """``aten::empty.memory_format``; what is asked beside size and dtype changes nothing here."""
        return self.empty_strided(size, torch.empty(size, device="meta").stride(), dtype)

    def empty_strided(self, size: Any, stride: Any, dtype: Any = None, **_: Any) -> torch.Tensor:
        """``aten::empty_strided``, filled with bytes that no test expects."""
        dtype = dtype or torch.get_default_dtype()
        if dtype in self.lacks:
            raise TypeError(f"Cannot make a remote tensor of {dtype}, which the device has no units for")
        layout = torch.empty_strided(size, stride, dtype=torch.uint8, device="meta")
        nbytes = layout.untyped_storage().nbytes() * dtype.itemsize
        if self.capacity_nbytes is not None and nbytes > self.capacity_nbytes:
            raise RuntimeError(f"remote out of memory: tried to allocate {nbytes} bytes\nException raised from here")
        values = torch.full((nbytes,), 0xDE, dtype=torch.uint8, device="cpu").untyped_storage()
        address, self._next_address = self._next_address, self._next_address + nbytes + 4096
        self._memory[address] = values
        storage = torch._C._construct_storage_from_data_pointer(address, torch.device("remote:0"), nbytes)
        weakref.finalize(storage, self._memory.pop, address)
        bare = torch._C._acc.create_empty_tensor((0,), dtype)
        place = torch.ops.aten.set_.source_Storage_storage_offset
        return place.redispatch(_CPU_KEYS, bare, storage, 0, size, stride)

    def copy_from(self, source: torch.Tensor, destination: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        """``aten::_copy_from``, either way or on the device: now, or when somebody synchronises."""

        def run() -> None:
            self._write(source, destination)
            self.copies += 1

        if self.fails_with is not None:
            raise self.fails_with
        if {source.dtype, destination.dtype} & self.cannot_copy:
            raise NotImplementedError(f'"copy_remote" not implemented for {source.dtype}')
        self.marked_copies += any(x.is_conj() or x.is_neg() for x in (source, destination))
        if non_blocking:
            self.waiting.append(run)
        else:
            self.synchronize()
            run()
        return destination

    def scalar_of(self, x: torch.Tensor) -> Any:
        """``aten::_local_scalar_dense``."""
        self.synchronize()
        self.copies += 1
        return self._resolved(x).item()

    def _stored(self, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """What lies in the tensor's memory, without its marks, as `dtype`."""
        storage = x.untyped_storage()
        values = self._memory[storage.data_ptr()] if x.device.type == "remote" else storage
        return torch.empty(0, dtype=dtype, device="cpu").set_(values, x.storage_offset(), x.shape, x.stride())

    def _resolved(self, x: torch.Tensor) -> torch.Tensor:
        values = self._stored(x, x.dtype)
        if x.is_conj():
            values = values.conj()
        return (torch._neg_view(values) if x.is_neg() else values).resolve_conj().resolve_neg()

    def _write(self, source: torch.Tensor, destination: torch.Tensor) -> None:
        conjugate, negate = source.is_conj() != destination.is_conj(), source.is_neg() != destination.is_neg()
        as_stored = self.ignores_marks or not (conjugate or negate)
        if source.dtype == destination.dtype and as_stored:
            carrier = _SAME_WIDTH[source.dtype.itemsize]
            self._stored(destination, carrier).copy_(self._stored(source, carrier))
            return
        values = self._resolved(source).to(destination.dtype)
        if destination.is_conj():
            values = values.conj()
        if destination.is_neg():
            values = -values
        self._stored(destination, destination.dtype).copy_(values)


def _on_metadata(name: str) -> Callable[..., torch.Tensor]:
    """Let the CPU's implementation change sizes, strides and dtype; it reads no memory."""
    packet, _, overload = name.partition(".")
    operation = getattr(getattr(torch.ops.aten, packet), overload or "default")

    def run(*arguments: Any, **keywords: Any) -> torch.Tensor:
        return operation.redispatch(_CPU_KEYS, *arguments, **keywords)

    return run


def install() -> Remote:
    """Register the device, once in a process."""
    remote = Remote()
    _setup_privateuseone_for_python_backend("remote")
    library = torch.library.Library("aten", "IMPL")
    for name in _METADATA_ONLY:
        library.impl(name, _on_metadata(name), "PrivateUse1")
    library.impl("empty.memory_format", remote.empty, "PrivateUse1")
    library.impl("empty_strided", remote.empty_strided, "PrivateUse1")
    library.impl("_copy_from", remote.copy_from, "PrivateUse1")
    library.impl("_local_scalar_dense", remote.scalar_of, "PrivateUse1")
    for mark in ("Conjugate", "Negative"):  # else torch resolves marks by a copy, which resolves them by a copy
        library.impl("_copy_from", torch.library.fallthrough_kernel, mark)
    remote._library = library  # type: ignore[attr-defined]  # unregisters when it dies
    return remote
