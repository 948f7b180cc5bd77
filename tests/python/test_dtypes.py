"""All 46 torch dtypes: the table, exact conversion or a refusal with a remedy, and the way back."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers import torch_dtypes as dtypes
from helpers.plans import convert_as_planned, refused_as_planned
from tensorferry._dtypes import NATIVE, TORCH

by_name = dtypes.name_of


def test_the_table_lists_exactly_torchs_dtypes() -> None:
    assert set(TORCH) == {by_name(dtype) for dtype in dtypes.ALL}
    assert len(TORCH) == 46


@pytest.mark.parametrize("dtype", dtypes.CONVERTIBLE, ids=by_name)
def test_the_table_tells_the_dtype_of_the_array(dtype: torch.dtype) -> None:
    assert TORCH[by_name(dtype)].array == dtypes.array_dtype(dtype).name
    assert ferry.to_numpy(dtypes.sample(dtype)).dtype == dtypes.array_dtype(dtype)


@pytest.mark.parametrize("dtype", dtypes.NUMPY_HAS, ids=by_name)
def test_a_dtype_that_numpy_has_is_shared_bit_for_bit(dtype: torch.dtype) -> None:
    x = dtypes.sample(dtype)
    array = convert_as_planned(x)
    assert np.array_equal(array.reshape(-1).view(np.uint8), dtypes.raw_bytes(x))
    assert np.array_equal(array, x.numpy(), equal_nan=array.dtype.kind in "fc")
    assert array.ctypes.data == x.data_ptr()


@pytest.mark.parametrize("dtype", dtypes.ML_FLOATS, ids=by_name)
def test_a_float_that_numpy_lacks_is_shared_bit_for_bit_as_ml_dtypes_has_it(dtype: torch.dtype) -> None:
    x = dtypes.sample(dtype)
    array = convert_as_planned(x)
    assert np.array_equal(array.reshape(-1).view(np.uint8), dtypes.raw_bytes(x))
    assert np.array_equal(array.astype(np.float32), x.to(torch.float32).numpy(), equal_nan=True)
    assert array.ctypes.data == x.data_ptr()


@pytest.mark.parametrize("dtype", dtypes.ML_FLOATS, ids=by_name)
def test_numpy_as_dtype_holds_every_value_of_a_small_float(dtype: torch.dtype) -> None:
    x = dtypes.sample(dtype)
    array = convert_as_planned(x, dtype="numpy")
    assert array.dtype in (np.dtype(np.float16), np.dtype(np.float32))
    assert np.array_equal(array.astype(np.float32), x.to(torch.float32).numpy(), equal_nan=True)


@pytest.mark.parametrize("dtype", dtypes.SMALL_INTEGERS, ids=by_name)
def test_small_integers_keep_one_value_a_byte(dtype: torch.dtype) -> None:
    low, high = dtypes.small_integer_range(dtype)
    array = convert_as_planned(dtypes.sample(dtype))
    expected = (np.arange(256) % (high - low + 1) + low).reshape(2, 4, -1)
    assert np.array_equal(array.astype(np.int64), expected)


@pytest.mark.parametrize("dtype", dtypes.SMALL_INTEGERS, ids=by_name)
def test_numpy_as_dtype_gives_small_integers_in_eight_bits(dtype: torch.dtype) -> None:
    array = convert_as_planned(dtypes.sample(dtype), dtype="numpy")
    assert array.dtype == (np.uint8 if by_name(dtype).startswith("u") else np.int8)
    assert np.array_equal(array, ferry.to_numpy(dtypes.sample(dtype)).astype(np.int64))


@pytest.mark.parametrize("dtype", dtypes.BITS, ids=by_name)
def test_raw_bits_come_as_unsigned_integers(dtype: torch.dtype) -> None:
    x = dtypes.sample(dtype)
    array = convert_as_planned(x)
    unsigned = torch.uint8 if dtype.itemsize == 1 else torch.uint16
    assert np.array_equal(array, x.view(unsigned).numpy())


def test_complex32_widens_exactly_and_the_plan_says_so() -> None:
    x = dtypes.sample(torch.complex32)
    array = convert_as_planned(x)
    parts = torch.view_as_real(x).numpy().astype(np.float32)
    assert np.array_equal(np.stack([array.real, array.imag], -1), parts, equal_nan=True)
    assert "complex32" in ferry.plan(x).reason


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_a_conjugate_complex32_is_conjugated() -> None:
    x = torch.tensor([1 + 2j, -3 + 0.5j], dtype=torch.complex32)
    assert convert_as_planned(x.conj()).tolist() == [1 - 2j, -3 - 0.5j]


def test_packed_float4_unpacks_along_the_last_axis_low_nibble_first() -> None:
    x = dtypes.sample(torch.float4_e2m1fn_x2)
    array = convert_as_planned(x)
    codes = np.arange(256, dtype=np.uint8)
    expected = dtypes.FLOAT4_VALUES[np.stack([codes & 15, codes >> 4], -1)].reshape(2, 4, 64)
    assert array.dtype == ml_dtypes.float4_e2m1fn
    assert np.array_equal(array.astype(np.float32), expected)
    assert np.array_equal(np.signbit(array.astype(np.float32)), np.signbit(expected))


def test_packed_float4_without_an_axis_is_refused() -> None:
    x = torch.zeros((), dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    assert isinstance(refused_as_planned(x), ferry.LayoutError)


def test_strided_packed_float4_unpacks_each_byte_in_place() -> None:
    x = dtypes.sample(torch.float4_e2m1fn_x2)
    whole = ferry.to_numpy(x).astype(np.float32).reshape(2, 4, 32, 2)
    for part, expected in (
        (x[:, ::2, 1::3], whole[:, ::2, 1::3]),
        (x.permute(2, 0, 1), whole.transpose(2, 0, 1, 3)),
    ):
        found = convert_as_planned(part).astype(np.float32)
        assert np.array_equal(found, expected.reshape(*expected.shape[:-2], -1))


@pytest.mark.parametrize("dtype", dtypes.QUANTIZED, ids=by_name)
def test_a_quantised_dtype_is_refused_naming_the_remedies(dtype: torch.dtype) -> None:
    x = torch.empty(2, 4, dtype=dtype)
    error = refused_as_planned(x)
    assert isinstance(error, ferry.DTypeError)
    assert "dequantize()" in error.instead
    assert "int_repr()" in error.instead


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("dtype", dtypes.CONVERTIBLE, ids=by_name)
def test_from_numpy_takes_back_what_to_numpy_gave(dtype: torch.dtype) -> None:
    x = dtypes.sample(dtype)
    array = ferry.to_numpy(x, copy=True)
    back = convert_as_planned(array, to="torch")
    again = ferry.to_numpy(back)
    assert again.dtype == array.dtype
    assert np.array_equal(again.astype("c16"), array.astype("c16"), equal_nan=True)
    maps_back = array.dtype.name == by_name(dtype) or dtype is torch.float4_e2m1fn_x2
    assert (back.dtype is dtype) == maps_back
    if maps_back and dtype not in dtypes.SMALL_INTEGERS:  # ml_dtypes ignores the unused high bits of those
        assert np.array_equal(dtypes.raw_bytes(back), dtypes.raw_bytes(x))


@pytest.mark.parametrize("dtype", [d for d in dtypes.CONVERTIBLE if d.itemsize < 16], ids=by_name)
def test_bits_are_the_bytes_of_memory(dtype: torch.dtype) -> None:
    x = dtypes.sample(dtype)
    array = convert_as_planned(x, dtype="bits")
    assert array.dtype == np.dtype(f"u{dtype.itemsize}")
    assert array.shape == tuple(x.shape)
    assert np.array_equal(array.reshape(-1).view(np.uint8), dtypes.raw_bytes(x))


def test_sixteen_bytes_have_no_bits_dtype() -> None:
    error = refused_as_planned(torch.zeros(2, dtype=torch.complex128), dtype="bits")
    assert isinstance(error, ferry.DTypeError)
    assert "view_as_real" in error.instead


@pytest.mark.parametrize("name", [name for name in NATIVE if hasattr(ml_dtypes, name)])
def test_every_ml_dtype_becomes_a_tensor_or_is_refused_naming_one_that_holds_it(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    array = np.arange(4).astype(dtype)
    if name in TORCH or name == "float4_e2m1fn":
        tensor = convert_as_planned(array, to="torch")
        assert np.array_equal(ferry.to_numpy(tensor).astype("c8"), array.astype("c8"), equal_nan=True)
        return
    error = refused_as_planned(array, to="torch")
    assert isinstance(error, ferry.DTypeError)
    remedy = error.instead.split('"')[1]
    assert ferry.from_numpy(array, dtype=remedy).tolist() == array.astype(np.float64).tolist()


def test_float4_packs_in_pairs_and_needs_an_even_last_axis() -> None:
    array = np.array([[0.5, 1, 1.5, -6]], ml_dtypes.float4_e2m1fn)
    tensor = convert_as_planned(array, to="torch")
    assert tensor.dtype is torch.float4_e2m1fn_x2
    assert tensor.view(torch.uint8).tolist() == [[1 | 2 << 4, 3 | 15 << 4]]
    assert isinstance(refused_as_planned(array[:, :3], to="torch"), ferry.LayoutError)
