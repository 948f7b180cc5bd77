"""The bytes that a tensor reaches, and whether two tensors reach a common one."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tensorferry._dtypes import NATIVE
from tensorferry._native import core

__all__ = ["Region", "meet", "region_of_source"]


class Region(NamedTuple):
    """The bytes that a tensor reaches: from `address`, along `strides` in bytes, `itemsize` bytes at each place."""

    space: str  # where addresses mean the same thing
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    owner: object  # keeps the memory alive while it is looked at

    @property
    def is_empty(self) -> bool:
        """Is there no byte to reach?"""
        return self.address == 0 or self.itemsize == 0 or math.prod(self.shape) == 0

    def bounds(self) -> tuple[int, int]:
        """Return the addresses of the first byte and past the last."""
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


def region_of_source(source: core.Source, *, space: str = "cpu", address: int | None = None) -> Region:
    """Return the region of a native source; `address` is where its first element lies, when it does not know."""
    if source.no_memory:
        address = 0
    itemsize = int(NATIVE[source.dtype]["itemsize"])
    start = source.address if address is None else address
    return Region(space, start, tuple(source.shape), tuple(source.strides), itemsize, source)


def meet(a: Region, b: Region, *, max_work: int) -> bool:
    """Is some byte in both regions? True where `max_work` candidates (see ``numpy.shares_memory``) do not tell."""
    if a.is_empty or b.is_empty or a.space != b.space:
        return False
    (low_a, high_a), (low_b, high_b) = a.bounds(), b.bounds()
    if high_a <= low_b or high_b <= low_a:
        return False
    if a.space != "cpu":
        return True
    try:
        return bool(np.shares_memory(a.as_bytes(), b.as_bytes(), max_work=max_work))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
