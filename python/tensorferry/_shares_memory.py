"""``shares_memory``: do two tensors reach a common byte?"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tensorferry import _torch, _torch_describe
from tensorferry._dtypes import NATIVE
from tensorferry._errors import LayoutError
from tensorferry._native import core
from tensorferry._nest import is_nest
from tensorferry._take import take

__all__ = ["shares_memory"]

# Candidate solutions that NumPy may try (see numpy.shares_memory); some hundredths of a second.
_MAX_WORK = 1_000_000


class _Region(NamedTuple):
    """The bytes that a tensor reaches: from `address`, along `strides` in bytes, `itemsize` bytes at each place."""

    space: str  # where addresses mean the same thing
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    owner: object  # keeps the memory alive while it is looked at

    @property
    def is_empty(self) -> bool:
        return self.address == 0 or self.itemsize == 0 or math.prod(self.shape) == 0

    def bounds(self) -> tuple[int, int]:
        reaches = [(extent - 1) * step for extent, step in zip(self.shape, self.strides, strict=True)]
        low = sum(reach for reach in reaches if reach < 0)
        high = sum(reach for reach in reaches if reach > 0)
        return self.address + low, self.address + high + self.itemsize

    def as_bytes(self) -> np.ndarray[Any, Any]:
        """Return the region as an array of bytes, never to be read; axes that reach no further byte are left out."""
        axes = [(n, step) for n, step in zip(self.shape, self.strides, strict=True) if n > 1 and step != 0]
        described = _Described(
            {
                "version": 3,
                "typestr": "|u1",
                "data": (self.address, True),
                "shape": (*(n for n, _ in axes), self.itemsize),
                "strides": (*(step for _, step in axes), 1),
            }
        )
        return np.asarray(described)


class _Described:
    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


def shares_memory(a: Any, b: Any, /) -> bool:
    """See :func:`tensorferry.shares_memory`."""
    first, second = _region(a), _region(b)
    if first.is_empty or second.is_empty or first.space != second.space:
        return False
    (low_a, high_a), (low_b, high_b) = first.bounds(), second.bounds()
    if high_a <= low_b or high_b <= low_a:
        return False
    if first.space != "cpu":
        return True
    try:
        return bool(np.shares_memory(first.as_bytes(), second.as_bytes(), max_work=_MAX_WORK))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _region(x: Any) -> _Region:
    if is_nest(x):
        raise LayoutError(
            f"a {type(x).__name__}",
            "it is a nest, and which of its leaves is meant is not said",
            "compare its leaves one by one: any(shares_memory(leaf, other) for leaf in ...)",
        )
    if _torch.is_tensor(x):
        return _region_of_tensor(x)
    if isinstance(x, np.ndarray):
        return _Region("cpu", _address(x), x.shape, x.strides, x.itemsize, x)
    if hasattr(type(x), "__cuda_array_interface__"):
        return _region_of_cuda_array(x.__cuda_array_interface__)
    source = take(x).source
    if source is None:  # a buffer of a dtype that only NumPy has
        array = np.asarray(x)
        return _Region("cpu", _address(array), array.shape, array.strides, array.itemsize, array)
    return _of_source("cpu", source)


def _address(x: np.ndarray[Any, Any]) -> int:
    return int(x.__array_interface__["data"][0])


def _of_source(space: str, source: core.Source, address: int | None = None) -> _Region:
    if source.no_memory:
        address = 0
    itemsize = int(NATIVE[source.dtype]["itemsize"])
    start = source.address if address is None else address
    return _Region(space, start, tuple(source.shape), tuple(source.strides), itemsize, source)


def _region_of_tensor(x: Any) -> _Region:
    if _torch_describe.exports_itself(x):
        source = take(x).source
        assert source is not None  # a producer is read natively or refused
        return _of_source("cpu", source)
    source, address = _torch_describe.readable_memory(x)
    device = _torch_describe.metadata(x)[2]
    # CUDA gives every device and the host one range of addresses (unified addressing).
    return _of_source("cuda" if device.startswith("cuda") else device, source, address or 0)


def _region_of_cuda_array(interface: dict[str, Any]) -> _Region:
    """See https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html."""
    shape = tuple(interface["shape"])
    itemsize = np.dtype(interface["typestr"]).itemsize
    strides = interface.get("strides")
    if strides is None:
        strides = tuple(itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return _Region("cuda", int(interface["data"][0]), shape, tuple(strides), itemsize, None)
