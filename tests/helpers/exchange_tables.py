"""Producers that offer themselves through the DLPack C exchange table, written in ctypes instead of C."""

from __future__ import annotations

import ctypes
from typing import Any

from helpers.counting_capsules import CountingCapsule, deleter_and_tensor

__all__ = ["ATTRIBUTE", "ExchangeTable"]

ATTRIBUTE = "__dlpack_c_exchange_api__"

_FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))


class _Table(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocator", ctypes.c_void_p),
        ("managed_from_object", ctypes.c_void_p),
        ("managed_to_object", ctypes.c_void_p),
        ("tensor_from_object", ctypes.c_void_p),
        ("current_work_stream", ctypes.c_void_p),
    )


_kept: list[Any] = []
_new_capsule = ctypes.pythonapi.PyCapsule_New


class ExchangeTable:
    """A table whose one entry gives out what the object's ``made`` attribute, a :class:`CountingCapsule`, manages.

    Where ``made`` is None the entry fails without setting an error.

    Parameters
    ----------
    major : int
        The version that the table claims.
    previous : ExchangeTable, optional
        The table of an older version behind it.
    name : bytes
        Of the capsule; consumers know one name only.
    raises : bool
        Let the entry raise what the object's ``fileno()`` raises: a C function of Python's own does so.
    empty : bool
        Leave the entry that gives tensors out a null pointer.

    Attributes
    ----------
    capsule : capsule
        To be the class attribute ``__dlpack_c_exchange_api__``.
    calls : int
        How often the entry was called.
    """

    def __init__(
        self,
        *,
        major: int = 1,
        previous: ExchangeTable | None = None,
        name: bytes = b"dlpack_exchange_api",
        raises: bool = False,
        empty: bool = False,
    ) -> None:
        self.calls = 0
        self._function = _FromObject(self._give)
        self._name = name
        function = ctypes.pythonapi.PyObject_AsFileDescriptor if raises else self._function
        entry = None if empty else ctypes.cast(function, ctypes.c_void_p)
        before = None if previous is None else ctypes.addressof(previous._table)
        self._table = _Table(major=major, minor=3, previous=before, managed_from_object=entry)
        self.capsule = _new_capsule(ctypes.addressof(self._table), name, None)
        _kept.append(self)  # consumers keep the table as long as the process lives

    def _give(self, producer: Any, result: Any) -> int:
        self.calls += 1
        made: CountingCapsule | None = producer.made
        if made is None:
            return -1
        _, result[0] = deleter_and_tensor(made.capsule)
        return 0
