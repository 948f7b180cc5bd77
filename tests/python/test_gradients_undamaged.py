"""No call of ours from tensor to NumPy, but ``writable``, opens a way to change a gradient in silence."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.memory import address
from helpers.plans import memory_range, ranges_meet

# Each saves its result, so that a write to the result's memory would change the gradient.
RESULTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "result": lambda leaf: leaf.exp(),
    "transposed result": lambda leaf: leaf.exp().T,
    "sliced result": lambda leaf: leaf.sigmoid()[1:, ::2],
    "detached result": lambda leaf: leaf.tanh(),
}

CALLS: dict[str, Callable[[torch.Tensor], Any]] = {
    **{
        f"to_numpy, {arguments}": lambda y, arguments=arguments: ferry.to_numpy(y, **arguments)
        for arguments in (
            {},
            {"copy": False},
            {"copy": "lazy"},
            {"copy": True},
            {"dtype": "bits"},
            {"dtype": "numpy"},
            {"dtype": "float32"},
            {"dtype": "float64", "casting": "no"},
            {"order": "C"},
            {"order": "F"},
            {"copy": "lazy", "order": "A"},
            {"dtype": {"floating": "float64"}},
        )
    },
    "to_numpy into out": lambda y: ferry.to_numpy(y, out=np.empty(tuple(y.shape))),
    "to_numpy of a nest": lambda y: ferry.to_numpy({"a": [y, (y, y.detach())]}),
    "to_numpy of a nest, lazy": lambda y: ferry.to_numpy([y], copy="lazy"),
    "stack": lambda y: ferry.stack([y, y], to="numpy"),
    "stack into out": lambda y: ferry.stack([y], to="numpy", out=np.empty((1, *y.shape))),
    "offer taken by NumPy": lambda y: np.from_dlpack(ferry.to_dlpack(y, detach=True)),
    "offer of a copy": lambda y: np.from_dlpack(ferry.to_dlpack(y, detach=True, copy=True)),
    "offer taken by us": lambda y: ferry.from_dlpack(ferry.to_dlpack(y, detach=True), to="numpy"),
    "offer taken as a nest": lambda y: ferry.to_numpy([ferry.to_dlpack(y, detach=True)]),
    "from_dlpack": lambda y: ferry.from_dlpack(y, to="numpy", detach=True),
    "from_dlpack, copy": lambda y: ferry.from_dlpack(y, to="numpy", detach=True, copy=True),
    "to_python": ferry.to_python,
    "plan": lambda y: [ferry.plan(y), ferry.plan([y], copy="lazy")],
    "explain": lambda y: ferry.explain(y),
    "describe": lambda y: [ferry.describe(y), ferry.describe({"y": y})],
    "check": lambda y: ferry.check(y, finite=True) is y,
    "shares_memory": lambda y: ferry.shares_memory(y, y.detach()),
}

WRITES: dict[str, Callable[[np.ndarray], object]] = {
    "assignment": lambda a: a.__setitem__(..., 0),
    "fill": lambda a: a.fill(0),
    "ufunc": lambda a: np.multiply(a, 0, out=a, casting="unsafe"),
    "copyto": lambda a: np.copyto(a, 0),
    "sort": lambda a: a.sort(axis=0),
    "put": lambda a: np.put(a, 0, 0),
    "bytes": lambda a: a[:1].view(np.uint8).__setitem__(..., 0),
    "flat": lambda a: a.flat.__setitem__(0, 0),
    "iterator": lambda a: np.nditer(a, op_flags=["readwrite"]).__next__()[...].fill(0),
    "memoryview": lambda a: memoryview(a[:1, 0]).__setitem__(0, 0),
    "flag": lambda a: (a.setflags(write=True), a.fill(0)),
    "flag of a view": lambda a: (a[:].setflags(write=True), a[:].fill(0)),
    "flag of a reshaped view": lambda a: (a[:1].ravel().setflags(write=True), a.fill(0)),
    "stride tricks": lambda a: np.lib.stride_tricks.as_strided(a, writeable=True).fill(0),
    "buffer": lambda a: np.ndarray(a[:1, 0].shape, a.dtype, buffer=a[:1, 0]).fill(0),
    "asarray": lambda a: np.asarray(a).fill(0),
    "require": lambda a: np.require(a, requirements=["W"]).fill(0),  # copies, rather than refuse
}


def _arrays(x: Any) -> Iterator[np.ndarray]:
    if isinstance(x, np.ndarray):
        yield x
    elif isinstance(x, Mapping):
        for child in x.values():
            yield from _arrays(child)
    elif isinstance(x, (list, tuple)):
        for child in x:
            yield from _arrays(child)
    elif dataclasses.is_dataclass(x):
        for field in dataclasses.fields(x):
            yield from _arrays(getattr(x, field.name))


def _leaf() -> torch.Tensor:
    return torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()


def _gradient(leaf: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    (result * torch.arange(1.0, result.numel() + 1).reshape(result.shape)).sum().backward()
    return leaf.grad


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("call", CALLS)
def test_after_any_call_every_write_fails_or_stays_private(call, result):
    untouched = _leaf()
    expected = _gradient(untouched, RESULTS[result](untouched))
    leaf = _leaf()
    y = RESULTS[result](leaf)
    values, version = y.detach().clone(), y._version
    memory = memory_range(y)

    for array in _arrays(CALLS[call](y.detach() if result == "detached result" else y)):
        shared = ranges_meet(memory_range(array), memory)
        for write in WRITES.values():
            with contextlib.suppress(ValueError, TypeError, NotImplementedError):
                write(array)
        assert not (shared and array.flags.writeable)
        assert torch.equal(y.detach(), values)
    assert y._version == version
    assert torch.equal(_gradient(leaf, y), expected)


@pytest.mark.parametrize("write", WRITES)
def test_the_writes_do_write_where_they_may(write):
    array = np.arange(1.0, 13).reshape(3, 4)[::-1]
    before = array.copy()
    WRITES[write](array)
    assert (array != before).any()


def test_the_only_way_from_a_read_only_array_to_writable_memory_is_heard_by_autograd():
    leaf = _leaf()
    y = leaf.exp()
    array = ferry.to_numpy(y)
    tensor = ferry.from_numpy(array[1:])
    assert address(tensor) == address(array[1:])
    tensor.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        _gradient(leaf, y)


def test_what_the_owner_consents_to_is_not_read_only():
    leaf = _leaf()
    offered = np.from_dlpack(ferry.to_dlpack(leaf, detach=True, writable=True))
    offered[0, 0] = 7
    assert leaf[0, 0].item() == 7
