"""What casts must give, by exact arithmetic: every value of every dtype fits NumPy's long double of 64 digits.

The rules are those of docs/dtypes.md. Nothing of the product is used; ml_dtypes only says what codes mean.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

__all__ = ["FLOATS", "INTEGERS", "TYPES", "all_or_boundary_values", "expected_bits", "storage"]

INTEGERS = {
    **{f"{sign}int{bits}": (bits, sign == "") for bits in (8, 16, 32, 64) for sign in ("", "u")},
    **{f"{sign}int{bits}": (bits, sign == "") for bits in (1, 2, 4) for sign in ("", "u")},
}
# Bits of a code, and what lies beyond the largest number: infinity, a NaN, or the largest number.
FLOATS = {
    "float16": (16, "infinity"),
    "bfloat16": (16, "infinity"),
    "float8_e3m4": (8, "infinity"),
    "float8_e4m3": (8, "infinity"),
    "float8_e5m2": (8, "infinity"),
    "float8_e4m3fn": (8, "nan"),
    "float8_e4m3b11fnuz": (8, "nan"),
    "float8_e4m3fnuz": (8, "nan"),
    "float8_e5m2fnuz": (8, "nan"),
    "float8_e8m0fnu": (8, "nan"),
    "float6_e2m3fn": (6, "largest"),
    "float6_e3m2fn": (6, "largest"),
    "float4_e2m1fn": (4, "largest"),
}
_WIDE = {"float32": np.float32, "float64": np.float64}
_COMPLEX = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
TYPES = ("bool", *INTEGERS, *FLOATS, *_WIDE, *_COMPLEX)

Bits = NDArray[Any]
_NAN_CODES = {name: 0x80 for name in FLOATS if name.endswith("fnuz")} | {"float8_e8m0fnu": 0xFF}


def storage(name: str) -> np.dtype[Any]:
    """The unsigned dtype that holds the bits of an element; pairs of them for complex dtypes."""
    if name in _COMPLEX:
        return storage(_COMPLEX[name])
    if name in _WIDE:
        return np.dtype(f"u{np.dtype(name).itemsize}")
    if name in FLOATS:
        return np.dtype("u2" if FLOATS[name][0] == 16 else "u1")
    return np.dtype("u1") if name == "bool" else np.dtype(f"u{max(INTEGERS[name][0] // 8, 1)}")


def _numpy_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


@cache
def _numbers(name: str) -> tuple[NDArray[np.longdouble], NDArray[np.int64]]:
    """The finite numbers that are not negative, rising, and their codes."""
    bits = FLOATS[name][0]
    codes = np.arange(2**bits)
    values = codes.astype(storage(name)).view(_numpy_of(name)).astype(np.float64)
    kept = np.isfinite(values) & ~np.signbit(values)
    order = np.argsort(values[kept], kind="stable")
    return values[kept][order].astype(np.longdouble), codes[kept][order]


def _decoded(name: str, bits: Bits) -> NDArray[np.longdouble]:
    """Values of one part; NaN keeps its sign."""
    if name == "bool":
        return (bits != 0).astype(np.longdouble)
    if name in INTEGERS:
        width, signed = INTEGERS[name]
        wide = bits.astype(np.uint64) << np.uint64(64 - width)
        return (wide.view(np.int64) >> np.int64(64 - width) if signed else wide >> np.uint64(64 - width)).astype(
            np.longdouble
        )
    return bits.view(_numpy_of(name)).astype(np.float64).astype(np.longdouble)


def _to_integer(values: NDArray[np.longdouble], exact: NDArray[np.uint64] | None, name: str) -> Bits:
    bits, signed = INTEGERS[name]
    mask = np.uint64((1 << bits) - 1)
    if exact is None:
        low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
        whole = np.trunc(np.where(np.isnan(values), 0, values))
        inside = np.where((whole < high) & (whole > low), whole, 0)
        # Through half of it: a long double of up to 2^64 is no int64.
        halves = np.floor(np.abs(inside) / 2)
        exact = halves.astype(np.uint64) * np.uint64(2) + (np.abs(inside) - 2 * halves).astype(np.uint64)
        exact = np.where(inside < 0, np.uint64(0) - exact, exact)
        exact = np.where(whole >= high, np.uint64((1 << (bits - 1)) - 1 if signed else (1 << bits) - 1), exact)
        exact = np.where(whole <= low, np.uint64(1 << (bits - 1)) if signed else np.uint64(0), exact)
    return (exact & mask).astype(storage(name))


def _to_small_float(values: NDArray[np.longdouble], name: str) -> Bits:
    numbers, codes = _numbers(name)
    beyond = FLOATS[name][1]
    size = np.abs(values)
    above = np.clip(np.searchsorted(numbers, size, side="left"), 1, len(numbers) - 1)
    low, high = numbers[above - 1], numbers[above]
    with np.errstate(invalid="ignore"):
        # Of two powers of two, the even multiple of the smaller one is the larger one.
        ties_up = (codes[above] % 2 == 0) | (name == "float8_e8m0fnu")
        up = (size - low > high - size) | ((size - low == high - size) & ties_up)
    if name == "float8_e8m0fnu":  # as ml_dtypes has it: nothing rounds down to the smallest number
        up |= (above == 1) & (size > low)
    chosen = np.where(up, codes[above], codes[above - 1])
    largest, before = numbers[-1], numbers[-2]
    step = largest - before if name != "float8_e8m0fnu" else 2 * before
    edge = largest + step / 2
    too_large = (size > edge) | ((size == edge) & ((codes[-1] % 2 == 1) | (name == "float8_e8m0fnu")))
    chosen = np.where(size >= largest, codes[-1], chosen)
    sign = 1 << (FLOATS[name][0] - 1)
    unsigned = name == "float8_e8m0fnu"
    nan = _NAN_CODES.get(name, sign - 1)
    if beyond != "largest":
        chosen = np.where(too_large, {"infinity": codes[-1] + 1, "nan": nan}[beyond], chosen)
    negative = np.signbit(values)
    if unsigned:
        chosen = np.where(negative | (values == 0), nan, chosen)
    elif name in _NAN_CODES:
        chosen = np.where(negative & (chosen != 0) & (chosen != nan), chosen | sign, chosen)
    else:
        chosen = np.where(negative, chosen | sign, chosen)
    invalid = np.isnan(values)
    if beyond == "largest":
        return np.where(invalid, np.where(negative, sign, 0), chosen).astype(storage(name))
    own_sign = not unsigned and name not in _NAN_CODES
    return np.where(invalid, np.where(negative & own_sign, nan | sign, nan), chosen).astype(storage(name))


def _to_float(values: NDArray[np.longdouble], name: str) -> Bits:
    if name in FLOATS:
        return _to_small_float(values, name)
    with np.errstate(over="ignore"):
        return values.astype(_WIDE[name]).view(storage(name))


def _is_nan(name: str, bits: Bits) -> NDArray[np.bool_]:
    if name in INTEGERS or name == "bool":
        return np.zeros(bits.shape, bool)
    return np.isnan(bits.view(_numpy_of(name)).astype(np.float64))


def expected_bits(to: str, source: str, bits: Bits) -> tuple[Bits, NDArray[np.bool_]]:
    """The bits of the results, and where they are NaN: there only the sign counts. A NaN's zero has either sign.

    Parameters
    ----------
    bits : array of unsigned integers
        Of the source's elements; with a last axis of length 2 for complex dtypes.
    """
    part = _COMPLEX.get(source, source)
    real = _decoded(part, bits[..., 0] if source in _COMPLEX else bits)
    imaginary = _decoded(part, bits[..., 1]) if source in _COMPLEX else np.zeros_like(real)
    exact = None
    if source in INTEGERS:
        width, signed = INTEGERS[source]
        wide = bits.astype(np.uint64) << np.uint64(64 - width)
        exact = (
            (wide.view(np.int64) >> np.int64(64 - width)).view(np.uint64) if signed else wide >> np.uint64(64 - width)
        )
    if source == "bool":
        exact = real.astype(np.uint64)
    if to == "bool":
        result = ((real != 0) | (imaginary != 0)).astype(np.uint8)
        return result, np.zeros(result.shape, bool)
    if to in INTEGERS:
        result = _to_integer(real, exact, to)
        return result, np.zeros(result.shape, bool)
    if to not in _COMPLEX:
        result = _to_float(real, to)
        return result, _is_nan(to, result)
    parts = [_to_float(one, _COMPLEX[to]) for one in (real, imaginary)]
    result = np.stack(parts, axis=-1)
    return result, _is_nan(_COMPLEX[to], result)


def all_or_boundary_values(name: str, rng: np.random.Generator) -> Bits:
    """Every code of a dtype of up to 16 bits; of others the ends of all ranges, ties of all roundings, random bits."""
    if name in _COMPLEX:
        parts = all_or_boundary_values(_COMPLEX[name], rng)
        return np.stack([parts, rng.permutation(parts)], axis=-1)
    kept = storage(name)
    if kept.itemsize <= 2:
        return np.arange(2 ** FLOATS[name][0] if name in FLOATS else 256**kept.itemsize).astype(kept)
    noise = rng.integers(0, 256, 3000 * kept.itemsize, np.uint8).view(kept)
    if name in INTEGERS:
        powers = np.array(
            [
                sum(1 << i for i in at)
                for at in [(), *((i,) for i in range(64)), *((i, j) for i in range(64) for j in range(i))]
            ],
            object,
        )
        near = np.array([int(p) + d & ((1 << 64) - 1) for p in powers for d in (-1, 0, 1)], np.uint64)
        near = np.concatenate([near, np.uint64(0) - near])
        shifted = noise >> rng.integers(0, 8 * kept.itemsize, noise.shape).astype(kept)
        return np.concatenate([near.astype(kept), noise, shifted])
    ends = np.ldexp(1.0, np.arange(0, 65))
    near = [ends, ends - 1, ends - 0.5, ends + 0.5, ends + 1, np.array([np.nan, np.inf, 0.0])]
    for small in FLOATS:
        numbers, _ = _numbers(small)
        picked = numbers[:: max(len(numbers) // 400, 1)].astype(np.float64)
        near += [picked, (picked[1:] + picked[:-1]) / 2, picked[-1:] * 1.0625, picked[-1:] * 1.5, picked[-3:] * 1.03125]
    with np.errstate(over="ignore"):
        values = np.concatenate(near).astype(_WIDE[name])
        values = np.concatenate([values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)])
    values = np.concatenate([values, -values, [np.finfo(_WIDE[name]).max, np.finfo(_WIDE[name]).smallest_subnormal]])
    return np.concatenate([values.astype(_WIDE[name]).view(kept), noise])
