"""Field cases: element types that NumPy has no name for, or that torch barely knows."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry

pytestmark = pytest.mark.filterwarnings("ignore::tensorferry.ExtensionDTypeWarning")

EIGHT_BITS = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]


def _every_value(name: str) -> torch.Tensor:
    if name == "bfloat16":
        return torch.from_numpy(np.arange(65536, dtype=np.uint16).view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(np.arange(256, dtype=np.uint8)).view(getattr(torch, name))


def _bits(name: str) -> np.ndarray:
    return np.arange(65536, dtype=np.uint16) if name == "bfloat16" else np.arange(256, dtype=np.uint8)


# NumPy has no such types, so torch refuses; people reinterpret the bits by hand and carry the dtype beside them.
@pytest.mark.parametrize("name", ["bfloat16", *EIGHT_BITS])
def test_f020_f021_small_floats_share_memory_as_ml_dtypes(name):
    tensor = _every_value(name)
    array = ferry.to_numpy(tensor, copy=False)
    assert array.dtype == np.dtype(getattr(ml_dtypes, name))
    assert array.ctypes.data == tensor.data_ptr()
    np.testing.assert_array_equal(array.view(_bits(name).dtype), _bits(name))


@pytest.mark.parametrize("name", ["bfloat16", *EIGHT_BITS])
def test_f020_f021_every_small_float_upcasts_exactly(name):
    tensor = _every_value(name)
    smallest = ferry.to_numpy(tensor, dtype="numpy")
    expected = tensor.to(torch.float32).numpy()
    assert smallest.dtype.isbuiltin == 1
    np.testing.assert_array_equal(smallest.astype(np.float32), expected)
    np.testing.assert_array_equal(ferry.to_numpy(tensor, dtype="float32"), expected)


@pytest.mark.parametrize("name", ["bfloat16", *EIGHT_BITS])
def test_f020_f021_bits_are_shared_as_unsigned_integers(name):
    tensor = _every_value(name)
    bits = ferry.to_numpy(tensor, dtype="bits", copy=False)
    assert bits.dtype == _bits(name).dtype
    assert bits.ctypes.data == tensor.data_ptr()
    np.testing.assert_array_equal(bits, _bits(name))


@pytest.mark.parametrize("name", ["bfloat16", *EIGHT_BITS])
@pytest.mark.parametrize("copy", [None, True])
def test_f020_f021_small_floats_go_there_and_back_bit_for_bit(name, copy):
    source = _bits(name).view(getattr(ml_dtypes, name))
    tensor = ferry.from_numpy(source, copy=copy)
    assert tensor.dtype is getattr(torch, name)
    assert (tensor.data_ptr() == source.ctypes.data) is (copy is None)
    np.testing.assert_array_equal(ferry.to_numpy(tensor).view(_bits(name).dtype), _bits(name))


@pytest.mark.parametrize("name", ["bfloat16", *EIGHT_BITS])
def test_f020_f021_strided_and_transposed_small_floats_keep_their_values(name):
    grid = _every_value(name)[:240].reshape(12, 20)
    expected = _bits(name)[:240].reshape(12, 20)
    for view, wanted in [(grid.t(), expected.T), (grid[::2, 1::3], expected[::2, 1::3])]:
        np.testing.assert_array_equal(ferry.to_numpy(view).view(wanted.dtype), wanted)
        np.testing.assert_array_equal(ferry.to_numpy(view, order="C").view(wanted.dtype), wanted)


# complex32 has no counterpart at all; a refusal must name both ways out, so there is none.
def test_f022_complex_half_widens_exactly():
    z = torch.tensor([[1.5 - 2j, 0.25 + 65504j], [float("inf") * 1j, -0.0 + 0j]], dtype=torch.complex32)
    array = ferry.to_numpy(z)
    assert array.dtype == np.complex64
    np.testing.assert_array_equal(array, z.to(torch.complex64).numpy())
    np.testing.assert_array_equal(ferry.to_numpy(z.t(), dtype="complex128"), z.t().to(torch.complex128).numpy())


def test_f022_complex_half_gives_its_bits_or_a_pair_of_halves():
    z = torch.tensor([1.5 - 2j, 0.25 + 4j], dtype=torch.complex32)
    halves = ferry.to_numpy(torch.view_as_real(z), copy=False)
    assert halves.dtype == np.float16
    np.testing.assert_array_equal(halves, [[1.5, -2], [0.25, 4]])
    bits = ferry.to_numpy(z, dtype="bits")
    np.testing.assert_array_equal(bits.view(np.float16).reshape(2, 2), halves)


def test_f022_a_refused_share_of_complex_half_names_the_widening():
    with pytest.raises(ferry.CopyRequiredError, match="complex64"):
        ferry.to_numpy(torch.zeros(2, dtype=torch.complex32), copy=False)


# Depth maps and 16-bit images are unsigned; many torch operations do not exist for them.
@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_f023_unsigned_integers_share_memory_both_ways(name):
    info = np.iinfo(name)
    array = np.array([0, 1, info.max // 2 + 1, info.max], name)
    tensor = ferry.from_numpy(array)
    assert tensor.dtype is getattr(torch, name)
    assert tensor.data_ptr() == array.ctypes.data
    back = ferry.to_numpy(tensor, copy=False)
    assert back.dtype == np.dtype(name)
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
@pytest.mark.parametrize("target", ["float32", "float64", "int32", "int64"])
def test_f023_unsigned_integers_convert_in_the_same_call_both_ways(name, target):
    array = np.array([[0, 1, 65535], [40000, 2, 3]], name)[:, ::-1]
    tensor = ferry.from_numpy(array, dtype=target, casting="unsafe")
    assert tensor.dtype is getattr(torch, target)
    np.testing.assert_array_equal(tensor.numpy(), array.astype(target))
    np.testing.assert_array_equal(
        ferry.to_numpy(ferry.from_numpy(array.copy()), dtype=target, casting="unsafe"), array.astype(target)
    )


# Doubles must not be narrowed in silence, nor singles widened.
@pytest.mark.parametrize("name", ["float16", "float32", "float64", "int8", "int64", "uint16", "complex128", "bool"])
@pytest.mark.parametrize("copy", [None, True])
def test_f049_dtypes_never_change_unasked(name, copy):
    array = np.array([0, 1], name)
    tensor = ferry.from_numpy(array, copy=copy)
    assert tensor.dtype is getattr(torch, name)
    assert ferry.to_numpy(tensor, copy=copy).dtype == np.dtype(name)


def test_f049_torchs_default_dtype_and_device_do_not_touch_a_conversion():
    torch.set_default_dtype(torch.float64)
    try:
        assert ferry.from_numpy(np.ones(2, np.float32)).dtype is torch.float32
        with torch.device("meta"):
            tensor = ferry.from_numpy(np.array([1.0, 2.0])[::-1], copy=True)
    finally:
        torch.set_default_dtype(torch.float32)
    assert tensor.device.type == "cpu"
    assert tensor.tolist() == [2.0, 1.0]


def test_f049_an_asked_for_dtype_is_converted_in_one_call():
    array = np.array([1.0, 0.1, 1e300])
    with np.errstate(over="ignore"):
        expected = array.astype(np.float32)
    assert ferry.from_numpy(array, dtype="float32").numpy().tolist() == expected.tolist()
    with pytest.raises(ferry.PrecisionLossError, match=r"\(1,\)"):
        ferry.from_numpy(array, dtype=torch.float32, casting="same_value")
