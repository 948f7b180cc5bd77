"""Field cases: rounding to small floats, layout changes fused with a cast."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry

pytestmark = pytest.mark.filterwarnings("ignore::tensorferry.ExtensionDTypeWarning")

# The largest bit pattern of a finite positive value.
FORMATS = {"float16": (np.float16, 0x7BFF), "bfloat16": (ml_dtypes.bfloat16, 0x7F7F)}


def _rounded(values: np.ndarray, name: str) -> np.ndarray:
    """Return the nearest value of the format, ties to even, as bits: found by search among all of them.

    Neighbours lie on a grid whose midpoints are exact in float64; beyond the largest, the next grid point is infinity.
    """
    dtype, largest = FORMATS[name]
    grid = np.arange(largest + 1, dtype=np.uint16).view(dtype).astype(np.float64)
    grid = np.append(grid, 2 * grid[-1] - grid[-2])
    middles = (grid[:-1] + grid[1:]) / 2
    size = np.abs(values)
    nearest = np.searchsorted(middles, size, side="left")
    tie = (nearest < len(middles)) & (middles[np.minimum(nearest, len(middles) - 1)] == size)
    nearest = nearest + (tie & (nearest % 2 == 1))
    return (nearest + 0x8000 * np.signbit(values)).astype(np.uint16)


def _hard_values(name: str) -> np.ndarray:
    """Return midpoints and their neighbours in float64 (where rounding twice goes wrong), and random values."""
    dtype, largest = FORMATS[name]
    grid = np.arange(largest + 1, dtype=np.uint16).view(dtype).astype(np.float64)
    middles = (grid[:-1] + grid[1:]) / 2
    seed = 20240917
    print("seed", seed)
    random = np.random.default_rng(seed)
    spread = random.standard_normal(20_000) * 2.0 ** random.integers(-150, 130, 20_000)
    positive = np.concatenate([grid, middles, np.nextafter(middles, np.inf), np.nextafter(middles, 0), np.abs(spread)])
    return np.concatenate([positive, -positive, [np.inf, -np.inf, 0.0, -0.0, 1e300, -1e300, 5e-324]])


# 0.2691408770292272 must give 0.26953125; truncation, and rounding through float32 first, give its neighbours.
@pytest.mark.parametrize("name", FORMATS)
def test_f099_doubles_round_once_to_nearest_even(name):
    values = _hard_values(name)
    expected = _rounded(values, name)
    tensor = ferry.from_numpy(values, dtype=name)
    assert tensor.dtype is getattr(torch, name)
    np.testing.assert_array_equal(tensor.view(torch.int16).numpy().view(np.uint16), expected)
    array = ferry.to_numpy(torch.from_numpy(values), dtype=name)
    np.testing.assert_array_equal(array.view(np.uint16), expected)


@pytest.mark.parametrize("name", FORMATS)
def test_f099_singles_round_to_nearest_even(name):
    with np.errstate(over="ignore"):
        values = _hard_values(name).astype(np.float32)
    expected = _rounded(values.astype(np.float64), name)
    np.testing.assert_array_equal(ferry.to_numpy(torch.from_numpy(values), dtype=name).view(np.uint16), expected)
    strided = ferry.to_numpy(torch.from_numpy(values)[::3], dtype=name)
    np.testing.assert_array_equal(strided.view(np.uint16), expected[::3])


@pytest.mark.parametrize("name", FORMATS)
def test_f099_the_example_of_the_report_rounds_up(name):
    value = np.array([0.2691408770292272])
    expected = {"bfloat16": 0.26953125, "float16": 0.26904296875}[name]
    assert ferry.from_numpy(value, dtype=name).item() == pytest.approx(expected, abs=2e-4)
    assert ferry.from_numpy(value, dtype="bfloat16").item() == 0.26953125


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_f099_a_nan_stays_a_nan_whatever_its_payload(name, source):
    bits = {"float32": np.uint32, "float64": np.uint64}[source]
    first = {"float32": 0x7F800001, "float64": 0x7FF0000000000001}[source]
    quiet = {"float32": 0x7FC00000, "float64": 0x7FF8000000000000}[source]
    sign = {"float32": 1 << 31, "float64": 1 << 63}[source]
    payloads = np.array([first, first | sign, quiet, quiet | sign, quiet + 5, first + 0x1FF], bits).view(source)
    assert np.isnan(ferry.from_numpy(payloads, dtype=name).to(torch.float32).numpy()).all()
    assert np.isnan(ferry.to_numpy(torch.from_numpy(payloads), dtype=name).astype(np.float32)).all()


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("wide", ["float32", "float64"])
def test_f099_every_value_widens_exactly_and_returns(name, wide):
    bits = np.arange(65536, dtype=np.uint16)
    small = bits.view(FORMATS[name][0])
    widened = ferry.to_numpy(ferry.from_numpy(small), dtype=wide, copy=True)
    with np.errstate(invalid="ignore"):  # NumPy reports signalling NaN
        np.testing.assert_array_equal(widened, small.astype(np.float32).astype(wide))
    np.testing.assert_array_equal(np.signbit(widened), bits >= 0x8000)
    back = ferry.to_numpy(torch.from_numpy(widened), dtype=name).view(np.uint16)
    finite = ~np.isnan(widened)
    np.testing.assert_array_equal(back[finite], bits[finite])


# Converting on the wrong side of a copy, or in a pass of its own, costs several times the time.
@pytest.mark.parametrize(("source", "target"), [("uint8", "float32"), ("float64", "float16"), ("int64", "float32")])
def test_f100_a_cast_is_part_of_the_one_copy(source, target):
    image = np.arange(48).reshape(4, 4, 3).astype(source)
    plan = ferry.plan(image.transpose(2, 0, 1), to="torch", dtype=target)
    assert plan.copies == 1
    assert plan.nbytes_moved == 48 * np.dtype(target).itemsize
    tensor = ferry.from_numpy(image.transpose(2, 0, 1), dtype=target)
    np.testing.assert_array_equal(tensor.numpy(), image.transpose(2, 0, 1).astype(target))


# Moving the channel axis first dominates the time to load images.
@pytest.mark.parametrize("source", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(4, 5, 3), (33, 17, 4), (1, 7, 1), (64, 64, 3)], ids=str)
def test_f101_channels_move_first_and_become_floats_in_one_pass(source, shape):
    image = (np.arange(np.prod(shape)).reshape(shape) % 251).astype(source)
    expected = np.ascontiguousarray(image.transpose(2, 0, 1)).astype(np.float32)
    moved = ferry.to_numpy(torch.from_numpy(image).permute(2, 0, 1), dtype="float32", order="C", copy=True)
    assert moved.flags.c_contiguous
    np.testing.assert_array_equal(moved, expected)
    out = torch.empty(expected.shape)
    assert ferry.stack([image.transpose(2, 0, 1)], out=out[None]).data_ptr() == out.data_ptr()
    np.testing.assert_array_equal(out.numpy(), expected)
    np.testing.assert_array_equal(
        ferry.from_numpy(image[:, ::-1].transpose(2, 0, 1)).numpy(), image[:, ::-1].transpose(2, 0, 1)
    )


# OpenCV refuses the array that comes from a permuted tensor, with an error about something else.
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_f102_order_c_and_copy_give_a_writable_packed_image(dtype):
    tensor = torch.arange(24).reshape(3, 2, 4).to(dtype)
    image = ferry.to_numpy(tensor.permute(1, 2, 0), order="C", copy=True)
    assert image.flags.c_contiguous
    assert image.flags.writeable
    assert image.flags.owndata
    np.testing.assert_array_equal(image, np.moveaxis(tensor.numpy(), 0, -1))
    image[:] = 0
    assert tensor.reshape(-1).tolist() == list(range(24))


def test_f102_without_copy_the_order_is_still_kept():
    packed = ferry.to_numpy(torch.arange(24).reshape(3, 2, 4).permute(1, 2, 0), order="C")
    assert packed.flags.c_contiguous
    with pytest.raises(ferry.CopyRequiredError, match="order"):
        ferry.to_numpy(torch.zeros(3, 2, 4).permute(1, 2, 0), order="C", copy=False)
