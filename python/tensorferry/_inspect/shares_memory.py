"""``shares_memory``: do two tensors reach a common byte?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert.region import Region, meet, region_of_source
from tensorferry._convert.take import take
from tensorferry._errors import LayoutError
from tensorferry._nest import is_nest
from tensorferry._torch import facts as torch_facts

__all__ = ["shares_memory"]

# Candidate solutions that NumPy may try (see numpy.shares_memory); some hundredths of a second.
_MAX_WORK = 1_000_000


def shares_memory(a: Any, b: Any, /) -> bool:
    """See :func:`tensorferry.shares_memory`."""
    return meet(_region(a), _region(b), max_work=_MAX_WORK)


def _region(x: Any) -> Region:
    if is_nest(x):
        raise LayoutError(
            f"a {type(x).__name__}",
            "it is a nest, and which of its leaves is meant is not said",
            "compare its leaves one by one: any(shares_memory(leaf, other) for leaf in ...)",
        )
    if _torch.is_tensor(x):
        return _region_of_tensor(x)
    if isinstance(x, np.ndarray):
        return Region("cpu", _address(x), x.shape, x.strides, x.itemsize, x)
    if hasattr(type(x), "__cuda_array_interface__"):
        return _region_of_cuda_array(x.__cuda_array_interface__)
    taken = take(x, move=False)
    if taken.on_device is not None:
        return region_of_source(taken.on_device.lying, space="cuda", address=taken.on_device.address)
    source = taken.source
    if source is None:  # a buffer of a dtype that only NumPy has
        array = np.asarray(x)
        return Region("cpu", _address(array), array.shape, array.strides, array.itemsize, array)
    return region_of_source(source)


def _address(x: np.ndarray[Any, Any]) -> int:
    return int(x.__array_interface__["data"][0])


def _region_of_tensor(x: Any) -> Region:
    if torch_facts.exports_itself(x):
        source = take(x).source
        assert source is not None  # a producer is read natively or refused
        return region_of_source(source)
    source, address = torch_facts.readable_memory(x)
    device = torch_facts.metadata(x)[2]
    # CUDA gives every device and the host one range of addresses (unified addressing).
    space = "cuda" if device.startswith("cuda") else device
    return region_of_source(source, space=space, address=address or 0)


def _region_of_cuda_array(interface: dict[str, Any]) -> Region:
    """See https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html."""
    shape = tuple(interface["shape"])
    itemsize = np.dtype(interface["typestr"]).itemsize
    strides = interface.get("strides")
    if strides is None:
        strides = tuple(itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return Region("cuda", int(interface["data"][0]), shape, tuple(strides), itemsize, None)
