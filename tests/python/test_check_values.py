"""``check`` of values: counts, first index and value, held against NumPy and torch."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tensorferry as ferry
from helpers.violations import violations
from tensorferry._check.check import check

NAN, INF = float("nan"), float("inf")
SPECIAL = [0.0, NAN, 1.5, INF, -2.0, -INF]
INT64_MAX, INT64_MIN, UINT64_MAX = 2**63 - 1, -(2**63), 2**64 - 1


class _Items:
    """Indexes an array and gives Python numbers."""

    def __init__(self, x):
        self.x = x

    def __getitem__(self, index):
        return self.x[index].item()


def sentence(bad, values, what):
    """The violation that a mask of bad elements calls for, or none."""
    if not bad.any():
        return ()
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    count = int(bad.sum())
    verb = "is" if count == 1 else "are"
    return (f"{count:,} of {bad.size:,} values {verb} {what}: the first, at index {index}, is {values[index]!r}",)


def found(x, **requirements):
    try:
        assert check(x, **requirements) is x
    except ferry.CheckError as error:
        return error.violations
    return ()


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e5m2, torch.complex64, torch.complex128],
    ids=str,
)
def test_finiteness_of_every_floating_format(dtype):
    x = torch.tensor(SPECIAL).reshape(2, 3).to(dtype)
    wide = x.to(torch.complex128 if dtype.is_complex else torch.float64).numpy()
    assert violations(x, finite=True) == sentence(~np.isfinite(wide), _Items(wide), "not finite")


def test_formats_without_infinity_have_nan_only():
    x = torch.tensor([1.0, NAN, 448.0]).to(torch.float8_e4m3fn)
    assert violations(x, finite=True) == ("1 of 3 values is not finite: the first, at index (1,), is nan",)


def test_either_part_of_a_complex_number_counts():
    x = np.array([1 + 1j, complex(0, INF), complex(NAN, 0)])
    (only,) = violations(x, finite=True)
    assert only == f"2 of 3 values are not finite: the first, at index (1,), is {complex(0, INF)!r}"


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64], ids=str)
def test_integers_are_always_finite(dtype):
    x = torch.ones(3, dtype=dtype)
    assert check(x, finite=True) is x


@pytest.mark.parametrize(
    ("x", "index", "value"),
    [
        pytest.param(np.array([0, 1, NAN, 3])[::-1], (1,), "nan", id="negative stride"),
        pytest.param(np.array([[0, 1], [INF, 3]]).T, (0, 1), "inf", id="transposed"),
        pytest.param(np.array([0.0, -INF], ">f4"), (1,), "-inf", id="big-endian"),
        pytest.param(np.array([0.0, -INF], "<f8"), (1,), "-inf", id="little-endian"),
        pytest.param(np.array(NAN), (), "nan", id="no axes"),
        pytest.param(np.float32(INF), (), "inf", id="scalar"),
        pytest.param(torch.tensor([[0.0], [NAN]]).expand(2, 3), (1, 0), "nan", id="expanded"),
        pytest.param(torch.tensor([1 + 1j, complex(1, INF)]).conj().imag, (1,), "-inf", id="negative view"),
        pytest.param(torch.tensor([1 + 1j, complex(1, INF)]).conj(), (1,), "(1-infj)", id="conjugate view"),
        pytest.param(torch._neg_view(torch.tensor([1, INF]).bfloat16()), (1,), "-inf", id="negative bfloat16 view"),
        pytest.param(torch.tensor([1.0, NAN], requires_grad=True), (1,), "nan", id="requires grad"),
        pytest.param(np.array([1, NAN], ml_dtypes.bfloat16), (1,), "nan", id="ml_dtypes"),
        pytest.param(np.array([1, INF], np.longdouble), (1,), repr(np.longdouble(INF)), id="long double"),
        pytest.param(np.array(["2020", "NaT"], "M8[D]"), (1,), "'NaT'", id="dates"),
    ],
)
def test_the_first_offender_is_found_by_its_logical_index(x, index, value):
    (only,) = violations(x, finite=True)
    assert only.endswith(f" not finite: the first, at index {index}, is {value}")


def test_empty_tensors_have_no_offender():
    x = torch.empty(0, 3)
    assert check(x, finite=True, range=(5, 5)) is x


def test_values_under_a_mask_do_not_count():
    x = np.ma.array([1.0, NAN, 3.0, INF], mask=[False, True, False, False])
    assert violations(x, finite=True) == ("1 of 3 values is not finite: the first, at index (3,), is inf",)
    assert violations(x[:3], range=(0, 2)) == ("1 of 2 values is outside of [0, 2]: the first, at index (2,), is 3.0",)


def test_zero_tensors_are_read_as_zeros():
    x = torch._efficientzerotensor((2, 3))
    assert check(x, finite=True, range=(0, 0)) is x
    (only,) = violations(x, range=(1, None))
    assert only == "6 of 6 values are outside of [1, inf): the first, at index (0, 0), is 0.0"


@pytest.mark.parametrize(
    ("limits", "text", "expected"),
    [
        pytest.param((0, 1), "[0, 1]", ["3 of 5", (0,), "-0.5"], id="both bounds belong to it"),
        pytest.param((None, 1), "(-inf, 1]", ["2 of 5", (3,), "1.5"], id="no low bound"),
        pytest.param((0.0, None), "[0.0, inf)", ["2 of 5", (0,), "-0.5"], id="no high bound"),
        pytest.param((None, None), "(-inf, inf)", ["1 of 5", (4,), "nan"], id="no bound, NaN is outside still"),
        pytest.param([np.int8(0), np.float32(1)], "[0, 1.0]", ["3 of 5", (0,), "-0.5"], id="NumPy bounds"),
    ],
)
def test_ranges(limits, text, expected):
    count, index, value = expected
    verb = "is" if count.startswith("1 ") else "are"
    for x in (np.array([-0.5, 0, 1, 1.5, NAN]), torch.tensor([-0.5, 0, 1, 1.5, NAN]).half()):
        assert violations(x, range=limits) == (
            f"{count} values {verb} outside of {text}: the first, at index {index}, is {value}",
        )


def test_infinities_are_inside_of_an_open_range():
    x = np.array([-INF, INF])
    assert check(x, range=(None, None)) is x
    assert violations(x, range=(None, 1e308))[0].startswith("1 of 2 values is outside of (-inf, 1e+308]")


@pytest.mark.parametrize(
    ("values", "dtype", "limits", "outside"),
    [
        pytest.param([INT64_MAX, 0], torch.int64, (0, INT64_MAX), [], id="int64 up to its largest"),
        pytest.param([INT64_MAX, 0], torch.int64, (0, INT64_MAX - 1), [0], id="one below the largest int64"),
        pytest.param([INT64_MAX, 0], torch.int64, (0, float(INT64_MAX)), [], id="largest int64 against its float"),
        pytest.param([INT64_MAX, 0], torch.int64, (0, np.nextafter(2.0**63, 0)), [0], id="the float below 2**63"),
        pytest.param([INT64_MIN, 0], torch.int64, (-(2.0**63), 0), [], id="smallest int64 against its float"),
        pytest.param([INT64_MIN, 0], torch.int64, (INT64_MIN + 1, 0), [0], id="one above the smallest int64"),
        pytest.param([2**53, 2**53 + 1], torch.int64, (None, 2**53), [1], id="beyond double precision"),
        pytest.param([2**53, 2**53 + 1], torch.int64, (2**53 + 1, None), [0], id="a bound no double holds"),
        pytest.param([2**60 + 1, 0], torch.int64, (0.5, 2**60 + 3), [1], id="a fraction and a long bound"),
        pytest.param([UINT64_MAX, 5], torch.uint64, (5, UINT64_MAX), [], id="uint64 up to its largest"),
        pytest.param([UINT64_MAX, 5], torch.uint64, (5, UINT64_MAX - 1), [0], id="one below the largest uint64"),
        pytest.param([UINT64_MAX, 5], torch.uint64, (-1, 2.0**64), [], id="uint64 below 2.0**64"),
        pytest.param([UINT64_MAX, 5], torch.uint64, (None, -1), [0, 1], id="uint64 below zero"),
        pytest.param([0, 1], torch.int64, (10**400, None), [0, 1], id="a bound beyond every float"),
        pytest.param([0, 1], torch.int64, (-(10**400), 10**400), [], id="bounds beyond every float"),
        pytest.param([127, -128], torch.int8, (-127.5, 126.5), [0, 1], id="int8 against fractions"),
        pytest.param([True, False], torch.bool, (1, 1), [1], id="bool"),
        pytest.param([255, 0], torch.uint8, (1, 10**30), [1], id="uint8 against a long bound"),
    ],
)
def test_integers_are_compared_exactly(values, dtype, limits, outside):
    tensor = torch.tensor(values, dtype=dtype)
    backwards = np.array(tensor.numpy()[::-1])[::-1]
    for x in (tensor, tensor.numpy(), backwards):
        if not outside:
            assert check(x, range=limits) is x
            continue
        (only,) = violations(x, range=limits)
        assert only.startswith(f"{len(outside)} of 2 values ")
        assert only.endswith(f"the first, at index ({outside[0]},), is {values[outside[0]]!r}")


@pytest.mark.parametrize(
    ("value", "limits", "inside"),
    [
        pytest.param(2.0**53, (None, 2**53 - 1), False, id="bound below"),
        pytest.param(2.0**53, (None, 2**53 + 1), True, id="bound between two doubles, from above"),
        pytest.param(2.0**53, (2**53 + 1, None), False, id="bound between two doubles, from below"),
        pytest.param(INF, (None, 10**400), False, id="infinity is beyond every integer"),
        pytest.param(-INF, (-(10**400), None), False, id="minus infinity is below every integer"),
        pytest.param(1.7e308, (None, 10**400), True, id="the largest doubles are below 10**400"),
    ],
)
def test_integer_bounds_of_floating_values_are_exact(value, limits, inside):
    assert (found(np.array([value]), range=limits) == ()) is inside


bounds = st.one_of(st.none(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False))


def _inside(value, low, high):
    """Compare as rational numbers, with no rounding anywhere."""

    def exact(number):
        return number if isinstance(number, float) and math.isinf(number) else Fraction(number)

    return (low is None or exact(low) <= exact(value)) and (high is None or exact(value) <= exact(high))


@given(
    dtype=st.sampled_from([np.int64, np.uint64, np.int8, np.float64, np.float32]),
    raw=st.lists(st.integers(0, 255), min_size=16, max_size=48),
    low=bounds,
    high=bounds,
)
def test_ranges_agree_with_rational_arithmetic(dtype, raw, low, high):
    if low is not None and high is not None and low > high:
        low, high = high, low
    x = np.array(raw[: len(raw) // 8 * 8], np.uint8).view(dtype)
    bad = np.array([math.isnan(v) or not _inside(v, low, high) for v in x.tolist()])
    limits = f"{'(-inf' if low is None else f'[{low!r}'}, {'inf)' if high is None else f'{high!r}]'}"
    assert found(x, range=(low, high)) == sentence(bad, _Items(x), f"outside of {limits}")


@given(seed=st.integers(0, 2**32 - 1), axis=st.integers(0, 2))
def test_counts_and_indices_agree_with_torch_on_strided_tensors(seed, axis):
    generator = torch.Generator().manual_seed(seed)
    whole = torch.randn(5, 6, 7, generator=generator)
    whole[whole > 1.2] = NAN
    x = whole.movedim(axis, 0)[1::2, ::3]
    bad = (~torch.isfinite(x)).numpy()
    assert found(x, finite=True) == sentence(bad, _Items(x), "not finite")
    outside = (~((x >= -0.5) & (x <= 0.5))).numpy()
    assert found(x, range=(-0.5, 0.5)) == sentence(outside, _Items(x), "outside of [-0.5, 0.5]")


@pytest.mark.parametrize(
    ("x", "requirement", "words"),
    [
        pytest.param(np.array([1j]), {"range": (0, 1)}, "complex numbers have no order", id="range of complex numbers"),
        pytest.param(np.array([None]), {"finite": True}, "NumPy cannot tell", id="finiteness of objects"),
        pytest.param(np.array(["a"]), {"range": (0, 1)}, "NumPy cannot tell", id="range of text"),
        pytest.param(np.array(["2020"], "M8[D]"), {"range": (0, 1)}, "NumPy cannot tell", id="range of dates"),
    ],
)
def test_a_question_that_a_dtype_cannot_answer_is_a_violation_that_says_so(x, requirement, words):
    (only,) = violations(x, **requirement)
    assert "cannot be checked" in only
    assert words in only


def test_packed_float4_is_counted_unpacked():
    x = torch.tensor([[0x21, 0x7F]], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)  # 0.5, 1.0, -6.0, 6.0
    assert violations(x, range=(0, 6)) == ("1 of 4 values is outside of [0, 6]: the first, at index (0, 2), is -6.0",)
