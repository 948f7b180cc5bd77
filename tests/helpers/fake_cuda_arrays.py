"""Arrays on a simulated device that speak DLPack as a framework's tensors do."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from helpers.counting_capsules import CUDA, CountingCapsule
from helpers.exchange_tables import ExchangeTable
from helpers.fake_cuda import LEGACY, fake_cuda

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ALL_KINDS", "DeviceArray", "InterfaceArray", "OldCapsuleArray", "TableArray", "on_device"]

_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
# Of ml_dtypes, by DLPack's codes.
_SMALL_FLOATS = {
    "bfloat16": 4,
    "float8_e3m4": 7,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 9,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
}


def _code_of(dtype: np.dtype[Any]) -> int:
    return _SMALL_FLOATS[dtype.name] if dtype.name in _SMALL_FLOATS else _KINDS[dtype.kind]


class _Memory:
    """A piece of device memory, given back in the order of its stream when the last owner goes."""

    def __init__(self, nbytes: int, device: int, stream: int) -> None:
        self.address = fake_cuda().library.fake_alloc(nbytes, device)
        assert self.address != 0, "the simulated device has no memory left"
        self.device, self.stream = device, stream
        self._free = fake_cuda().library.fake_free  # at interpreter exit modules are gone

    def __del__(self) -> None:
        self._free(self.address, self.stream, self.device)


class _Capsule(CountingCapsule):
    """A capsule that holds device memory until its consumer lets go."""

    def __init__(self, memory: _Memory, array: _OnDevice, *, versioned: bool) -> None:
        super().__init__(
            array.shape,
            versioned=versioned,
            data=memory.address,
            strides=array.strides,
            device=CUDA,
            code=_code_of(array.dtype),
            bits=array.dtype.itemsize * 8,
            byte_offset=array.offset * array.dtype.itemsize,
            flags=array.flags if versioned else 0,
        )
        self._managed.dl_tensor.device_id = memory.device
        self.memory: _Memory | None = memory

    def _count(self, managed: int) -> None:
        super()._count(managed)
        self.memory = None


class _OnDevice:
    """An array in simulated device memory that speaks no protocol yet.

    Parameters
    ----------
    values : array-like
        Copied to the device at once, before any schedule has a say.
    dtype : dtype-like, optional
        Of the elements.
    device : int
        Ordinal.
    stream : int
        DLPack's number or the handle of the stream that the array's producer works in.

    Attributes
    ----------
    asked : list
        The ``stream`` of each ``__dlpack__`` call.
    capsules : list of CountingCapsule
        What was given out; ``deletions`` says whether it came back.
    flags : int
        Of versioned capsules; 1 is read-only.
    """

    def __init__(self, values: ArrayLike, dtype: DTypeLike = None, *, device: int = 0, stream: int = LEGACY) -> None:
        host = np.ascontiguousarray(values, dtype=dtype)
        self.memory = _Memory(host.nbytes, device, stream)
        self.shape: tuple[int, ...] = np.shape(values)
        self.strides: tuple[int, ...] = tuple(step // host.itemsize for step in host.reshape(self.shape).strides)
        self.dtype = host.dtype
        self.offset = 0
        self.flags = 0
        self.stream = stream
        self.asked: list[Any] = []
        self.capsules: list[CountingCapsule] = []
        if host.nbytes:
            fake_cuda().library.fake_poke(self.memory.address, host.ctypes.data, host.nbytes)

    @property
    def device(self) -> int:
        """Ordinal of the device."""
        return self.memory.device

    @property
    def pointer(self) -> int:
        """Device address of the first element."""
        return int(self.memory.address + self.offset * self.dtype.itemsize)

    def view(self, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Self:
        """Another layout over the same memory, in elements; of the same type and stream."""
        other = object.__new__(type(self))
        other.memory, other.dtype, other.stream, other.flags = self.memory, self.dtype, self.stream, self.flags
        other.shape, other.strides, other.offset = tuple(shape), tuple(strides), self.offset + offset
        other.asked, other.capsules = [], []
        return other

    def write_later(self, values: ArrayLike, *, stream: int | None = None) -> None:
        """Enqueue a kernel that overwrites the contiguous array when its turn comes."""
        host = np.ascontiguousarray(np.broadcast_to(values, self.shape), dtype=self.dtype)
        at = self.stream if stream is None else stream
        code = fake_cuda().library.fake_write_later(self.pointer, host.ctypes.data, host.nbytes, at, self.device)
        assert code == 0, f"the producer's kernel was refused: {code}"

    def peek(self) -> NDArray[Any]:
        """The contiguous array's values as they are now, whatever is still to come."""
        out = np.empty(self.shape, self.dtype)
        if out.nbytes:
            code = fake_cuda().library.fake_peek(self.pointer, out.ctypes.data, out.nbytes)
            assert code == 0, f"the memory is gone: {code}"
        return out

    def capsule(self, *, versioned: bool) -> Any:
        """A capsule without any ordering."""
        made = _Capsule(self.memory, self, versioned=versioned)
        self.capsules.append(made)
        capsule = made.capsule
        del made.capsule
        return capsule

    def _let_wait(self, stream: int | None) -> None:
        """Let the consumer's stream wait for the producer's unless that is -1."""
        if stream == 0:
            raise ValueError("stream 0 is ambiguous for CUDA")
        self.asked.append(stream)
        consumer = LEGACY if stream is None else stream
        if consumer not in (-1, self.stream):
            code = fake_cuda().library.fake_order_after(consumer, self.stream, self.device)
            assert code == 0, f"the consumer's stream was refused: {code}"


class InterfaceArray(_OnDevice):
    """One that has ``__cuda_array_interface__`` and nothing else."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer if math.prod(self.shape) else 0, bool(self.flags & 1)),
            "strides": tuple(step * self.dtype.itemsize for step in self.strides),
            "version": 3,
            "stream": self.stream,
        }


class OldCapsuleArray(_OnDevice):
    """One of a library that only knows DLPack's first form: no version, no read-only mark."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CUDA, self.device)

    def __dlpack__(self, stream: int | None = None) -> Any:
        self._let_wait(stream)
        return self.capsule(versioned=False)


class DeviceArray(InterfaceArray):
    """One with capsules of both forms besides the interface."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CUDA, self.device)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Give out a capsule, and let the consumer's stream wait for the producer's unless that is -1."""
        if copy is True or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("this array is given out where it is, as it is")
        self._let_wait(stream)
        return self.capsule(versioned=max_version is not None and max_version[0] >= 1)


_WorkStream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
_table = ExchangeTable()


class TableArray(DeviceArray):
    """The same, offered through the C exchange table.

    Attributes
    ----------
    current_stream : int or None
        Of the class: the handle that the table gives as the current stream; None is NULL, as torch answers for its
        default stream.
    """

    __dlpack_c_exchange_api__ = _table.capsule
    current_stream: int | None = None

    @property
    def made(self) -> CountingCapsule:
        """A new capsule each time, for the table."""
        made = _Capsule(self.memory, self, versioned=True)
        self.capsules.append(made)
        return made


def _give_current_stream(_device_type: int, _device: int, result: Any) -> int:
    result[0] = TableArray.current_stream
    return 0


_current_stream = _WorkStream(_give_current_stream)
_table._table.current_work_stream = ctypes.cast(_current_stream, ctypes.c_void_p)

ALL_KINDS: dict[str, type[_OnDevice]] = {
    "exchange table": TableArray,
    "capsules": DeviceArray,
    "old capsules": OldCapsuleArray,
    "array interface": InterfaceArray,
}
_A = TypeVar("_A", bound=_OnDevice)


def on_device(
    kind: type[_A], base: NDArray[Any], view: NDArray[Any] | None = None, *, device: int = 0, stream: int = LEGACY
) -> _A:
    """Put the C-contiguous `base` on the device; the result lies in it as `view`, a view of `base`, does in the host's.

    Its values are there before any schedule has a say.
    """
    made = kind(base, device=device, stream=stream)
    if view is None:
        return made
    apart = view.__array_interface__["data"][0] - base.__array_interface__["data"][0] if view.size else 0
    return made.view(view.shape, [step // base.itemsize for step in view.strides], apart // base.itemsize)
