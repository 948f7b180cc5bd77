"""Copies of bits between any two layouts."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.fake_cuda import FakeCuda
from helpers.fake_kernels import DeviceBytes, Kernels
from helpers.kernel_launches import launch_copy, launch_rows
from helpers.kernel_layouts import (
    BITS,
    OnDevice,
    copied_by_launch,
    random_destination,
    random_shape,
    random_view,
)

SEEDS = 120


def check(fake: FakeCuda, kernels: Kernels, itemsize: int, seed: int, *, wide: bool = False) -> str:
    """One random copy; the name of the kernel that made it."""
    rng = np.random.default_rng(seed)
    shape, dtype = random_shape(rng), BITS[itemsize]
    from_base, source = random_view(rng, shape, dtype)
    to_base, to = random_destination(rng, shape, dtype)
    aligned = rng.random() < 0.5
    out_of = OnDevice(kernels, from_base, 0 if aligned else int(rng.integers(0, 33)))
    into = OnDevice(kernels, to_base, 0 if aligned else int(rng.integers(0, 33)))
    blocks, threads = int(rng.integers(1, 9)), int(rng.choice([32, 64, 256]))
    launch = copied_by_launch(kernels, to, into, source, out_of, (dtype, dtype), limit=(blocks, threads))
    if to.size == 0:
        assert launch is None
        return "none"
    assert launch is not None, f"no launch for {shape}, {to.strides}, {source.strides}"
    if wide and not launch.name.startswith("ferry_transpose"):
        launch.make_wide()
    fake.kernel_seed(seed)
    launch.run(kernels)
    fake.drain()
    to[...] = source
    got = into.values()
    assert got.tobytes() == to_base.tobytes(), (
        f"seed {seed}: {launch.name} of {shape} to {to.strides} from {source.strides}, {blocks} x {threads}"
    )
    return launch.name


@pytest.mark.parametrize("itemsize", BITS)
def test_any_layout_to_any_layout(fake: FakeCuda, kernels: Kernels, itemsize: int):
    used = {check(fake, kernels, itemsize, seed) for seed in range(SEEDS)}
    print(f"seeds 0 to {SEEDS - 1}: {sorted(used)}")
    assert {"ferry_rows", "none"} <= used
    assert any(name.startswith("ferry_strided") for name in used)


@pytest.mark.parametrize("itemsize", BITS)
def test_with_indices_of_64_bits(fake: FakeCuda, kernels: Kernels, itemsize: int):
    used = {check(fake, kernels, itemsize, seed, wide=True) for seed in range(1000, 1040)}
    assert any(name.startswith("ferry_strided") for name in used)


@pytest.mark.parametrize("to_phase", range(17))
@pytest.mark.parametrize("from_phase", [0, 1, 2, 3, 4, 7, 8, 12, 15, 16])
def test_rows_of_any_alignment_and_width(fake: FakeCuda, kernels: Kernels, to_phase: int, from_phase: int):
    rng = np.random.default_rng(to_phase * 100 + from_phase)
    for width in (1, 2, 5, 15, 16, 17, 31, 33, 64, 100):
        rows, to_pitch, from_pitch = 3, width + int(rng.integers(0, 20)), width + int(rng.integers(0, 20))
        if rng.random() < 0.3:
            to_pitch, from_pitch = -to_pitch, -(from_pitch // 16 * 16 + 16)
        source = DeviceBytes.of(kernels.driver, rng.integers(0, 256, abs(from_pitch) * rows + 40, np.uint8))
        to = DeviceBytes.of(kernels.driver, rng.integers(0, 256, abs(to_pitch) * rows + 40, np.uint8))
        expected, values = to.peek(), source.peek()
        to_begin = to_phase + (abs(to_pitch) * (rows - 1) if to_pitch < 0 else 0)
        from_begin = from_phase + (abs(from_pitch) * (rows - 1) if from_pitch < 0 else 0)
        for row in range(rows):
            at, there = to_begin + row * to_pitch, from_begin + row * from_pitch
            expected[at : at + width] = values[there : there + width]
        arguments = launch_rows(
            "ferry_rows",
            to.pointer + to_begin,
            to_pitch,
            source.pointer + from_begin,
            from_pitch,
            (rows, width),
            ("uint8", "uint8"),
        )
        kernels.run("ferry_rows", arguments, int(rng.integers(1, 4)), 32)
        assert np.array_equal(to.peek(), expected), f"width {width}, pitches {to_pitch} and {from_pitch}"
        to.free()
        source.free()


def test_one_element_and_none(fake: FakeCuda, kernels: Kernels):
    source, to = DeviceBytes.of(kernels.driver, np.array([7], np.uint64)), DeviceBytes(kernels.driver, 8)
    launch = launch_copy(to.pointer, source.pointer, ("uint64", "uint64"), [])
    assert launch is not None
    launch.run(kernels)
    fake.drain()
    assert to.peek(np.uint64).tolist() == [7]
    assert launch_copy(to.pointer, source.pointer, ("uint64", "uint64"), [(0, 8, 8)]) is None


def test_more_axes_than_kernels_have_are_refused(fake: FakeCuda, kernels: Kernels):
    strides = [(2, 3 * 5**i, 3 * 7**i) for i in range(9)]
    assert launch_copy(0x1000, 0x2000, ("uint8", "uint8"), strides) is None
    assert launch_copy(0x1000, 0x2000, ("uint8", "uint8"), strides[:8]) is not None
