"""DLPack capsules made by hand with ctypes, whose deleters count how often they run."""

from __future__ import annotations

import atexit
import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["CPU", "CUDA", "METAL", "CountingCapsule", "Offer", "Producer", "deleter_and_tensor", "forget", "read_offer"]

CPU, CUDA, METAL = 1, 2, 8


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("dl_tensor", _DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", _DLTensor),
    )


_names: list[bytes] = []
_kept: list[Any] = []
_python = ctypes.pythonapi
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_python.PyCapsule_GetName.restype = ctypes.c_char_p
_python.PyCapsule_GetName.argtypes = [ctypes.py_object]
_python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
# The destructor sees a dying object: its address is passed on, never a reference.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _python))
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


def _outlive_the_interpreter() -> None:
    """Who holds a capsule at exit may drop it after the collector took our callbacks apart: keep them whole."""
    for capsule in _kept:
        _python.Py_IncRef(ctypes.py_object(capsule))


atexit.register(_outlive_the_interpreter)


class CountingCapsule:
    """A float32 tensor in host memory, or a claim to be one, offered once.

    Parameters
    ----------
    shape : sequence of int
        In elements.
    versioned : bool
        Which of the two DLPack structs is used.
    data : int, optional
        The address to give out; by default that of zeros kept here.
    strides : sequence of int, optional
        In elements; by default NULL, which means C order.
    device : int
        The DLPack device type claimed.
    code, bits, lanes : int
        The DLPack dtype; (2, 32, 1) is float32.
    flags, major : int
        Of the versioned struct.
    byte_offset : int
        Where the first element lies, in bytes from `data`.

    Attributes
    ----------
    capsule : capsule or None
        Hand it over, or drop it by ``del x.capsule``.
    deletions : int
        How often the deleter ran.
    values : ctypes array
        The memory, when `data` was not given.
    """

    def __init__(
        self,
        shape: Sequence[int] = (3,),
        *,
        versioned: bool = True,
        data: int | None = None,
        strides: Sequence[int] | None = None,
        device: int = CPU,
        code: int = 2,
        bits: int = 32,
        lanes: int = 1,
        flags: int = 0,
        major: int = 1,
        byte_offset: int = 0,
    ) -> None:
        self.deletions = 0
        self.values = (ctypes.c_float * 64)()
        self._name = b"dltensor_versioned" if versioned else b"dltensor"
        self._shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self._strides = None if strides is None else (ctypes.c_int64 * max(len(strides), 1))(*strides)
        self._deleter = _Deleter(self._count)
        self._destructor = _Destructor(self._drop)
        self._managed: Any = _ManagedVersioned() if versioned else _Managed()
        if versioned:
            self._managed.major, self._managed.flags = major, flags
        self._managed.deleter = ctypes.cast(self._deleter, ctypes.c_void_p)
        tensor = self._managed.dl_tensor
        tensor.data = ctypes.addressof(self.values) if data is None else data
        tensor.device_type, tensor.ndim, tensor.byte_offset = device, len(shape), byte_offset
        tensor.code, tensor.bits, tensor.lanes = code, bits, lanes
        tensor.shape = ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64))
        if self._strides is not None:
            tensor.strides = ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64))
        destructor = ctypes.cast(self._destructor, ctypes.c_void_p)
        self.capsule = _python.PyCapsule_New(ctypes.addressof(self._managed), self._name, destructor)
        _kept.append(self)  # whoever consumes the capsule may call the deleter at any later time

    def _count(self, _managed: int) -> None:
        self.deletions += 1

    def _drop(self, capsule: int) -> None:
        if _is_valid(capsule, self._name):
            self._count(capsule)


class Producer:
    """Offers one capsule through ``__dlpack__``."""

    def __init__(self, made: CountingCapsule, device: int = CPU) -> None:
        self._made = made
        self._device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self._device, 0)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        capsule = self._made.capsule
        del self._made.capsule
        return capsule


@dataclass(frozen=True)
class Offer:
    """What a capsule says, read as a consumer in C reads it; version and flags are None in the old form."""

    version: tuple[int, int] | None
    flags: int | None
    data: int
    device: tuple[int, int]
    dtype: tuple[int, int, int]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    byte_offset: int


def read_offer(capsule: Any) -> Offer:
    """Read a capsule without consuming it."""
    name = _python.PyCapsule_GetName(capsule)
    address = _python.PyCapsule_GetPointer(capsule, name)
    managed: Any = (_ManagedVersioned if name == b"dltensor_versioned" else _Managed).from_address(address)
    tensor = managed.dl_tensor
    versioned = isinstance(managed, _ManagedVersioned)
    return Offer(
        version=(managed.major, managed.minor) if versioned else None,
        flags=managed.flags if versioned else None,
        data=tensor.data or 0,
        device=(tensor.device_type, tensor.device_id),
        dtype=(tensor.code, tensor.bits, tensor.lanes),
        shape=tuple(tensor.shape[: tensor.ndim]),
        strides=tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None,
        byte_offset=tensor.byte_offset,
    )


def deleter_and_tensor(capsule: Any) -> tuple[int, int]:
    """Take the tensor out of a capsule as a consumer in C does: (address of its deleter, address of the tensor)."""
    name = _python.PyCapsule_GetName(capsule)
    address = _python.PyCapsule_GetPointer(capsule, name)
    kind = _ManagedVersioned if name == b"dltensor_versioned" else _Managed
    forget(capsule)
    return kind.from_address(address).deleter, address


def forget(capsule: Any) -> None:
    """Mark a capsule as consumed."""
    used = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}
    name = used[_python.PyCapsule_GetName(capsule)]
    _names.append(name)  # a capsule borrows its name
    _python.PyCapsule_SetName(capsule, name)
