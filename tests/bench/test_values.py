"""Comparing results with what they must be, and poisoning destinations."""

from __future__ import annotations

from collections import OrderedDict

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from tensorferry.bench import close, poison, same

SMALL_FLOATS = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]


def from_bits(bits: np.ndarray, dtype: str) -> tuple[np.ndarray, torch.Tensor]:
    """Return an array and a tensor with the same bits."""
    signed = torch.from_numpy(bits.view(f"i{bits.itemsize}"))
    return bits.view(getattr(ml_dtypes, dtype)), signed.view(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", SMALL_FLOATS)
def test_every_value_of_a_small_float_is_equal_to_itself_as_array_and_tensor(dtype):
    width = ml_dtypes.finfo(getattr(ml_dtypes, dtype)).bits // 8
    bits = np.arange(256**width, dtype=f"u{width}")
    array, tensor = from_bits(bits, dtype)
    assert same(tensor, array) == bits.size
    assert same(array, tensor) == bits.size


@pytest.mark.parametrize("dtype", SMALL_FLOATS)
def test_one_wrong_bit_of_a_small_float_is_seen(dtype):
    width = ml_dtypes.finfo(getattr(ml_dtypes, dtype)).bits // 8
    bits = np.full(10, 0x31, f"u{width}")
    array, _ = from_bits(bits, dtype)
    bits = bits.copy()
    bits[7] ^= 1
    _, tensor = from_bits(bits, dtype)
    with pytest.raises(AssertionError, match=r"1 of 10 values differ, the first is .* at \(7,\)"):
        same(tensor, array)


@pytest.mark.parametrize(
    ("result", "expected", "count"),
    [
        pytest.param(np.array([1.0, np.nan]), np.array([1.0, np.nan]), 2, id="NaN"),
        pytest.param(np.array([complex(np.nan, 1)]), np.array([complex(np.nan, 1)]), 1, id="half of a complex NaN"),
        pytest.param(torch.ones(2, 3).t(), np.ones((3, 2), np.float32), 6, id="a transposed tensor and an array"),
        pytest.param(torch.tensor([1 + 2j]).conj(), np.array([1 - 2j], np.complex64), 1, id="a conjugated tensor"),
        pytest.param(np.float32(2), np.array(2, np.float32), 1, id="a number of NumPy and an array"),
        pytest.param([1, 2.5, "a", None], [1, 2.5, "a", None], 4, id="plain objects"),
        pytest.param(float("nan"), float("nan"), 1, id="a float NaN"),
        pytest.param(OrderedDict(b=np.ones(2), a=1), {"a": 1, "b": np.ones(2)}, 3, id="mappings in another order"),
        pytest.param(np.array(["NaT", 1], "M8[s]"), np.array(["NaT", 1], "M8[s]"), 2, id="NaT"),
        pytest.param(np.zeros((0, 3)), np.zeros((0, 3)), 0, id="nothing"),
        pytest.param(np.array([True, False]), torch.tensor([True, False]), 2, id="booleans"),
        pytest.param(torch.ones(2, requires_grad=True), torch.ones(2), 2, id="one that requires grad"),
    ],
)
def test_equal_results_pass_and_are_counted(result, expected, count):
    assert same(result, expected) == count


@pytest.mark.parametrize(
    ("result", "expected", "says"),
    [
        pytest.param(
            np.array([1, 2]), np.array([1, 3]), r"1 of 2 values differ, the first is 2 instead of 3", id="value"
        ),
        pytest.param(np.ones(2), np.ones(2, np.float32), "dtype float64, not float32", id="dtype"),
        pytest.param(np.ones((2, 1)), np.ones(2), r"shape \(2, 1\), not \(2,\)", id="shape"),
        pytest.param(np.array([np.nan]), np.array([1.0]), "1 of 1", id="NaN for a number"),
        pytest.param(np.array([1.0]), np.array([np.nan]), "1 of 1", id="a number for NaN"),
        pytest.param(np.array([1 + 2j]), np.array([1 - 2j]), "1 of 1", id="sign of the imaginary part"),
        pytest.param([np.ones(2)], (np.ones(2),), "a list, not a tuple", id="container"),
        pytest.param([1, 2], [1, 2, 3], "2 children, not 3", id="length"),
        pytest.param({"a": 1}, {"b": 1}, "other keys", id="keys"),
        pytest.param(
            {"a": [1, {"b": np.ones(2)}]}, {"a": [1, {"b": np.zeros(2)}]}, r"\['a'\]\[1\]\['b'\]: 2", id="depth"
        ),
        pytest.param(1, 1.0, "a int, not a float", id="type of a number"),
        pytest.param(1.0, 2.0, "1.0, not 2.0", id="number"),
        pytest.param([1.0], np.ones(1), "not an array", id="a list for an array"),
        pytest.param(np.array([165], np.uint8).view(bool), np.array([True]), "1 of 1", id="a bool of poison"),
    ],
)
def test_unequal_results_are_told_apart(result, expected, says):
    with pytest.raises(AssertionError, match=says):
        same(result, expected)


def test_close_allows_what_it_says_and_no_more():
    expected = np.array([100.0, 0.0, np.nan, np.inf])
    assert close(rtol=0.01, atol=0.1)(np.array([101.05, 0.1, np.nan, np.inf]), expected) == 4
    for wrong in (
        [101.2, 0, np.nan, np.inf],
        [100, 0.11, np.nan, np.inf],
        [100, 0, 0, np.inf],
        [100, 0, np.nan, 1e300],
    ):
        with pytest.raises(AssertionError, match="1 of 4"):
            close(rtol=0.01, atol=0.1)(np.array(wrong), expected)


def test_close_compares_unsigned_integers_without_wrapping():
    assert close(atol=1)(np.array([0, 255], np.uint8), np.array([1, 254], np.uint8)) == 2
    with pytest.raises(AssertionError):
        close(atol=1)(np.array([255], np.uint8), np.array([0], np.uint8))


def test_close_wants_the_same_dtype():
    with pytest.raises(AssertionError, match="dtype"):
        close(atol=9)(torch.ones(2).half(), np.ones(2, np.float32))


ARRAY_DTYPES = [np.dtype(name) for name in "?bBhHiIlLefdFDMm"] + [
    np.dtype(getattr(ml_dtypes, name)) for name in (*SMALL_FLOATS, "int4", "float4_e2m1fn")
]
ARRAY_DTYPES += [np.dtype(">f4"), np.dtype(">i2"), np.dtype([("a", "i4"), ("b", "u1")]), np.dtype("S3")]


@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=str)
@pytest.mark.parametrize("strided", [False, True], ids=["contiguous", "strided"])
def test_every_element_of_an_array_is_poisoned_and_nothing_between(dtype, strided):
    whole = np.zeros((6, 8), dtype)
    target = whole[::2, 1::3] if strided else whole
    assert poison(target) == target.size
    filled = np.frombuffer(whole.tobytes(), np.uint8).reshape(6, 8, -1).any(axis=-1)
    wanted = np.zeros((6, 8), bool)
    (wanted[::2, 1::3] if strided else wanted)[...] = True
    assert np.array_equal(filled, wanted)


def torch_dtypes() -> list[torch.dtype]:
    """All of torch's dtypes that a tensor of bytes can be seen as."""
    return sorted({found for found in vars(torch).values() if isinstance(found, torch.dtype)}, key=str)


@pytest.mark.parametrize("dtype", torch_dtypes(), ids=str)
def test_every_element_of_a_tensor_is_poisoned(dtype):
    memory = torch.zeros(16, 32, dtype=torch.uint8)
    target = memory.view(dtype)
    assert poison(target) == target.numel()
    width = target.element_size()
    assert memory.view(16, -1, width).any(dim=-1).all()
    if not (dtype.is_floating_point or dtype.is_complex) or width == 1:
        assert (memory == 0xA5).all()


def test_a_strided_tensor_is_poisoned_between_the_elements_of_others():
    whole = torch.zeros(6, 8, dtype=torch.int32)
    poison(whole[::2, ::3])
    assert int((whole != 0).sum()) == 9


def test_floats_are_poisoned_with_nan():
    array, tensor = np.zeros(3, np.float16), torch.zeros(3, dtype=torch.complex64)
    assert poison({"a": array, "b": [tensor], "c": "text"}) == 6
    assert np.isnan(array).all()
    assert tensor.isnan().all()


def test_a_read_only_destination_is_refused():
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with pytest.raises(ferry.ReadOnlyError, match="read-only array as destination"):
        poison(frozen)
