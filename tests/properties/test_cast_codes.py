"""Every value of the small formats, and those where roundings go wrong, cast at every processor level.

The oracles are NumPy's and ml_dtypes' single roundings, and Python's exact arithmetic where those round twice.
"""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tensorferry as ferry
from helpers.subprocess import stdout_of

Array = np.ndarray[Any, Any]

LEVELS = ["portable", "avx2", "avx512"]  # a processor that lacks one takes the next lower
FLOAT8 = [
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]
SMALL = ["float16", "bfloat16", *FLOAT8]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]

pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def dtype_of(name: str) -> np.dtype[Any]:
    """Return NumPy's dtype, or that of ml_dtypes."""
    return np.dtype(getattr(ml_dtypes, name, name))


def every_code(name: str) -> Array:
    """Return all values of a dtype of one or two bytes."""
    dtype = dtype_of(name)
    return np.arange(256**dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype)


def widened(a: Array) -> Array:
    """Return the exact values as float64."""
    return a.astype(np.float32).astype(np.float64)


def assert_same(found: Array, expected: Array) -> None:
    """Compare bits, but take one NaN for another of the same sign."""
    assert found.dtype == expected.dtype
    bits = f"u{expected.dtype.itemsize}"
    agree = found.view(bits) == expected.view(bits)
    with np.errstate(all="ignore"):
        both_nan = np.isnan(widened(found)) & np.isnan(widened(expected))
    agree |= both_nan & (np.signbit(widened(found)) == np.signbit(widened(expected)))
    wrong = np.flatnonzero(~agree)
    assert wrong.size == 0, (wrong[:5], found[wrong[:5]], expected[wrong[:5]])


def cast(a: Array, name: str) -> Array:
    """Cast by the package."""
    return ferry.to_numpy(a, dtype=name, casting="unsafe")


def neighbours(values: Array) -> Array:
    """Return float64 values, what lies half way between them, and the closest float64 on both sides of each."""
    finite = np.unique(np.abs(values[np.isfinite(values)]))
    halves = (finite[1:] + finite[:-1]) / 2
    around = np.concatenate([finite, halves, [finite[-1] * 1.5, 0.0, 1e300, 5e-324, np.inf]])
    around = np.concatenate([around, np.nextafter(around, np.inf), np.nextafter(around, 0)])
    return np.concatenate([around, -around])


def rounded(values: Array, name: str) -> Array:
    """Round float64 once: where float32 would round first, it is moved off the tie that it would land on."""
    single = values.astype(np.float32)
    exact = single.astype(np.float64)
    inexact = np.isfinite(single) & (exact != values)
    beyond = np.isinf(single) & np.isfinite(values)
    bits = single.view(np.uint32).copy()
    bits[inexact & (np.abs(exact) > np.abs(values))] -= 1
    bits[beyond] -= 1
    bits[inexact | beyond] |= 1
    return bits.view(np.float32).astype(dtype_of(name))


def check_widening() -> None:
    for source in SMALL:
        a = every_code(source)
        assert_same(cast(a, "float32"), a.astype(np.float32))
        assert_same(cast(a, "float64"), a.astype(np.float32).astype(np.float64))


def check_narrowing() -> None:
    for target in SMALL:
        values = neighbours(widened(every_code(target)))
        singles = np.unique(values.astype(np.float32))
        assert_same(cast(singles, target), singles.astype(dtype_of(target)))
        assert_same(cast(values, target), rounded(values, target))


def check_small_to_small() -> None:
    for source, target in itertools.permutations(SMALL, 2):
        a = every_code(source)
        assert_same(cast(a, target), a.astype(np.float32).astype(dtype_of(target)))


def check_small_to_integers() -> None:
    for source, target in itertools.product(SMALL, INTEGERS):
        limits = np.iinfo(target)
        a = every_code(source)
        expected = [
            0 if v != v else limits.max if v >= limits.max else limits.min if v <= limits.min else int(v)
            for v in widened(a).tolist()
        ]
        assert cast(a, target).tolist() == expected, (source, target)


def whole_numbers(source: str) -> Array:
    """Return integers around powers of two and around what lies half way between two small floats."""
    limits = np.iinfo(source)
    powers = [1 << shift for shift in range(limits.bits)]
    ties = [power + (power >> digits) * odd for power in powers for digits in range(1, 26) for odd in (1, 3)]
    numbers = {value + off for value in (*powers, *ties) for off in (-1, 0, 1)}
    numbers |= {-value for value in numbers}
    return np.array(sorted(v for v in numbers if limits.min <= v <= limits.max), source)


def check_integers_to_small() -> None:
    for source, target in itertools.product(INTEGERS, SMALL):
        a = whole_numbers(source)
        # Exact in long double; rounded to odd in float64, which leaves every later tie where it was.
        near = a.astype(np.float64)
        back = np.array([int(v) for v in near.tolist()], dtype=object)
        exact = np.array(a.tolist(), dtype=object)
        bits = near.view(np.int64).copy()
        bits[np.array([abs(b) > abs(e) for b, e in zip(back, exact, strict=True)])] -= 1
        bits[np.array([b != e for b, e in zip(back, exact, strict=True)])] |= 1
        assert_same(cast(a, target), rounded(bits.view(np.float64), target))


def check_survival() -> None:
    for source, target in itertools.permutations([*SMALL, *INTEGERS], 2):
        a = every_code(source) if source in SMALL else whole_numbers(source)
        kept = cast(a, target)
        before = [v if v == v else None for v in (widened(a).tolist() if source in SMALL else a.tolist())]
        after = [v if v == v else None for v in (widened(kept).tolist() if target in SMALL else kept.tolist())]
        survivors = np.array([x == y for x, y in zip(before, after, strict=True)])
        assert_same(ferry.to_numpy(a[survivors], dtype=target, casting="same_value"), kept[survivors])
        if survivors.all():
            continue
        first = int(np.flatnonzero(~survivors)[0])
        with pytest.raises(ferry.PrecisionLossError) as caught:
            ferry.to_numpy(a, dtype=target, casting="same_value")
        assert caught.value.index == (first,), (source, target)
        for i in np.flatnonzero(~survivors)[:: max(len(a) // 50, 1)]:
            with pytest.raises(ferry.PrecisionLossError):
                ferry.to_numpy(a[i : i + 1], dtype=target, casting="same_value")


CHECKS = {
    "small formats to float32 and float64": check_widening,
    "float32 and float64 to small formats": check_narrowing,
    "small formats to one another": check_small_to_small,
    "small formats to integers": check_small_to_integers,
    "integers to small formats": check_integers_to_small,
    "which values survive": check_survival,
}


@pytest.mark.parametrize("level", LEVELS)
def test_every_code_is_cast_as_the_reference_casts_it(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORFERRY_CPU_LEVEL", level)  # read once in a process
    printed = stdout_of(
        """
        import warnings

        warnings.simplefilter("ignore")
        from properties import test_cast_codes

        for name, check in test_cast_codes.CHECKS.items():
            check()
            print(name)
        """
    )
    assert printed.splitlines() == list(CHECKS)
