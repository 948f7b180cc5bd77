"""One tensor to be written: what it will be in the file, and how its bytes are got at, piece by piece."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert.options import ToNumpyOptions
from tensorferry._convert.prepare import Prepared, prepare
from tensorferry._convert.take import Taken, is_array_like, refuse_array, take
from tensorferry._dtypes import NATIVE
from tensorferry._errors import DTypeError
from tensorferry._io.slabs import Index, slabs
from tensorferry._native import core

__all__ = ["Readable", "as_dtype", "readable"]

_Array = np.ndarray[Any, Any]


@dataclass(eq=False, slots=True)
class Readable:
    """A tensor as it will be written: C-contiguous, in this machine's byte order, of one dtype.

    Attributes
    ----------
    dtype : numpy.dtype
        As written; of ml_dtypes where NumPy has no such type.
    shape : tuple of int
        As written; packed types are unpacked.
    memory : numpy.ndarray or None
        The bytes themselves, flat and read-only, where they lie in host memory as they will be written. It keeps that
        memory alive.
    how : str
        "in place", "packed", "converted", or "from cuda:0" and the like.
    identity : tuple
        Equal for tensors of the same values in the same memory.
    filler : Filler or None
        Fills a part of host memory, where there is no `memory`.
    stream : callable or None
        In their place: yields the bytes from front to back, once; each part stays until the next one is asked for.
    paired_shape : tuple of int, optional
        Where each byte holds two values of float4_e2m1fn: the shape of those.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    memory: _Array | None
    how: str
    identity: tuple[Any, ...]
    filler: _Filler | None = None
    stream: Callable[[], Iterator[_Array]] | None = None
    paired_shape: tuple[int, ...] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that it takes in a file."""
        if self.memory is not None:
            return self.memory.nbytes
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def is_on_device(self) -> bool:
        """Is it copied by a device while the host does something else?"""
        return self.filler is not None and self.filler.waits_later

    def pieces(self, limit_nbytes: int) -> Iterator[tuple[Index, tuple[int, ...]]]:
        """Yield index and shape of parts of at most that size, or of one element, in the order of the file."""
        return slabs(self.shape, self.dtype.itemsize, limit_nbytes)

    def fill(self, index: Index, out: _Array) -> Any:
        """Write the part at `index` to `out`; return a ``Transfer`` to wait for, or None when it is there already."""
        assert self.filler is not None
        return self.filler.fill(index, out)


@dataclass(frozen=True)
class _Filler:
    """Gets parts of a tensor that cannot be written from where it lies."""

    tensor: Any
    casting: str = "same_kind"
    waits_later: bool = False
    two_in_one: bool = False  # the last axis holds two values an element
    copied_on_read: bool = False

    def fill(self, index: Index, out: _Array) -> Any:
        if self.two_in_one:
            index = tuple(slice(part.start // 2, part.stop // 2) if isinstance(part, slice) else part for part in index)
        where = (*index, ...)
        sliced = hasattr(type(self.tensor), "__getitem__")
        if sliced or not index:
            part = self.tensor[where] if sliced else self.tensor
        else:
            part = np.asarray(_to_numpy(self.tensor))[where]
        if self.copied_on_read:
            part = part.clone()  # reads a snapshot without making torch copy all of it
        if self.waits_later:
            return _to_numpy_async(part, out=out, casting=self.casting)
        if isinstance(part, np.ndarray) and part.dtype.name not in NATIVE:
            kept = part.dtype.newbyteorder("=") == out.dtype
            np.copyto(out, part if kept else _to_numpy(part, dtype=out.dtype.name))
        else:
            _to_numpy(part, out=out, casting=self.casting)
        return None


def _to_numpy(x: Any, **options: Any) -> _Array:
    array: _Array = core.to_numpy(x, **options)
    return array


def _to_numpy_async(x: Any, **options: Any) -> Any:
    """``to_numpy_async``, loaded when a device needs it."""
    from tensorferry._convert.to_numpy_async import to_numpy_async

    known = {"out": None, "dtype": None, "casting": "same_kind", "order": "K"}
    return to_numpy_async(x, **{**known, "stream": None, "pinned": "auto", "snapshot": "auto", **options})


@functools.cache
def as_dtype(native: str) -> np.dtype[Any]:
    """Return the dtype of arrays by its name in our table."""
    dtype: np.dtype[Any] = core.empty_array(native, (0,)).dtype
    return dtype


def readable(x: Any, dtype: object = None, *, in_nest: bool = True) -> Readable:
    """Describe a tensor, array or number for writing; nothing is copied and no device is waited for.

    Parameters
    ----------
    x : tensor, array, DLPack producer or number
        Numbers become arrays without axes.
    dtype : dtype, mapping or None
        As for ``to_numpy``; `in_nest` restricts a plain one to floating and complex tensors.

    Raises
    ------
    FerryError
        For what no array can hold: quantised and sparse tensors, Python objects, text alone, masked arrays.
    """
    if dtype is None:
        plain = _plain(x)
        if plain is not None:
            return plain
    if isinstance(x, (bool, int, float, complex, np.generic)):
        x = np.asarray(x)
    if not is_array_like(x):
        raise DTypeError(
            f"a {type(x).__name__}",
            "only tensors, arrays and numbers are written",
            "leave it out, or pass it as text in metadata=",
        )
    if isinstance(x, np.ma.MaskedArray):
        raise DTypeError(f"a masked {x.shape} array", "a file would drop the mask", "fill it first: x.filled(value)")
    taken = take(x, move=False, read=False)
    if taken.array is not None:
        x = np.asarray(taken.array)
        if x.dtype.hasobject:
            raise refuse_array(x, "a file without pickles")
    options = ToNumpyOptions.parse(None, dtype, "same_kind", "C", None, None, "auto")
    if taken.source is None:
        return _of_array(x, prepare(take(np.empty(0, x.dtype)), options, in_nest=in_nest))
    prepared = prepare(taken, options, in_nest=in_nest)
    if prepared.decision is None:
        return _of_array(x, prepared)
    return _of_decision(x, prepared)


def _plain(x: Any) -> Readable | None:
    """Describe what is written from where it lies, which most tensors are; None for everything that is less plain."""
    found = core.plain_bytes(x)
    if found is None:
        return None
    memory, dtype, shape, identity = found
    return Readable(dtype, shape, memory, "in place", identity)


def _of_array(x: _Array, prepared: Prepared) -> Readable:
    """An array that is written as NumPy has it, or converted from what only NumPy has; that is decided without it."""
    identity = _identity_of_array(x)
    if prepared.decision is not None:
        dtype = as_dtype(prepared.decision.result_dtype)
        return Readable(dtype, x.shape, None, "converted", (*identity, dtype), _Filler(x))
    if x.flags.c_contiguous and x.dtype.isnative:
        return Readable(x.dtype, x.shape, _bytes_of(x), "in place", identity)
    return Readable(x.dtype.newbyteorder("="), x.shape, None, "packed", identity, _Filler(x))


def _of_decision(x: Any, prepared: Prepared) -> Readable:
    taken, decision = prepared.taken, prepared.decision
    assert decision is not None
    assert taken.source is not None
    dtype, shape = as_dtype(decision.result_dtype), tuple(decision.shape)
    identity = (*_identity(x, taken), dtype)
    if decision.path == "view" and not taken.is_described:
        array = _to_numpy(x, order="C", dtype=decision.result_dtype)
        if array.flags.c_contiguous:
            return Readable(dtype, shape, _bytes_of(array), "in place", identity)
    filler = _Filler(
        _sliceable(x, taken),
        waits_later=taken.on_device is not None,
        two_in_one=taken.source.dtype == "float4_e2m1fn_x2",
        copied_on_read=taken.tensor is not None and taken.tensor.copied_on_read,
    )
    changed = decision.value_dtype != taken.source.dtype
    how = f"from {taken.moved_from}" if taken.moved_from else "converted" if changed else "packed"
    return Readable(dtype, shape, None, how, identity, filler)


def _sliceable(x: Any, taken: Taken) -> Any:
    """Return what parts are taken of: a plain tensor, a plain array, or a producer that knows slices itself."""
    if taken.tensor is not None:
        return _torch.alias(x)
    if taken.array is not None:
        return np.asarray(taken.array)
    if taken.on_device is not None or taken.moved_from is not None:
        return x
    return _to_numpy(x)


class _Same:
    """Equal to itself and to others of the same object, which it keeps alive."""

    def __init__(self, x: Any) -> None:
        self._x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._x is self._x

    def __hash__(self) -> int:
        return id(self._x)


def _bytes_of(array: _Array) -> _Array:
    flat: _Array = array.reshape(-1).view(np.uint8) if array.size and array.dtype.itemsize else np.empty(0, np.uint8)
    flat.flags.writeable = False  # a view of ours; the caller's array stays as it is
    return flat


def _identity_of_array(x: _Array) -> tuple[Any, ...]:
    return ("cpu", x.__array_interface__["data"][0], x.shape, x.strides, x.dtype)


def _identity(x: Any, taken: Taken) -> tuple[Any, ...]:
    source = taken.source
    assert source is not None
    marks = (source.dtype, source.conjugated, source.negated, source.byte_swapped)
    if taken.is_described:
        if taken.tensor is None or taken.tensor.copied_on_read:
            return ("object", _Same(x), *marks)
        alias = taken.tensor.alias
        return (taken.moved_from, alias.data_ptr(), tuple(alias.shape), tuple(alias.stride()), *marks)
    if source.no_memory:
        return ("object", _Same(x), *marks)
    return ("cpu", source.address, tuple(source.shape), tuple(source.strides), *marks)
