"""Tensors that are more, or less, than their memory: right, or refused by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import tensorferry as ferry
from helpers.plans import convert_as_planned, refusal_of, refused_as_planned


def test_a_conjugate_view_is_read_with_its_mark() -> None:
    x = torch.tensor([[1 + 2j, 3 - 4j]]).conj()
    assert x.is_conj()
    assert convert_as_planned(x).tolist() == [[1 - 2j, 3 + 4j]]


def test_a_negative_view_is_read_with_its_mark() -> None:
    x = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
    assert x.is_neg()
    assert convert_as_planned(x).tolist() == [-2, 4]


@pytest.mark.parametrize("copy", [None, True, "lazy"])
def test_both_marks_at_once_are_honoured(copy: Any) -> None:
    x = torch._neg_view(torch.tensor([1 + 2j, 3 - 4j]).conj())
    assert x.is_conj()
    assert x.is_neg()
    assert convert_as_planned(x, copy=copy).tolist() == [-1 + 2j, -3 - 4j]
    assert convert_as_planned(x, copy=copy, dtype="complex128").tolist() == [-1 + 2j, -3 - 4j]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "int8"])
def test_a_negative_view_of_any_dtype_is_negated(dtype: str) -> None:
    x = torch._neg_view(torch.tensor([0, 1, -5, 7]).to(getattr(torch, dtype)))
    assert convert_as_planned(x).astype(float).tolist() == [0, -1, 5, -7]


def test_zero_tensors_are_zeros() -> None:
    for dtype in (torch.float32, torch.complex64, torch.bfloat16):
        x = torch._efficientzerotensor((2, 3), dtype=dtype)
        assert not convert_as_planned(x).any()
        assert ferry.to_numpy(x).shape == (2, 3)
        assert isinstance(refused_as_planned(x, copy=False), ferry.CopyRequiredError)


def test_an_inference_tensor_converts_and_comes_back() -> None:
    with torch.inference_mode():
        x = torch.arange(3.0)
    array = convert_as_planned(x)
    assert array.tolist() == [0, 1, 2]
    assert ferry.from_numpy(array).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("context", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_every_grad_mode_gives_the_same(context: Callable[[], Any]) -> None:
    x = torch.arange(3.0, requires_grad=True)
    with context():
        array = convert_as_planned(x)
        assert convert_as_planned(array, to="torch").tolist() == [0, 1, 2]
        assert ferry.to_numpy(x, copy="lazy").tolist() == [0, 1, 2]


def test_a_tensor_that_requires_grad_is_read_at_any_place_of_the_graph() -> None:
    leaf = torch.ones(2, requires_grad=True)
    assert ferry.to_numpy(leaf).tolist() == [1, 1]
    assert ferry.to_numpy(leaf * 3).tolist() == [3, 3]


class Named(torch.Tensor):
    """A plain subclass."""


class Loud(torch.Tensor):
    """A subclass whose operations must not be called for a conversion."""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__name__", "") in ("__get__", "__dlpack__", "as_subclass", "untyped_storage"):
            return super().__torch_function__(function, types, args, kwargs or {})
        raise AssertionError(f"{function} was called")


class OwnExport(torch.Tensor):
    """A subclass that says itself how it is read."""

    def __dlpack__(self, **arguments: Any) -> Any:
        return (torch.arange(3.0) * 10).__dlpack__(**arguments)


class Scaled(torch.Tensor):
    """Computes its own operations: what its memory holds is not its values."""

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("copy", [None, True, "lazy"])
def test_parameters_and_plain_subclasses_are_their_memory(copy: Any) -> None:
    for x in (
        torch.nn.Parameter(torch.arange(3.0)),
        torch.nn.Buffer(torch.arange(3.0)),
        torch.arange(3.0).as_subclass(Named),
        torch.arange(3.0).as_subclass(Loud),
    ):
        array = ferry.to_numpy(x, copy=copy)
        assert type(array) is np.ndarray
        assert array.tolist() == [0, 1, 2]


def test_a_subclass_that_overrides_dlpack_is_asked_through_it() -> None:
    x = torch.arange(3.0).as_subclass(OwnExport)
    assert ferry.to_numpy(x).tolist() == [0, 10, 20]
    assert ferry.to_numpy({"x": x}, copy=True)["x"].tolist() == [0, 10, 20]


def test_a_subclass_that_computes_its_own_operations_is_refused() -> None:
    error = refused_as_planned(torch.ones(2).as_subclass(Scaled))
    assert isinstance(error, ferry.LayoutError)
    assert "Scaled" in error.given


def sparse_csr() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.eye(2).to_sparse_csr()


def nested(layout: torch.layout) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)


def fake() -> torch.Tensor:
    with FakeTensorMode():
        return torch.ones(2)


def emptied() -> torch.Tensor:
    x = torch.ones(1000)
    x.untyped_storage().resize_(0)
    return x


REFUSED: dict[str, tuple[Callable[[], torch.Tensor], type, str]] = {
    "sparse COO": (lambda: torch.eye(2).to_sparse(), ferry.LayoutError, "to_dense"),
    "sparse CSR": (sparse_csr, ferry.LayoutError, "crow_indices"),
    "sparse CSC": (lambda: torch.eye(2).to_sparse_csc(), ferry.LayoutError, "ccol_indices"),
    "sparse BSR": (lambda: torch.eye(2).to_sparse_bsr((1, 1)), ferry.LayoutError, "to_dense"),
    "sparse BSC": (lambda: torch.eye(2).to_sparse_bsc((1, 1)), ferry.LayoutError, "to_dense"),
    "MKLDNN": (lambda: torch.ones(2, 2).to_mkldnn(), ferry.LayoutError, "to_dense"),
    "nested, strided": (lambda: nested(torch.strided), ferry.LayoutError, "unbind"),
    "nested, jagged": (lambda: nested(torch.jagged), ferry.LayoutError, "unbind"),
    "meta": (lambda: torch.ones(2, device="meta"), ferry.DeviceError, "to_empty"),
    "fake": (fake, ferry.LayoutError, "outside of the mode"),
    "an emptied storage": (emptied, ferry.LayoutError, "restore the storage"),
    "a lazy module's parameter": (
        lambda: torch.nn.parameter.UninitializedParameter(),
        ferry.LayoutError,
        "run the module once",
    ),
    "quantised": (
        lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
        ferry.DTypeError,
        "dequantize",
    ),
    "quantised by channel": (
        lambda: torch.quantize_per_channel(torch.ones(3, 2), torch.ones(3), torch.zeros(3), 0, torch.qint8),
        ferry.DTypeError,
        "int_repr",
    ),
}


@pytest.mark.filterwarnings("ignore:Sparse", "ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.parametrize("copy", [None, True, False, "lazy"], ids=lambda copy: f"copy={copy}")
@pytest.mark.parametrize(("make", "error", "remedy"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_strided_memory_is_refused_by_name(
    make: Callable[[], torch.Tensor], error: type, remedy: str, copy: Any
) -> None:
    x = make()
    found = refused_as_planned(x, copy=copy)
    assert isinstance(found, error)
    assert remedy in found.instead
    in_nest = refusal_of(lambda: ferry.to_numpy({"x": [x]}, copy=copy))
    assert str(in_nest) == f"leaf ['x'][0]: {found}"


TRANSFORMS: dict[str, tuple[Callable[[Callable[[Any], Any]], Any], type]] = {
    "vmap": (lambda f: torch.vmap(f)(torch.ones(2, 3)), ferry.LayoutError),
    "vmap twice": (lambda f: torch.vmap(torch.vmap(f))(torch.ones(2, 3)), ferry.LayoutError),
    "grad": (lambda f: torch.func.grad(f)(torch.ones(())), ferry.AutogradError),
    "jvp": (lambda f: torch.func.jvp(f, (torch.ones(2),), (torch.ones(2),)), ferry.AutogradError),
    "vjp": (lambda f: torch.func.vjp(f, torch.ones(2)), ferry.AutogradError),
    "functionalize": (lambda f: torch.func.functionalize(f)(torch.ones(2)), ferry.LayoutError),
}


@pytest.mark.parametrize(("transform", "error"), TRANSFORMS.values(), ids=TRANSFORMS)
def test_a_stand_in_inside_a_transform_is_refused(transform: Callable[[Any], Any], error: type) -> None:
    def read(x: torch.Tensor) -> torch.Tensor:
        assert isinstance(refused_as_planned(x), error)
        assert isinstance(refused_as_planned([x], copy=True), error)
        return x * 2

    transform(read)


@pytest.mark.parametrize(("transform", "error"), TRANSFORMS.values(), ids=TRANSFORMS)
def test_another_tensor_inside_a_transform_is_read(transform: Callable[[Any], Any], error: type) -> None:
    outside = torch.arange(3.0)

    def read(x: torch.Tensor) -> torch.Tensor:
        for copy in (None, True, "lazy"):
            assert ferry.to_numpy(outside, copy=copy).tolist() == [0, 1, 2]
        return x * 2

    transform(read)


def test_a_real_tensor_is_read_under_fake_tensor_mode() -> None:
    x = torch.arange(3.0)
    with FakeTensorMode():
        for copy in (None, True, "lazy"):
            assert ferry.to_numpy(x, copy=copy).tolist() == [0, 1, 2]
        assert ferry.to_numpy(x, dtype="float64").tolist() == [0, 1, 2]


def test_what_is_no_tensor_is_refused() -> None:
    for x in (None, 3.5, "text", {1, 2}, object(), range(3), torch.nn.Linear(1, 1), torch.float32):
        error = refused_as_planned(x)
        assert isinstance(error, ferry.DTypeError)
        assert type(x).__name__ in error.given
