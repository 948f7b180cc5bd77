"""What is known about an array, and what keeps its memory alive."""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np

from tensorferry._convert.take import refuse_array, take_array
from tensorferry._inspect.description import Description
from tensorferry._inspect.layout_facts import of_array
from tensorferry._native import core

__all__ = ["describe_array"]

_BYTE_ORDERS = {"=": sys.byteorder, "<": "little", ">": "big"}


def describe_array(x: np.ndarray[Any, Any]) -> Description:
    """Describe any array, also of a dtype that only NumPy has."""
    source = take_array(x).source
    note = ""
    if isinstance(x, np.ma.MaskedArray):
        note = "masked: the layout is that of the data; fill it before converting: x.filled(value)"
    elif source is None:
        note = f"no tensor can hold it: {refuse_array(x, 'a tensor')}"
    return Description(
        kind="NumPy array",
        class_name=type(x).__name__,
        dtype=x.dtype.name if source is not None else str(x.dtype),
        shape=x.shape,
        device="cpu",
        byte_order=_BYTE_ORDERS.get(x.dtype.byteorder),
        aligned=bool(x.flags.aligned),
        writable=bool(x.flags.writeable),
        is_view=x.base is not None,
        base=_owner_of(x),
        note=note,
        **of_array(x, source),
    )


def _owner_of(x: np.ndarray[Any, Any]) -> str:
    """What keeps an array's memory alive, in words."""
    root = x
    while isinstance(root.base, np.ndarray):
        root = root.base
    owner = root.base
    if owner is None:
        return "owns its memory" if root is x else f"view of a {root.shape} {root.dtype} array"
    while isinstance(owner, memoryview):
        owner = owner.obj
    if isinstance(owner, mmap.mmap):
        return f"memory map of {getattr(root, 'filename', None) or 'a file'}"
    if isinstance(owner, core.ReadOnlyView):
        return "view of a torch tensor's storage, made by tensorferry"
    if type(owner).__name__ == "PyCapsule" and '"tensorferry.' in repr(owner):
        return "memory that tensorferry has lent"
    return f"memory of a {type(owner).__name__} object"
