"""Tensors as Python numbers and lists."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert.take import is_array_like, refuse_array
from tensorferry._dtypes import NATIVE
from tensorferry._errors import DTypeError, FerryError
from tensorferry._native import core
from tensorferry._nest import Trail, cycle_error, label, name_leaf, open_node

__all__ = ["to_python"]

_CUDA = 2  # DLPack's device type

# There is no dtype= to consent with here.
_REMEDIES = {
    "M": 'take x.view("i8") for counts of that unit, or x.astype(str) for text',
    "m": 'take x.view("i8") for counts of that unit',
    "f": 'round it first: x.astype("float64")',
    "c": 'round it first: x.astype("complex128")',
}


def to_python(x: Any, /) -> Any:
    """See :func:`tensorferry.to_python`."""
    return _Unwrapping(x).unwrap(x)


class _Unwrapping:
    """One walk; the containers between the root and here are noted, so that a cycle is found."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._open_ids: set[int] = set()
        self._tensor = getattr(sys.modules.get("torch"), "Tensor", None)
        self._arrived: dict[int, tuple[Any, np.ndarray[Any, Any]]] | None = None

    def unwrap(self, node: Any, trail: Trail = ()) -> Any:
        if node is None or isinstance(node, (str, bytes, int, float)):
            return node.item() if isinstance(node, np.generic) else node
        opened = open_node(node)
        if opened is None:
            return self._unwrap_leaf(node, trail)
        if id(node) in self._open_ids:
            raise cycle_error()
        self._open_ids.add(id(node))
        # Plain tensors, the commonest leaves of all, are not asked what else they might be.
        children = [
            (self._unwrap_tensor(child, trail, node, i) if (number := core.python_number(child)) is None else number)
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

    def _unwrap_tensor(self, tensor: Any, trail: Trail, container: Any, position: int) -> Any:
        try:
            array = self._array_of(tensor) if tensor.is_cuda else _array(tensor)
        except FerryError as error:
            name_leaf(error, (*trail, (container, position)))
            raise
        return array.tolist()

    def _unwrap_leaf(self, leaf: Any, trail: Trail) -> Any:
        if isinstance(leaf, (tuple, range)):  # torch.Size is no nest elsewhere
            return list(leaf)
        if not (is_array_like(leaf) or isinstance(leaf, np.generic)):
            return leaf
        try:
            return _unwrap_array(self._array_of(leaf) if _is_on_device(leaf) else _array(leaf))
        except FerryError as error:
            name_leaf(error, trail)
            raise

    def _array_of(self, x: Any) -> np.ndarray[Any, Any]:
        """Bring everything in the nest from its devices when the first is met, and wait once."""
        if self._arrived is None:
            self._arrived = {}
            found = _on_devices(self._root, self._tensor)
            with suppress(FerryError):  # whose it is is told when that one is met
                arrays = core.to_numpy(found, dtype="numpy")
                self._arrived = {id(x): (x, array) for x, array in zip(found, arrays, strict=True)}
        known = self._arrived.get(id(x))
        return _array(x) if known is None else known[1]


def _array(x: Any) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = core.to_numpy(x) if _is_native(x) else core.to_numpy(x, dtype="numpy")
    return array


def _is_on_device(leaf: Any) -> bool:
    """Is it an array of a library besides torch, on a CUDA device as far as that tells without being read?"""
    if isinstance(leaf, np.ndarray) or _torch.is_tensor(leaf):
        return False
    if hasattr(type(leaf), "__cuda_array_interface__"):
        return True
    try:
        return int(leaf.__dlpack_device__()[0]) == _CUDA
    except Exception:  # whatever its library raises; it is read by itself then
        return core.reads_through_exchange_table(type(leaf))


def _on_devices(root: Any, tensor_type: Any) -> list[Any]:
    """Return what lies on CUDA devices in a nest: plain tensors of dtypes that are native or widen, and arrays."""
    found, seen, left = [], set(), [root]
    while left:
        node = left.pop()
        if type(node) is tensor_type:
            if node.is_cuda and (_is_native_dtype(node.dtype) or node.dtype.is_floating_point):
                found.append(node)
            continue
        if node is None or isinstance(node, (str, bytes, int, float)) or id(node) in seen:
            continue
        opened = open_node(node)
        if opened is not None:
            seen.add(id(node))
            left.extend(opened[0])
        elif is_array_like(node) and _is_on_device(node):
            found.append(node)
    return found


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
