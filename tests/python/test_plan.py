"""Promise 5: the plan is the truth, for every combination of source and arguments, and so are its refusals."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.plans import convert_as_planned, refused_as_planned

TENSORS: dict[str, Callable[[], torch.Tensor]] = {
    "float32 matrix": lambda: torch.arange(6.0).reshape(2, 3),
    "transposed": lambda: torch.arange(6.0).reshape(2, 3).T,
    "strided": lambda: torch.arange(12.0).reshape(2, 6)[:, ::2],
    "expanded": lambda: torch.arange(3.0).expand(2, 3),
    "odd size-1 stride": lambda: torch.arange(9.0).as_strided((1, 3), (50, 2)),
    "scalar": lambda: torch.tensor(3.0),
    "empty": lambda: torch.empty(2, 0, 3),
    "int64": lambda: torch.arange(6).reshape(2, 3),
    "bool": lambda: torch.tensor([True, False]),
    "bfloat16": lambda: torch.arange(4.0).bfloat16(),
    "float8": lambda: torch.arange(4.0).to(torch.float8_e4m3fn),
    "negative bfloat16": lambda: torch._neg_view(torch.arange(4.0).bfloat16()),
    "complex64": lambda: torch.arange(3) * (1 + 1j),
    "conjugate": lambda: (torch.arange(3) * (1 + 1j)).conj(),
    "negative": lambda: (torch.arange(3) * (1 + 1j)).conj().imag,
    "zero tensor": lambda: torch._efficientzerotensor((2, 3)),
    "complex32": lambda: torch.zeros(2, 2, dtype=torch.int32).view(torch.complex32),
    "packed float4": lambda: torch.zeros(2, 2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
    "int4": lambda: torch.arange(4, dtype=torch.uint8).view(torch.int4),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2, 3)),
}
ARRAYS: dict[str, Callable[[], np.ndarray[Any, Any]]] = {
    "float64 matrix": lambda: np.arange(6.0).reshape(2, 3),
    "Fortran order": lambda: np.arange(6.0).reshape(2, 3).T,
    "strided": lambda: np.arange(12.0).reshape(2, 6)[:, ::2],
    "reversed": lambda: np.arange(6.0).reshape(2, 3)[::-1],
    "broadcast": lambda: np.broadcast_to(np.arange(3.0), (2, 3)),
    "scalar": lambda: np.array(3.0),
    "empty": lambda: np.empty((2, 0, 3)),
    "big-endian": lambda: np.arange(3, dtype=">i4"),
    "misaligned": lambda: np.frombuffer(bytearray(33), dtype="f8", offset=1),
    "int16": lambda: np.arange(6, dtype="i2"),
    "bool": lambda: np.array([True, False]),
    "complex64": lambda: np.arange(3).astype("c8"),
    "bfloat16": lambda: np.arange(4).astype(ml_dtypes.bfloat16),
    "int4": lambda: np.arange(4).astype(ml_dtypes.int4),
    "float4": lambda: np.arange(4).astype(ml_dtypes.float4_e2m1fn),
    "a view of a tensor": lambda: ferry.to_numpy(TENSORS["float32 matrix"]())[:, ::2],
}

COPIES = (None, True, False, "lazy")
DTYPES = (None, "float32", "float64", "complex64", "int16", "bfloat16", "numpy", "bits", {"floating": "float16"})
ORDERS = ("K", "C", "F", "A")
CASTINGS = ("same_kind", "unsafe", "safe", "no")


def holds(x: Any, to: str, **arguments: Any) -> None:
    """The plan tells the truth about what happens, or refuses as the conversion does."""
    try:
        ferry.plan(x, to=to, **arguments)
    except ferry.FerryError:
        refused_as_planned(x, to, **arguments)
    else:
        convert_as_planned(x, to, **arguments)


@pytest.mark.parametrize("casting", CASTINGS)
@pytest.mark.parametrize("make", TENSORS.values(), ids=TENSORS)
def test_promise_5_from_a_tensor_to_an_array(make: Callable[[], torch.Tensor], casting: str) -> None:
    for copy, dtype, order in itertools.product(COPIES, DTYPES, ORDERS):
        holds(make(), "numpy", copy=copy, dtype=dtype, order=order, casting=casting)


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_promise_5_from_an_array_to_an_array(make: Callable[[], Any]) -> None:
    for copy, dtype, order in itertools.product(COPIES, DTYPES, ORDERS):
        holds(make(), "numpy", copy=copy, dtype=dtype, order=order)


@pytest.mark.parametrize("casting", CASTINGS)
@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_promise_5_from_an_array_to_a_tensor(make: Callable[[], Any], casting: str) -> None:
    for copy, dtype, readonly in itertools.product(COPIES[:3], (*DTYPES, torch.int4), ("copy", "share", "raise")):
        holds(make(), "torch", copy=copy, dtype=dtype, readonly=readonly, casting=casting)
        holds(make(), "torch", copy=copy, dtype=dtype, readonly=readonly, requires_grad=True, device="cpu")


@pytest.mark.parametrize("make", TENSORS.values(), ids=TENSORS)
def test_promise_5_into_a_destination(make: Callable[[], torch.Tensor]) -> None:
    shape = ferry.plan(make()).shape
    for out_dtype, dtype, copy in itertools.product(("f4", "f8", "c8", "i4", ml_dtypes.bfloat16), DTYPES, COPIES):
        holds(make(), "numpy", out=np.zeros(shape, out_dtype), dtype=dtype, copy=copy)


@pytest.mark.parametrize("make", TENSORS.values(), ids=TENSORS)
def test_the_plan_holds_while_a_snapshot_of_the_tensor_lives(make: Callable[[], torch.Tensor]) -> None:
    x = make()
    snapshot = ferry.to_numpy(x, copy="lazy")
    planned = ferry.plan(x)
    array = ferry.to_numpy(x)
    assert array.dtype.name == planned.dtype
    assert array.strides == planned.strides
    assert array.tobytes() == snapshot.tobytes()


def test_a_plan_touches_nothing() -> None:
    x = torch.arange(6.0)
    out = np.zeros(6)
    ferry.plan(x, copy=True, out=out)
    ferry.plan(x, copy="lazy")
    ferry.plan(np.arange(3)[::-1], to="torch")
    assert not out.any()
    assert x._version == 0
    assert not torch._C._is_cow_tensor(x)
    assert x.untyped_storage().resizable()


def test_a_plan_is_frozen_and_one_line_of_text() -> None:
    planned = ferry.plan(torch.ones(2, 3), dtype="float64")
    with pytest.raises(dataclasses.FrozenInstanceError):
        planned.path = "view"  # type: ignore[misc]
    assert "\n" not in str(planned)
    assert str(planned).startswith("copy: float64 (2, 3), 1 copy, 48 bytes moved")


def test_the_steps_and_the_reason_say_what_happens_and_why() -> None:
    planned = ferry.plan(torch.ones(2, 3).T, dtype="float64", order="C", casting="same_value")
    assert planned.path == "copy"
    assert "dtype" in planned.reason
    assert "memory order" in planned.reason
    assert any("float64" in step for step in planned.steps)
    assert any("survived" in step for step in planned.steps)


def test_a_nest_is_the_sum_of_its_leaves() -> None:
    nest = {"a": torch.ones(4), "b": [torch.ones(2, dtype=torch.float64), "text"], "c": torch.arange(3)}
    planned = ferry.plan(nest, dtype="float64")
    assert planned.path == "nest"
    assert set(planned.parts) == {"['a']", "['b'][0]", "['c']"}
    assert planned.nbytes_moved == 32
    assert planned.copies == 1
    assert not planned.shares_memory
    assert not planned.writable
    for place, part in planned.parts.items():
        leaf = {"['a']": nest["a"], "['b'][0]": nest["b"][0], "['c']": nest["c"]}[place]
        wanted = None if place == "['c']" else "float64"
        assert part == ferry.plan(leaf, dtype=wanted)


def test_to_must_be_one_of_two_words() -> None:
    for to in ("jax", None, "Torch"):
        with pytest.raises(ferry.ArgumentError):
            ferry.plan(torch.ones(1), to=to)


def test_an_argument_of_the_other_direction_is_refused() -> None:
    for to, arguments in (("numpy", {"readonly": "copy"}), ("torch", {"order": "C"}), ("torch", {"stream": 1})):
        with pytest.raises(ferry.ArgumentError):
            ferry.plan(torch.ones(1) if to == "numpy" else np.ones(1), to=to, **arguments)
