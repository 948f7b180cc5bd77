"""What ``dtype=`` accepts, and what it means for one tensor and in a nest."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.plans import convert_as_planned, refused_as_planned

SPELLINGS = {
    "NumPy scalar type": np.float64,
    "NumPy dtype": np.dtype("f8"),
    "name": "float64",
    "type code": "f8",
    "byte order of this machine": "=f8",
    "Python type": float,
    "torch dtype": torch.float64,
}


@pytest.mark.parametrize("dtype", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_of_a_dtype_is_understood(dtype: Any) -> None:
    array = convert_as_planned(torch.tensor([1.5, -2.0]), dtype=dtype)
    assert array.dtype == np.float64
    assert array.tolist() == [1.5, -2.0]
    tensor = convert_as_planned(np.array([1.5, -2.0], np.float32), to="torch", dtype=dtype)
    assert tensor.dtype is torch.float64
    assert tensor.tolist() == [1.5, -2.0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, ml_dtypes.bfloat16, "bfloat16"], ids=["torch", "ml_dtypes", "name"])
def test_an_extension_dtype_can_be_asked_for(dtype: Any) -> None:
    array = convert_as_planned(torch.tensor([1.0, 1 / 3]), dtype=dtype)
    assert array.dtype == ml_dtypes.bfloat16
    assert array.astype(np.float32).tolist() == torch.tensor([1.0, 1 / 3]).bfloat16().tolist()


def test_asking_for_packed_float4_gives_an_array_of_one_value_a_byte() -> None:
    array = convert_as_planned(torch.tensor([0.5, 6.0]), dtype=torch.float4_e2m1fn_x2)
    assert array.dtype == ml_dtypes.float4_e2m1fn
    assert array.astype(np.float32).tolist() == [0.5, 6.0]


REFUSED = {
    "nothing NumPy knows": "flaot32",
    "text": "S3",
    "objects": object,
    "records": [("a", "f4")],
    "dates": "M8[s]",
    "other byte order": ">f4",
    "extended precision": np.longdouble,
    "a number": 3,
    "an empty list": [],
    "a broken description": {"names": ["a"]},
    "a quantised dtype": torch.qint8,
    "an unknown key": {"flaoting": "float32"},
    "an unknown dtype in a mapping": {"floating": "flaot32"},
}


@pytest.mark.parametrize("dtype", REFUSED.values(), ids=REFUSED)
def test_what_is_no_dtype_is_refused_before_anything_is_touched(dtype: Any) -> None:
    for to, x in (("numpy", torch.ones(2)), ("torch", np.ones(2)), ("numpy", {})):
        assert isinstance(refused_as_planned(x, to=to, dtype=dtype), ferry.DTypeError)


def test_numpy_as_dtype_leaves_native_dtypes_alone() -> None:
    x = torch.arange(3, dtype=torch.int16)
    assert convert_as_planned(x, dtype="numpy").ctypes.data == x.data_ptr()


def test_bits_of_an_array_share_its_memory() -> None:
    a = np.array([1.0, -0.0], np.float32)
    assert convert_as_planned(a, dtype="bits").tolist() == [0x3F800000, 0x80000000]
    assert convert_as_planned(a, to="torch", dtype="bits").tolist() == [0x3F800000, 0x80000000]


def nest_of_all_kinds() -> dict[str, torch.Tensor]:
    return {
        "floating": torch.tensor([1.5]),
        "bfloat16": torch.tensor([2.5]).bfloat16(),
        "complex": torch.tensor([1 + 2j]),
        "integer": torch.tensor([3]),
        "bool": torch.tensor([True]),
    }


def dtypes_of(nest: dict[str, Any]) -> dict[str, str]:
    return {key: value.dtype.name for key, value in nest.items()}


def test_in_a_nest_a_dtype_applies_to_floating_and_complex_leaves_only() -> None:
    assert dtypes_of(ferry.to_numpy(nest_of_all_kinds(), dtype="complex128")) == {
        "floating": "complex128",
        "bfloat16": "complex128",
        "complex": "complex128",
        "integer": "int64",
        "bool": "bool",
    }


def test_in_a_nest_numpy_applies_to_every_leaf() -> None:
    nest = {**nest_of_all_kinds(), "small": torch.tensor([-1], dtype=torch.int8).view(torch.uint8).view(torch.int4)}
    assert dtypes_of(ferry.to_numpy(nest, dtype="numpy")) == {
        "floating": "float32",
        "bfloat16": "float32",
        "complex": "complex64",
        "integer": "int64",
        "bool": "bool",
        "small": "int8",
    }


def test_a_mapping_names_kinds_and_dtypes_and_the_dtype_wins() -> None:
    mapping = {"floating": "float64", torch.bfloat16: np.float32, "integer": "int16", "bool": "uint8"}
    assert dtypes_of(ferry.to_numpy(nest_of_all_kinds(), dtype=mapping)) == {
        "floating": "float64",
        "bfloat16": "float32",
        "complex": "complex64",
        "integer": "int16",
        "bool": "uint8",
    }


def test_a_mapping_works_for_a_single_tensor_and_may_keep() -> None:
    assert ferry.to_numpy(torch.tensor([1.0]), dtype={"floating": "float64"}).dtype == np.float64
    assert ferry.to_numpy(torch.tensor([1.0]), dtype={"integer": "int8"}).dtype == np.float32
    assert ferry.to_numpy(torch.tensor([1.0]), dtype={"floating": None}).dtype == np.float32
    assert ferry.from_numpy(np.ones(2), dtype={np.float64: torch.float32}).dtype is torch.float32


@pytest.mark.parametrize("leaf", [np.array(["text"]), np.array([None]), np.array(["2024-01-01"], "M8[D]")], ids=str)
def test_in_a_nest_a_dtype_leaves_arrays_alone_that_are_no_numbers(leaf: np.ndarray[Any, Any]) -> None:
    converted = ferry.to_numpy({"x": torch.ones(1), "other": leaf}, dtype="float64")
    assert converted["other"] is leaf
    assert converted["x"].dtype == np.float64


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind"])
def test_a_forbidden_cast_is_refused_naming_the_remedy(casting: Any) -> None:
    error = refused_as_planned(torch.tensor([1.5]), dtype="int32", casting=casting)
    assert isinstance(error, ferry.DTypeError)
    assert "same_value" in error.instead


@pytest.mark.parametrize("bad", ["samekind", None, 3, ""])
def test_an_unknown_casting_is_refused(bad: Any) -> None:
    for to, x in (("numpy", torch.ones(2)), ("torch", np.ones(2))):
        error = refused_as_planned(x, to=to, casting=bad)
        assert isinstance(error, ferry.ArgumentError)
        assert "same_value" in error.instead
