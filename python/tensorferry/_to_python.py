"""Tensors as Python numbers and lists."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from tensorferry._errors import DTypeError
from tensorferry._native import core
from tensorferry._nest import is_nest, open_node
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
    plain = x if not is_nest(x) and not is_array_like(x) else core.to_numpy(x, dtype="numpy")
    return _unwrap(plain)


def _unwrap(node: Any) -> Any:
    if isinstance(node, np.ndarray):
        return _unwrap_array(node)
    if isinstance(node, np.generic):
        return _unwrap_array(np.asarray(node))
    opened = open_node(node)
    if opened is None:
        return node
    children = [_unwrap(child) for child in opened[0]]
    if isinstance(node, Mapping):
        return dict(zip(node, children, strict=True))
    if dataclasses.is_dataclass(node):
        return {field.name: child for field, child in zip(dataclasses.fields(node), children, strict=True)}
    return children


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
