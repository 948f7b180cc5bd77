"""Takes a tensor out of any Python object: one description, whoever made it."""

from __future__ import annotations

import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorferry import _torch
from tensorferry._errors import DeviceError, DTypeError, FerryError, LayoutError
from tensorferry._native import core

if TYPE_CHECKING:
    from tensorferry._device.on_device import OnDevice

__all__ = ["Taken", "is_array_like", "is_producer", "refuse_array", "take", "take_array"]

_BUFFERS = (bytearray, memoryview, array.array)
_PROTOCOLS = ("__dlpack__", "__array_interface__", "__cuda_array_interface__", "__array__")

# DLPack device types whose memory the host can read: CPU, pinned CUDA host, pinned ROCm host.
_HOST_DEVICES = (1, 3, 11)
_CUDA = 2


@dataclass
class Taken:
    """A tensor that was read from some object.

    Attributes
    ----------
    source : _core.Source or None
        The native description; None for arrays of a dtype that only NumPy has.
    array : numpy.ndarray or None
        The array itself when one was given.
    tensor : _torch.TensorSource or None
        What is known besides when a torch tensor was given.
    on_device : OnDevice or None
        How the driver gets at the values, while the source is only described.
    moved_from : str or None
        The device that the values have to be copied from, or were.
    """

    source: core.Source | None
    array: np.ndarray[Any, Any] | None = None
    tensor: _torch.TensorSource | None = None
    on_device: OnDevice | None = None
    moved_from: str | None = None

    @property
    def is_described(self) -> bool:
        """Is there only a description, because reading would copy and was not asked for?"""
        return self.on_device is not None or (self.tensor is not None and self.tensor.is_described)


def is_array_like(x: object) -> bool:
    """Can `x` become an array? Numbers, text and other plain values cannot; in a nest they pass through."""
    if isinstance(x, np.generic):
        return False
    if isinstance(x, np.ndarray) or _torch.is_tensor(x) or isinstance(x, _BUFFERS):
        return True
    if isinstance(x, type):
        return False
    return any(hasattr(type(x), name) for name in _PROTOCOLS) or core.reads_through_exchange_table(type(x))


def is_producer(x: object) -> bool:
    """Can `x` be read through DLPack, by the method or by the C exchange table of its type?"""
    return hasattr(type(x), "__dlpack__") or core.reads_through_exchange_table(type(x))


def take(x: Any, *, move: bool = True, read: bool = True) -> Taken:
    """Read any tensor, array, DLPack producer or buffer; `move` and `read` as for tensors in ``_torch.take``.

    Raises
    ------
    FerryError
        Naming what kind of object it is, why it cannot be read and what to write instead.
    """
    if isinstance(x, np.ndarray):
        return take_array(x)
    if _torch.is_tensor(x):
        return _take_tensor(x, move, read)
    if core.reads_through_exchange_table(type(x)):
        return _take_exchanged(x, move)
    if hasattr(type(x), "__dlpack__"):
        return _take_producer(x, move)
    if hasattr(type(x), "__cuda_array_interface__"):
        return _arriving(_on_device(x, "ArrayOnDevice", move), move)
    if isinstance(x, (np.generic, bytes, *_BUFFERS)) or is_array_like(x):
        shared = np.asarray(memoryview(x) if isinstance(x, (bytes, *_BUFFERS)) else x)
        taken = take_array(shared)
        if taken.source is not None:
            taken.array = None  # not the caller's object: what is handed out is a view of it
        return taken
    raise DTypeError(
        f"a {type(x).__name__}",
        "it is no tensor, no array and no nest of them",
        "pass numbers as numpy.asarray(x), or implement __dlpack__ on the class",
    )


def take_array(x: np.ndarray[Any, Any]) -> Taken:
    """Read an array; those of a dtype only NumPy has get no native description."""
    try:
        return Taken(core.Source.from_array(x), array=x)
    except DTypeError:
        return Taken(None, array=x)


def _take_tensor(x: Any, move: bool, read: bool) -> Taken:
    if _torch.exports_itself(x):
        return _take_producer(x, move)
    taken = _torch.take(x, move=move, read=read)
    return Taken(taken.source, tensor=taken, on_device=taken.on_device, moved_from=taken.moved_from)


def _take_exchanged(x: Any, move: bool) -> Taken:
    """Read a producer through the C exchange table of its type."""
    try:
        return Taken(core.Source.from_exchange(x))
    except DeviceError:
        if _device_type_of(x) not in (None, _CUDA):
            raise
        return _arriving(_on_device(x, "ProducerOnDevice", move, through_table=True), move)
    except FerryError:
        raise
    except Exception as error:
        raise _refused_by_producer(f"a {type(x).__name__} with a DLPack exchange table", error) from error


def _device_type_of(x: Any) -> int | None:
    return int(x.__dlpack_device__()[0]) if hasattr(type(x), "__dlpack_device__") else None


def _take_producer(x: Any, move: bool) -> Taken:
    """Read a producer through ``__dlpack__``, asking for the newest form first and for less when it is refused."""
    given = f"a {type(x).__name__} with __dlpack__"
    try:
        device = _device_type_of(x) or 1
        capsule = _request_capsule(x) if device in _HOST_DEVICES else None
    except Exception as error:
        raise _refused_by_producer(given, error) from error
    if device == _CUDA:
        return _arriving(_on_device(x, "ProducerOnDevice", move, through_table=False), move)
    if device not in _HOST_DEVICES:
        raise DeviceError(
            f"{given} on device type {device}",
            "its memory cannot be read from the host",
            "copy it to the host with its own library, or hand over a torch tensor",
        )
    return Taken(core.Source.from_capsule(capsule))


def _on_device(x: Any, kind: str, move: bool, **arguments: Any) -> OnDevice:
    """Describe what another library has on a CUDA device."""
    from tensorferry._device import driven
    from tensorferry._device.array_on_device import ArrayOnDevice
    from tensorferry._device.on_device import ProducerOnDevice

    make: Any = ArrayOnDevice if kind == "ArrayOnDevice" else ProducerOnDevice
    given = f"a {type(x).__name__} on a CUDA device"
    driven.require_driver(given, initialise=move)
    try:
        described: OnDevice = make(x, **arguments)
    except FerryError:
        raise
    except Exception as error:
        raise _refused_by_producer(given, error) from error
    return described


def _arriving(on_device: OnDevice, move: bool) -> Taken:
    if not move:
        return Taken(on_device.described(host_waits=True), on_device=on_device, moved_from=on_device.name)
    from tensorferry._device.reception import received

    return Taken(received(on_device), moved_from=on_device.name)


def _refused_by_producer(given: str, error: Exception) -> LayoutError:
    return LayoutError(
        given,
        f"it refuses to export itself ({str(error) or type(error).__name__})",
        "do what its own message says, then convert again",
    )


def _request_capsule(x: Any) -> Any:
    for arguments in ({"max_version": (1, 1)}, {"stream": None}):
        try:
            return x.__dlpack__(**arguments)
        except TypeError:
            continue  # older producers know fewer arguments
    return x.__dlpack__()


def refuse_array(x: np.ndarray[Any, Any], what: str) -> DTypeError:
    """Return the error for an array that no tensor can hold; it names the first offending element of object arrays."""
    given = f"a {x.shape} {x.dtype} array"
    kind = x.dtype.kind
    if kind == "M" or kind == "m":
        return DTypeError(
            given,
            f"{what} has no dates, and the unit ({np.datetime_data(x.dtype)[0]}) would be lost",
            'pass x.view("i8"), or dtype="int64" to accept counts of that unit (NaT is the smallest int64)',
        )
    if kind == "O":
        index, element = next(np.ndenumerate(x), ((), None))
        return DTypeError(
            given,
            f"its elements are Python objects; the one at {index} is a {type(element).__name__}"
            + (f" of shape {np.shape(element)}" if isinstance(element, np.ndarray) else ""),
            "make them equal in shape and stack them (ferry.stack), pad them, or convert each one",
        )
    if kind in "US" or kind == "T":
        return DTypeError(given, f"{what} has no text", "encode it as integers first")
    if kind == "V" and x.dtype.names:
        return DTypeError(
            given, f"{what} has no records", f"convert its fields one by one: x[{x.dtype.names[0]!r}] and so on"
        )
    if kind in "fc":
        return DTypeError(
            given, f"{what} has no extended precision", 'pass dtype="float64" (or "complex128") to accept the rounding'
        )
    return DTypeError(given, f"{what} has no such dtype", "convert it to a numeric dtype with x.astype first")
