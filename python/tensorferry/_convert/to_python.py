"""Tensors as Python numbers and lists."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorferry._convert.take import is_array_like, refuse_array
from tensorferry._dtypes import NATIVE
from tensorferry._errors import DTypeError, FerryError
from tensorferry._native import core
from tensorferry._nest import Trail, cycle_error, label, name_leaf, open_node

if TYPE_CHECKING:
    import torch

__all__ = ["to_python"]


# There is no dtype= to consent with here.
_REMEDIES = {
    "M": 'take x.view("i8") for counts of that unit, or x.astype(str) for text',
    "m": 'take x.view("i8") for counts of that unit',
    "f": 'round it first: x.astype("float64")',
    "c": 'round it first: x.astype("complex128")',
}


def to_python(x: Any, /) -> Any:
    """See :func:`tensorferry.to_python`."""
    return _Unwrapping().unwrap(x)


class _Unwrapping:
    """One walk; the containers between the root and here are noted, so that a cycle is found."""

    def __init__(self) -> None:
        self._open_ids: set[int] = set()
        self._tensor = getattr(sys.modules.get("torch"), "Tensor", None)

    def unwrap(self, node: Any, trail: Trail = ()) -> Any:
        if node is None or isinstance(node, (str, bytes, int, float)):
            return node.item() if isinstance(node, np.generic) else node
        opened = open_node(node)
        if opened is None:
            return _unwrap_leaf(node, trail)
        if id(node) in self._open_ids:
            raise cycle_error()
        self._open_ids.add(id(node))
        # Plain tensors, the commonest leaves of all, are not asked what else they might be.
        children = [
            _unwrap_tensor(child, trail, node, i)
            if type(child) is self._tensor
            else self.unwrap(child, (*trail, (node, i)))
            for i, child in enumerate(opened[0])
        ]
        self._open_ids.discard(id(node))
        if isinstance(node, Mapping):
            keys = (key.item() if isinstance(key, np.generic) else key for key in node)  # json.dumps takes no other
            return dict(zip(keys, children, strict=True))
        if dataclasses.is_dataclass(node):
            return {label(node, i).removeprefix("."): child for i, child in enumerate(children)}
        return children


def _unwrap_tensor(tensor: torch.Tensor, trail: Trail, container: Any, position: int) -> Any:
    try:
        array = core.to_numpy(tensor) if _is_native_dtype(tensor.dtype) else core.to_numpy(tensor, dtype="numpy")
    except FerryError as error:
        name_leaf(error, (*trail, (container, position)))
        raise
    return array.tolist()


def _unwrap_leaf(leaf: Any, trail: Trail) -> Any:
    if isinstance(leaf, (tuple, range)):  # torch.Size is no nest elsewhere
        return list(leaf)
    if not (is_array_like(leaf) or isinstance(leaf, np.generic)):
        return leaf
    try:
        array = core.to_numpy(leaf) if _is_native(leaf) else core.to_numpy(leaf, dtype="numpy")
        return _unwrap_array(array)
    except FerryError as error:
        name_leaf(error, trail)
        raise


def _is_native(leaf: Any) -> bool:
    """Is the dtype NumPy's own, so that the short way gives numbers at once?"""
    return _is_native_dtype(getattr(leaf, "dtype", ""))


@functools.cache
def _is_native_dtype(dtype: Any) -> bool:
    name = str(dtype).removeprefix("torch.")
    return name in NATIVE and bool(NATIVE[name]["numpy_native"])


def _unwrap_array(array: np.ndarray[Any, Any]) -> Any:
    if isinstance(array, np.ma.MaskedArray):
        raise DTypeError(
            f"a masked {array.shape} {array.dtype} array", "a list has no mask", "fill it first: x.filled(value)"
        )
    refusal = None
    if array.dtype.kind in "mMOV":
        refusal = refuse_array(array, "JSON")
    if array.dtype.kind in "fc" and array.dtype.itemsize * (2 if array.dtype.kind == "f" else 1) > 16:
        refusal = refuse_array(array, "a Python float")
    if refusal is not None:
        refusal.instead = _REMEDIES.get(array.dtype.kind, refusal.instead)
        raise refusal
    return array.tolist()
