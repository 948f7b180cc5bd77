"""Arrays and other sources of every kind: text, dates, objects, masks, extended precision, buffers, scalars."""

from __future__ import annotations

import array
import datetime
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.plans import convert_as_planned, refused_as_planned

RAGGED = np.empty(2, object)
RAGGED[:] = [np.zeros(2), np.zeros(3)]

NO_NUMBERS: dict[str, tuple[np.ndarray[Any, Any], str]] = {
    "text": (np.array(["a", "b"]), "encode"),
    "bytes": (np.array([b"a"]), "encode"),
    "dates": (np.array(["2024-02-29"], "M8[D]"), '.view("i8")'),
    "durations": (np.array([5], "m8[ms]"), '.view("i8")'),
    "objects": (np.array([1, None], object), "stack"),
    "no objects": (np.empty(0, object), "stack"),
    "arrays of unequal length": (RAGGED, "pad"),
    "records": (np.zeros(2, [("first", "f4"), ("second", "i4")]), "'first'"),
    "raw bytes": (np.zeros(2, "V3"), "astype"),
    "extended precision": (np.ones(2, np.longdouble), 'dtype="float64"'),
    "complex extended precision": (np.ones(2, np.clongdouble), '"complex128"'),
}
if hasattr(np.dtypes, "StringDType"):  # NumPy 2
    NO_NUMBERS["variable-width text"] = (np.array(["abc"], np.dtypes.StringDType()), "encode")
every_kind = pytest.mark.parametrize(("a", "remedy"), NO_NUMBERS.values(), ids=NO_NUMBERS)


@every_kind
def test_torch_has_none_of_these_and_the_error_names_the_remedy(a: np.ndarray[Any, Any], remedy: str) -> None:
    error = refused_as_planned(a, to="torch")
    assert isinstance(error, ferry.DTypeError)
    assert remedy in error.instead


@every_kind
def test_to_numpy_returns_them_as_they_are(a: np.ndarray[Any, Any], remedy: str) -> None:
    assert convert_as_planned(a) is a
    assert convert_as_planned(a, copy=False) is a


@every_kind
def test_to_numpy_copies_them_as_numpy_does(a: np.ndarray[Any, Any], remedy: str) -> None:
    copied = convert_as_planned(a, copy=True)
    assert copied.dtype == a.dtype
    assert copied.tolist() == a.tolist() or a is RAGGED
    assert copied.flags.writeable
    assert not convert_as_planned(a, copy="lazy").flags.writeable


@every_kind
def test_none_of_these_fills_a_destination_or_becomes_another_dtype_unasked(a: Any, remedy: str) -> None:
    assert isinstance(refused_as_planned(a, out=np.zeros(a.shape)), ferry.DTypeError)
    if a.dtype.kind not in "fc":
        assert isinstance(refused_as_planned(a, dtype="float32"), ferry.DTypeError)


def test_the_first_offending_object_is_named() -> None:
    error = refused_as_planned(np.array([[1.0, {}], [3, 4]], object), to="torch")
    assert "(0, 0)" in error.why
    assert "float" in error.why
    assert "shape (2,)" in refused_as_planned(RAGGED, to="torch").why


@pytest.mark.parametrize("order", ["<", ">"], ids=["little-endian", "big-endian"])
@pytest.mark.parametrize("kind", ["M8[ns]", "m8[s]"], ids=["dates", "durations"])
def test_int64_is_consent_to_counts_of_the_unit(kind: str, order: str) -> None:
    a = np.array([1, -2, "NaT"], f"{order}{kind}")
    expected = [1, -2, np.iinfo(np.int64).min]
    assert convert_as_planned(a, dtype="int64", copy=True).tolist() == expected
    assert ferry.from_numpy(a, dtype="int64").tolist() == expected


def test_the_error_about_dates_names_the_unit() -> None:
    assert "(us)" in refused_as_planned(np.array([datetime.datetime(2024, 1, 1)], "M8[us]"), to="torch").why


ONE_AND_A_BIT = np.longdouble(1) + np.longdouble(2) ** -24 + np.longdouble(2) ** -60


def test_extended_precision_is_rounded_once() -> None:
    a = np.array([ONE_AND_A_BIT, np.longdouble("1e4000"), np.longdouble("nan")])
    with np.errstate(over="ignore"):
        expected = a.astype(np.float32)
    assert np.array_equal(ferry.to_numpy(a, dtype="float32"), expected, equal_nan=True)
    assert np.array_equal(ferry.from_numpy(a, dtype="float32").numpy(), expected, equal_nan=True)


def test_extended_precision_becomes_integers_only_where_that_is_exact() -> None:
    assert ferry.to_numpy(np.array([3, -4], np.longdouble), dtype="int8", casting="unsafe").tolist() == [3, -4]
    error = refused_as_planned(np.array([2**62 + 1], np.longdouble) + 0, dtype="int64", casting="unsafe")
    assert isinstance(error, ferry.DTypeError)


def test_same_value_checks_extended_precision() -> None:
    exact = np.array([1.5, 2.0], np.longdouble)
    assert ferry.to_numpy(exact, dtype="float32", casting="same_value").tolist() == [1.5, 2.0]
    error = refused_as_planned(np.array([1.5, ONE_AND_A_BIT]), dtype="float32", casting="same_value")
    assert isinstance(error, ferry.PrecisionLossError)
    assert error.index == (1,)


def test_a_mask_is_never_dropped() -> None:
    a = np.ma.array([1.0, 2.0], mask=[False, True])
    assert ferry.to_numpy(a) is a
    for arguments in ({"copy": True}, {"dtype": "float32"}, {"copy": "lazy"}, {"out": np.zeros(2)}):
        error = refused_as_planned(a, **arguments)
        assert isinstance(error, ferry.DTypeError)
        assert "filled" in error.instead
    assert "filled" in refused_as_planned(a, to="torch").instead
    assert ferry.from_numpy(a.filled(0)).tolist() == [1, 0]


def test_a_destination_with_a_mask_is_refused() -> None:
    assert isinstance(refused_as_planned(torch.ones(2), out=np.ma.zeros(2)), ferry.ArgumentError)


def test_the_other_byte_order_is_kept_unless_a_dtype_is_asked_for() -> None:
    a = np.arange(3, dtype=">f4")
    assert convert_as_planned(a) is a
    for dtype in ("float32", "numpy"):
        converted = convert_as_planned(a, dtype=dtype)
        assert converted.dtype.isnative
        assert converted.tolist() == [0, 1, 2]
    assert isinstance(refused_as_planned(a, dtype="float32", copy=False), ferry.CopyRequiredError)


BUFFERS = {
    "bytearray": bytearray(b"ab"),
    "memoryview": memoryview(b"ab"),
    "array.array": array.array("B", b"ab"),
}


@pytest.mark.parametrize("buffer", BUFFERS.values(), ids=BUFFERS)
def test_buffers_are_arrays_of_bytes(buffer: Any) -> None:
    assert ferry.to_numpy(buffer).tolist() == [97, 98]
    assert not ferry.to_numpy(buffer).flags.writeable
    assert ferry.from_numpy(buffer).tolist() == [97, 98]
    assert ferry.to_numpy([buffer])[0].tolist() == [97, 98]


def test_bytes_are_an_array_at_the_top_and_a_value_in_a_nest() -> None:
    assert ferry.to_numpy(b"ab").tolist() == [97, 98]
    assert ferry.to_numpy([b"ab"]) == [b"ab"]


SCALARS = [np.float32(1.5), np.int64(3), np.bool_(True), np.complex64(1j), np.longdouble(1), np.datetime64("2024", "s")]


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda scalar: type(scalar).__name__)
def test_a_numpy_scalar_is_a_0d_array_at_the_top_and_a_value_in_a_nest(scalar: Any) -> None:
    converted = ferry.to_numpy(scalar)
    assert converted.shape == ()
    assert converted.dtype == scalar.dtype
    assert converted[()] == scalar
    assert ferry.to_numpy([scalar])[0] is scalar


def test_objects_with_the_array_protocols_are_read() -> None:
    class Interface:
        __array_interface__ = np.arange(3).__array_interface__

    class Method:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
            return np.arange(3)

    for x in (Interface(), Method()):
        assert ferry.to_numpy(x).tolist() == [0, 1, 2]
        assert ferry.to_numpy({"x": x})["x"].tolist() == [0, 1, 2]
        assert ferry.from_numpy(x).tolist() == [0, 1, 2]
