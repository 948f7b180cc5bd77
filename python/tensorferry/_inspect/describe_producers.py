"""What is known about objects that only speak a protocol: DLPack, buffers, arrays on demand."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorferry._convert.take import is_array_like, take
from tensorferry._dtypes import NATIVE
from tensorferry._errors import FerryError
from tensorferry._inspect.describe_array import describe_array
from tensorferry._inspect.description import Description
from tensorferry._inspect.layout_facts import of_source

if TYPE_CHECKING:
    from tensorferry._device.on_device import OnDevice

__all__ = ["describe_convertible", "describe_producer", "dlpack_device"]

# DLPack's device types (dlpack.h, DLDeviceType); pinned host memory is host memory.
_DEVICES = {
    1: "cpu",
    2: "cuda",
    3: "cpu",
    4: "opencl",
    7: "vulkan",
    8: "metal",
    9: "vpi",
    10: "rocm",
    11: "cpu",
    13: "cuda_managed",
    14: "oneapi",
    15: "webgpu",
    16: "hexagon",
}
_PINNED_DEVICES = (3, 11)


def dlpack_device(x: Any) -> tuple[str, bool]:
    """Return the device that a producer or array says it is on, such as "cuda:0", and whether its memory is pinned."""
    if not hasattr(type(x), "__dlpack_device__"):
        return "cuda" if hasattr(type(x), "__cuda_array_interface__") else "cpu", False
    kind, index = (int(part) for part in x.__dlpack_device__())
    name = _DEVICES.get(kind, f"dlpack{kind}")
    return name if name == "cpu" else f"{name}:{index}", kind in _PINNED_DEVICES


def describe_producer(x: Any) -> Description:
    """Describe a DLPack producer by what it exports, or as far as it tells when it cannot be read."""
    kind, class_name = "DLPack producer", type(x).__name__
    try:
        device, pinned = dlpack_device(x)
    except Exception:  # whatever foreign code raises: the description says the rest
        device, pinned = "unknown", False
    try:
        taken = take(x, move=False)
    except FerryError as error:
        shape = getattr(x, "shape", None)
        known = isinstance(shape, tuple) and all(isinstance(extent, int) for extent in shape)
        dtype = getattr(x, "dtype", None)
        return Description(
            kind,
            class_name,
            None if dtype is None else str(dtype),
            tuple(shape) if known and shape is not None else None,
            device,
            pinned=pinned,
            note=str(error),
        )
    if taken.on_device is not None:
        return _of_device(kind, class_name, taken.on_device)
    source = taken.source
    assert source is not None  # a producer is read natively or refused
    return Description(
        kind,
        class_name,
        source.dtype,
        source.shape,
        device,
        byte_order=sys.byteorder if NATIVE[source.dtype]["itemsize"] > 1 else None,
        aligned=source.layout_facts()["aligned"],
        pinned=pinned,
        writable=not source.read_only,
        base=f"memory of a {class_name}, exported through DLPack",
        **of_source(source),
    )


def _of_device(kind: str, class_name: str, on_device: OnDevice) -> Description:
    """Describe what lies on a CUDA device; nothing is asked of the device."""
    lying = on_device.lying
    itemsize = int(NATIVE[lying.dtype]["itemsize"])
    return Description(
        kind,
        class_name,
        lying.dtype,
        lying.shape,
        on_device.name,
        byte_order=sys.byteorder if itemsize > 1 else None,
        aligned=all(step % itemsize == 0 for step in (on_device.address, *lying.strides)),
        writable=not on_device.read_only,
        base=f"memory of a {class_name}",
        **of_source(lying, on_device.address),
    )


def describe_convertible(x: Any) -> Description:
    """Describe what shows its memory as a buffer, or gives an array on demand."""
    values: dict[str, Any] = {"class_name": type(x).__name__, "is_view": None}
    if hasattr(type(x), "__cuda_array_interface__"):
        interface = x.__cuda_array_interface__
        dtype = np.dtype(interface["typestr"]).name
        try:
            on_device = take(x, move=False).on_device
        except FerryError as error:
            on_device, note = None, str(error)
        if on_device is not None:
            return _of_device("array protocol", values["class_name"], on_device)
        return Description("array protocol", values["class_name"], dtype, tuple(interface["shape"]), "cuda", note=note)
    if isinstance(x, np.generic):
        values |= {"kind": "NumPy scalar", "addresses": None, "writable": False, "base": "holds its own value"}
        seen = describe_array(np.asarray(x))
    elif is_array_like(x) and not _is_buffer(x):
        seen = describe_array(np.asarray(x))
        values |= {"kind": "array protocol"}
        if not hasattr(type(x), "__array_interface__"):
            values |= {"note": "the memory is that of the array which __array__ gave, perhaps a new one"}
    else:
        seen = describe_array(np.asarray(memoryview(x)))
        values |= {"kind": "buffer", "base": f"memory of a {values['class_name']} object"}
    return Description(**{**seen.__dict__, **values})


def _is_buffer(x: Any) -> bool:
    try:
        memoryview(x).release()
    except TypeError:
        return False
    return True
