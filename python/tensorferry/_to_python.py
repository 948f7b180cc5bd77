"""Tensors as Python numbers and lists."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from tensorferry._dtypes import NATIVE
from tensorferry._errors import DTypeError, FerryError
from tensorferry._native import core
from tensorferry._nest import cycle_error, is_nest, labels, open_node
from tensorferry._take import is_array_like, refuse_array

__all__ = ["to_python"]


def to_python(x: Any, /) -> Any:
    """Convert a tensor, or a nest of them, to Python numbers and lists, ready for ``json.dumps``.

    Parameters
    ----------
    x : tensor, array, number or nest
        0-d tensors and NumPy scalars become numbers, others nested lists. Mappings and dataclasses become dicts,
        sequences become lists. What is no tensor (text, numbers, None) stays as it is.

    Returns
    -------
    object
        bool, int, float or complex numbers (JSON has no complex), lists and dicts. Every value is exact: small floats
        are widened, never rounded.

    Raises
    ------
    FerryError
        For tensors that cannot be converted; the error names the leaf.

    Notes
    -----
    Waits once, for tensors on a device; host tensors never block.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> ferry.to_python({"loss": np.float32(0.5), "sizes": np.arange(3)})
    {'loss': 0.5, 'sizes': [0, 1, 2]}
    """
    if is_nest(x) or is_array_like(x) or isinstance(x, np.generic):
        return _Unwrapping().unwrap(x)
    return x


class _Unwrapping:
    """One walk; the containers between the root and here are noted, so that a cycle is found."""

    def __init__(self) -> None:
        self._open_ids: set[int] = set()

    def unwrap(self, node: Any, path: str = "") -> Any:
        if node is None or isinstance(node, (str, bytes, int, float)):
            return node.item() if isinstance(node, np.generic) else node
        opened = open_node(node)
        if opened is None:
            return _unwrap_leaf(node, path)
        if id(node) in self._open_ids:
            raise cycle_error()
        self._open_ids.add(id(node))
        places = labels(node, len(opened[0]))
        children = [self.unwrap(child, path + place) for place, child in zip(places, opened[0], strict=True)]
        self._open_ids.discard(id(node))
        if isinstance(node, Mapping):
            return dict(zip(node, children, strict=True))
        if dataclasses.is_dataclass(node):
            return {place.removeprefix("."): child for place, child in zip(places, children, strict=True)}
        return children


def _unwrap_leaf(leaf: Any, path: str) -> Any:
    if not (is_array_like(leaf) or isinstance(leaf, np.generic)):
        return leaf
    try:
        array = core.to_numpy(leaf) if _is_native(leaf) else core.to_numpy(leaf, dtype="numpy")
        return _unwrap_array(array)
    except FerryError as error:
        if path:
            error.given = f"leaf {path}: {error.given}"
        raise


def _is_native(leaf: Any) -> bool:
    """Is the dtype NumPy's own, so that the short way gives numbers at once?"""
    name = str(getattr(leaf, "dtype", "")).removeprefix("torch.")
    return name in NATIVE and bool(NATIVE[name]["numpy_native"])


def _unwrap_array(array: np.ndarray[Any, Any]) -> Any:
    if isinstance(array, np.ma.MaskedArray):
        raise DTypeError(
            f"a masked {array.shape} {array.dtype} array", "a list has no mask", "fill it first: x.filled(value)"
        )
    if array.dtype.kind in "mMOV" or array.dtype.itemsize > 16:
        raise refuse_array(array, "JSON")
    if array.dtype.kind in "fc" and array.dtype.itemsize * (2 if array.dtype.kind == "f" else 1) > 16:
        raise refuse_array(array, "a Python float")
    return array.tolist()
