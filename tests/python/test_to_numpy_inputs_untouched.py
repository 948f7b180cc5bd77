"""Nothing a conversion does, or fails to do, changes its input or keeps it alive."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry

TENSORS: dict[str, Callable[[], torch.Tensor]] = {
    "a leaf": lambda: torch.arange(6.0).reshape(2, 3).requires_grad_(),
    "inside a graph": lambda: torch.ones(2, 3, requires_grad=True) * 2,
    "strided": lambda: torch.arange(12.0).reshape(2, 6)[:, ::2],
    "conjugate": lambda: torch.tensor([[1 + 2j]]).conj(),
    "bfloat16": lambda: torch.ones(2, 3).bfloat16(),
    "a parameter": lambda: torch.nn.Parameter(torch.ones(2, 3)),
}
CALLS: dict[str, dict[str, Any]] = {
    "a view": {},
    "a copy": {"copy": True},
    "lazily": {"copy": "lazy"},
    "a cast": {"dtype": "complex128"},
    "bits": {"dtype": "bits"},
    "in another order": {"order": "F"},
}
REFUSALS: dict[str, Callable[[Any], Any]] = {
    "a strict cast": lambda x: ferry.to_numpy(x, dtype="complex128", copy=False),
    "a forbidden cast": lambda x: ferry.to_numpy(x, dtype="int8"),
    "a lossy cast": lambda x: ferry.to_numpy(x, dtype="int8", casting="same_value"),
    "a wrong argument": lambda x: ferry.to_numpy(x, copy="yes"),
    "an unknown argument": lambda x: ferry.to_numpy(x, bogus=1),
    "a wrong destination": lambda x: ferry.to_numpy(x, out=np.zeros(99)),
    "a bad neighbour in a nest": lambda x: ferry.to_numpy([x, {"a": torch.ones(1, device="meta")}]),
    "a bad neighbour in a cast nest": lambda x: ferry.to_numpy([x, torch.eye(2).to_sparse()], dtype="float64"),
    "a plan": lambda x: ferry.plan([x], dtype="int8"),
}


def state_of(x: torch.Tensor) -> tuple[Any, ...]:
    """Everything about a tensor that a caller could notice."""
    return (
        x.dtype,
        x.shape,
        x.stride(),
        x.storage_offset(),
        x.requires_grad,
        x.is_leaf,
        x.grad_fn is None,
        x._version,
        x.is_conj(),
        x.is_inference(),
        type(x),
        dict(vars(x)),
        x.detach().clone().view(torch.uint8).tolist() if not x.is_conj() else x.tolist(),
    )


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Within, only reference counts free anything."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("arguments", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("make", TENSORS.values(), ids=TENSORS)
def test_converting_changes_nothing_about_a_tensor(make: Callable[[], torch.Tensor], arguments: dict[str, Any]) -> None:
    x = make()
    before, address, resizable = state_of(x), x.data_ptr(), x.untyped_storage().resizable()
    for nest in (x, [x]):
        ferry.to_numpy(nest, **arguments)
        ferry.plan(nest, **arguments)
    assert x.untyped_storage().resizable() == resizable
    assert state_of(x) == before
    assert x.data_ptr() == address


def test_a_tensor_stays_resizable_under_a_view_unlike_after_numpy() -> None:
    x = torch.ones(3)
    ferry.to_numpy(x)
    assert x.untyped_storage().resizable()
    x.numpy()
    assert not x.untyped_storage().resizable()


@pytest.mark.parametrize("arguments", [{}, {"copy": True}, {"dtype": "float32"}, {"requires_grad": True}], ids=str)
def test_converting_changes_nothing_about_an_array(arguments: dict[str, Any]) -> None:
    for a in (
        np.arange(6.0),
        np.arange(6.0)[::-1],
        np.broadcast_to(np.arange(3.0), (2, 3)),
        np.asfortranarray(np.eye(3)),
    ):
        before = (a.dtype, a.shape, a.strides, str(a.flags), a.tobytes(), a.ctypes.data)
        ferry.from_numpy(a, **arguments)
        ferry.from_numpy([a], **arguments)
        ferry.to_numpy(a, copy=True)
        assert (a.dtype, a.shape, a.strides, str(a.flags), a.tobytes(), a.ctypes.data) == before


def test_a_nest_is_never_changed() -> None:
    x = torch.ones(2)
    inner = [x, 1]
    nest = {"a": inner, "b": (x,)}
    for arguments in ({}, {"copy": True}, {"dtype": "float64"}):
        ferry.to_numpy(nest, **arguments)
        assert nest["a"] is inner
        assert inner[0] is x
        assert nest["b"][0] is x


def counts_of(*objects: Any) -> list[int]:
    return [sys.getrefcount(x) for x in objects]


@pytest.mark.parametrize("arguments", CALLS.values(), ids=CALLS)
def test_a_conversion_leaves_reference_counts_where_they_were(arguments: dict[str, Any]) -> None:
    x, a = torch.arange(6.0).reshape(2, 3), np.arange(6.0)[::2]
    keyword = {key: value for key, value in arguments.items() if key == "dtype" and value != "bits"}
    with no_garbage_collection():
        before = counts_of(x, a, None, True, x.dtype, a.dtype)
        for _ in range(50):
            ferry.to_numpy(x, **arguments)
            ferry.to_numpy({"x": [x, (x,)]}, **arguments)
            ferry.to_numpy(a, **arguments)
            ferry.from_numpy(a, **keyword)
            ferry.from_numpy([a, ferry.to_numpy(x)], **keyword)
            ferry.plan([x, a], **arguments)
        assert np.abs(np.subtract(counts_of(x, a, None, True, x.dtype, a.dtype), before)).max() <= 12


@pytest.mark.parametrize("refuse", REFUSALS.values(), ids=REFUSALS)
def test_a_failed_conversion_keeps_no_reference(refuse: Callable[[Any], Any]) -> None:
    x = torch.tensor([[0.5, 1.5]])
    storage = x.untyped_storage()
    with no_garbage_collection():
        before = counts_of(x, storage)
        for _ in range(20):
            with pytest.raises((ferry.FerryError, TypeError)):
                refuse(x)
        assert counts_of(x, storage) == before


SPECIAL: dict[str, Callable[[], Any]] = {
    "sparse": lambda: torch.eye(2).to_sparse(),
    "meta": lambda: torch.ones(2, device="meta"),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
    "quantised": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
    "text": lambda: np.array(["text"]),
    "objects": lambda: np.array([None]),
    "a mask": lambda: np.ma.array([1.0], mask=[True]),
}


@pytest.mark.parametrize("make", SPECIAL.values(), ids=SPECIAL)
def test_a_refused_source_is_not_kept_alive_by_its_error(make: Callable[[], Any]) -> None:
    x = make()
    with no_garbage_collection():
        before = sys.getrefcount(x)
        for _ in range(20):
            for nest in (x, [x], {"a": (x,)}):
                for call in (
                    lambda nest: ferry.to_numpy(nest, copy=True, dtype="float32"),
                    lambda nest: ferry.from_numpy(nest, dtype="float32"),
                    lambda nest: ferry.plan(nest, dtype="float32", copy=True),
                ):
                    with suppress(ferry.FerryError):
                        call(nest)
            del nest
        assert sys.getrefcount(x) == before
