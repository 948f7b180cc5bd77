"""Holds a plan against what the conversion then did, by addresses and flags; and one refusal against another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.numpy_names import byte_bounds
from tensorferry.types import Plan


def memory_range(x: Any) -> tuple[int, int]:
    """First address and the one past the last of what a tensor or array may reach."""
    if isinstance(x, np.ndarray):
        return tuple(byte_bounds(x))
    storage = x.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def ranges_meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Do two address ranges have a byte in common?"""
    return max(a[0], b[0]) < min(a[1], b[1])


def has_memory(x: Any) -> bool:
    """Is the tensor an ordinary one, of which an address can be asked?"""
    return isinstance(x, np.ndarray) or not x._is_zerotensor()


def convert_as_planned(x: Any, to: str = "numpy", **arguments: Any) -> Any:
    """Convert `x`, assert that every field of the plan told the truth, and return the result."""
    planned = ferry.plan(x, to=to, **arguments)
    before = memory_range(x) if has_memory(x) else (0, 0)
    result = ferry.to_numpy(x, **arguments) if to == "numpy" else ferry.from_numpy(x, **arguments)
    (assert_array if to == "numpy" else assert_tensor)(result, planned)
    if np.prod(planned.shape) > 0:
        assert ranges_meet(memory_range(result), before) == planned.shares_memory
    assert (planned.copies == 0) == planned.shares_memory
    assert planned.copies in (0, 1)
    assert (planned.path == "same object") == (result is x)
    assert planned.waits == ()
    return result


def assert_array(result: np.ndarray[Any, Any], planned: Plan) -> None:
    """The array has the dtype, layout and flags that were planned."""
    found = (result.dtype.name, result.shape, result.strides, result.flags.writeable)
    assert found == (planned.dtype, planned.shape, planned.strides, planned.writable)
    assert planned.nbytes_moved == planned.copies * result.nbytes


def assert_tensor(result: torch.Tensor, planned: Plan) -> None:
    """The tensor has the dtype and layout that were planned."""
    strides = tuple(step * result.element_size() for step in result.stride())
    found = (str(result.dtype).removeprefix("torch."), tuple(result.shape), strides)
    assert found == (planned.dtype, planned.shape, planned.strides)
    assert planned.nbytes_moved == planned.copies * result.numel() * result.element_size()


def refusal_of(call: Callable[[], Any]) -> ferry.FerryError:
    """The error that `call` raises; it must be one of ours, with three parts."""
    with pytest.raises(ferry.FerryError) as caught:
        call()
    error = caught.value
    assert error.given
    assert error.why
    assert error.instead
    return error


def refused_as_planned(x: Any, to: str = "numpy", **arguments: Any) -> ferry.FerryError:
    """Assert that the plan refuses with the same error as the conversion, and return it."""
    convert = ferry.to_numpy if to == "numpy" else ferry.from_numpy
    done = refusal_of(lambda: convert(x, **arguments))
    planned = refusal_of(lambda: ferry.plan(x, to=to, **arguments))
    assert (type(done), str(done)) == (type(planned), str(planned))
    return done
