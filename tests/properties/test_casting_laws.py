"""Casts against NumPy and ml_dtypes: which are allowed, what comes out, and what "same_value" lets through."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorferry as ferry
from helpers.torch_dtypes import NUMPY_FLOATS, NUMPY_INTEGERS, NUMPY_NAMES
from tensorferry._dtypes import NATIVE

CASTINGS = ["no", "equiv", "safe", "same_kind", "unsafe", "same_value"]
ML_FLOATS = [name for name in NATIVE if hasattr(ml_dtypes, name) and "float" in name]

# NumPy and ml_dtypes warn about what these tests do on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore:(invalid value|overflow) encountered in cast:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Casting complex values to real discards"),
]

array_of = {name: hnp.arrays(name, st.integers(0, 9)) for name in NUMPY_NAMES}
pairs = st.sampled_from(list(itertools.product(NUMPY_NAMES, NUMPY_NAMES)))


@pytest.mark.parametrize("casting", CASTINGS)
@pytest.mark.parametrize("source", NUMPY_NAMES)
def test_the_casting_rules_are_numpys(source: str, casting: Any) -> None:
    x = torch.zeros(2, dtype=getattr(torch, source))
    for target in NUMPY_NAMES:
        allowed = casting == "same_value" or np.can_cast(source, target, casting)
        if allowed:
            assert ferry.plan(x, dtype=target, casting=casting).dtype == target
        else:
            with pytest.raises(ferry.DTypeError, match="casting"):
                ferry.plan(x, dtype=target, casting=casting)


@pytest.mark.parametrize("casting", ["no", "equiv", "safe"])
@pytest.mark.parametrize("source", ML_FLOATS)
def test_a_safe_cast_of_an_extension_dtype_keeps_every_value(source: str, casting: Any) -> None:
    dtype = np.dtype(getattr(ml_dtypes, source))
    patterns = np.arange(256**dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype)
    for target in ML_FLOATS + NUMPY_FLOATS:
        wanted = np.dtype(getattr(ml_dtypes, target, target))
        if not ferry._core.can_cast(source, target, casting):
            continue
        back = patterns.astype(wanted).astype(dtype)
        assert np.array_equal(back.astype("f8"), patterns.astype("f8"), equal_nan=True), target
        assert casting == "safe" or source == target


@given(data=st.data(), names=pairs)
def test_a_cast_that_numpy_defines_gives_numpys_values(data: st.DataObject, names: tuple[str, str]) -> None:
    source, target = names
    a = data.draw(array_of[source])
    with np.errstate(all="ignore"):
        expected = (
            a.real.astype(target)
            if a.dtype.kind == "c" and target not in ("complex64", "complex128", "bool")
            else a.astype(target)
        )
    if a.dtype.kind in "fc" and np.dtype(target).kind in "iu":
        limits = np.iinfo(target)
        inside = np.isfinite(a.real) & (a.real > float(limits.min) - 1) & (a.real < float(limits.max))
        a, expected = a[inside], expected[inside]
    array = ferry.to_numpy(a, dtype=target, casting="unsafe")
    assert array.dtype == target
    assert np.array_equal(array, expected, equal_nan=array.dtype.kind in "fc")


@given(a=hnp.arrays(st.sampled_from(NUMPY_FLOATS), st.integers(1, 9)), target=st.sampled_from(NUMPY_INTEGERS))
def test_floats_become_integers_toward_zero_saturating_with_nan_as_zero(a: np.ndarray[Any, Any], target: str) -> None:
    limits = np.iinfo(target)
    expected = [
        0 if np.isnan(v) else limits.max if v > limits.max else limits.min if v < limits.min else int(v)
        for v in a.tolist()
    ]
    assert ferry.to_numpy(a, dtype=target, casting="unsafe").tolist() == expected


@given(a=hnp.arrays(np.float32, st.integers(1, 9)), target=st.sampled_from([n for n in ML_FLOATS if n != "complex32"]))
def test_float32_rounds_to_extension_dtypes_as_ml_dtypes_does(a: np.ndarray[Any, Any], target: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, target))
    with np.errstate(all="ignore"):
        expected = a.astype(dtype).astype(np.float64)
    found = ferry.to_numpy(a, dtype=target, casting="unsafe")
    assert found.dtype == dtype
    assert np.array_equal(found.astype(np.float64), expected, equal_nan=True)


@given(data=st.data(), names=pairs)
def test_same_value_passes_exactly_when_every_value_survives(data: st.DataObject, names: tuple[str, str]) -> None:
    source, target = names
    a = data.draw(array_of[source])
    first = next((i for i, value in enumerate(a.tolist()) if not _survives(value, target)), None)
    if first is None:
        array = ferry.to_numpy(a, dtype=target, casting="same_value")
        assert np.array_equal(array, a.astype(target), equal_nan=array.dtype.kind in "fc")
    else:
        with pytest.raises(ferry.PrecisionLossError, match=rf"index \({first},\)") as caught:
            ferry.to_numpy(a, dtype=target, casting="same_value")
        assert caught.value.index == (first,)


def _survives(value: complex, target: str) -> bool:
    """By Python's exact comparison of numbers of any kind."""
    dtype = np.dtype(target)
    if isinstance(value, complex):
        if dtype.kind == "c":
            part = "float32" if target == "complex64" else "float64"
            return _survives(value.real, part) and _survives(value.imag, part)
        return value.imag == 0 and _survives(value.real, target)
    if value != value:
        return dtype.kind in "fc"
    if dtype.kind == "b":
        return value in (0, 1)
    if dtype.kind in "iu":
        limits = np.iinfo(target)
        return abs(value) != float("inf") and limits.min <= value <= limits.max and int(value) == value
    with np.errstate(all="ignore"):
        part = np.dtype({"complex64": "float32", "complex128": "float64"}.get(target, target)).type
        if isinstance(value, int) and abs(value) > 2**64:
            return False
        return float(part(value)) == value


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2)], ids=["matrix", "cube"])
@pytest.mark.parametrize("transposed", [False, True], ids=["in C order", "transposed"])
def test_same_value_names_the_first_offending_index_in_c_order(shape: tuple[int, ...], transposed: bool) -> None:
    x = torch.arange(int(np.prod(shape))).reshape(shape).float()
    x = x.permute(*reversed(range(x.ndim))) if transposed else x
    offending = [tuple(int(i) for i in index) for index in np.ndindex(*x.shape)][5::3]
    for index in offending:
        x[index] = 0.5
    with pytest.raises(ferry.PrecisionLossError) as caught:
        ferry.to_numpy(x, dtype="int16", casting="same_value")
    assert caught.value.index == offending[0]
    assert str(offending[0]) in str(caught.value)
    assert caught.value.why
