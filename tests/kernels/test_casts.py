"""Casts, value by value: every pair of dtypes, packed and strided, against exact arithmetic and against the host."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import tensorferry as ferry
from helpers.cast_oracle import TYPES, all_or_boundary_values, expected_bits, storage
from helpers.fake_cuda import FakeCuda
from helpers.fake_kernels import DeviceBytes, Kernels
from helpers.kernel_launches import Piece, gather, launch_copy

SEED = 20240229
LIMIT = (4, 128)
PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def nbytes_of(name: str) -> int:
    return storage(name).itemsize * (2 if name.startswith("complex") else 1)


def wrong(to: str, source: str, bits: NDArray[Any], got: NDArray[np.uint8]) -> list[str]:
    """The first few values that came out wrong."""
    expected, nan = expected_bits(to, source, bits)
    values = got.view(storage(to)).reshape(expected.shape)
    sign = np.array(1 << (8 * storage(to).itemsize - 1), storage(to))
    both = is_nan(to, values)
    if to.startswith(("float6", "float4")):  # NaN becomes a zero of either sign
        given = bits[..., 0] if source.startswith("complex") else bits
        zeros = values & (0x1F if to.startswith("float6") else 7) == 0
        values = np.where(is_nan(PARTS.get(source, source), given) & zeros, expected, values)
    good = np.where(nan, both & ((values & sign) == (expected & sign)), values == expected)
    bad = np.argwhere(~good)[:3]
    return [
        f"{source} {bits[tuple(at[: bits.ndim])]} to {to}: {values[tuple(at)]:#x}, not {expected[tuple(at)]:#x}"
        for at in bad
    ]


def is_nan(name: str, values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which bits are NaN: those that cast to bool are true, and to uint8 are 0."""
    part = PARTS.get(name, name)
    true, _ = expected_bits("bool", part, values)
    as_integer, _ = expected_bits("int64", part, values)
    as_float, nan = expected_bits("float64", part, values)
    return nan & (true == 1) & (as_integer == 0) & np.isnan(as_float.view(np.float64))


@pytest.mark.parametrize("source", TYPES)
def test_every_value_to_every_dtype(fake: FakeCuda, kernels: Kernels, source: str):
    bits = all_or_boundary_values(source, np.random.default_rng(SEED))
    memory, count = DeviceBytes.of(kernels.driver, bits), len(bits)
    mistakes, used = [], set()
    for to in TYPES:
        if to == source:
            continue
        result = DeviceBytes(kernels.driver, count * nbytes_of(to))
        axes = [(count, nbytes_of(to), nbytes_of(source))]
        launch = launch_copy(result.pointer, memory.pointer, (to, source), axes, limit=LIMIT)
        assert launch is not None, f"{source} to {to}"
        launch.run(kernels)
        fake.drain()
        used.add(launch.name)
        mistakes += wrong(to, source, bits, result.peek())
        result.free()
    assert mistakes == []
    assert "ferry_rows_cast" in used


@pytest.mark.parametrize("source", TYPES)
def test_every_dtype_at_strides_and_in_pieces(fake: FakeCuda, kernels: Kernels, source: str):
    rng = np.random.default_rng(SEED)
    every = all_or_boundary_values(source, rng)
    bits = rng.permutation(np.resize(every, (max(210, len(every)), *every.shape[1:])))[:210]
    step = nbytes_of(source)
    memory = DeviceBytes.of(kernels.driver, bits)
    mistakes, used = [], set()
    for to in TYPES:
        if to == source:
            continue
        size = nbytes_of(to)
        strided, packed = DeviceBytes(kernels.driver, 2 * 210 * size), DeviceBytes(kernels.driver, 210 * size)
        axes = [(7, 2 * size, 30 * step), (30, 2 * 7 * size, step)]
        launch = launch_copy(strided.pointer, memory.pointer, (to, source), axes, limit=LIMIT)
        assert launch is not None, f"{source} to {to}"
        pieces = [
            Piece(memory.pointer + begin * step, begin * size, end - begin, (to, source))
            for begin, end in ((0, 1), (1, 100), (100, 210))
        ]
        gathering, _ = gather(kernels, pieces, packed.pointer)
        launch.run(kernels)
        gathering.run(kernels)
        fake.drain()
        used |= {launch.name, gathering.name}
        across = bits.reshape(7, 30, -1).swapaxes(0, 1).reshape(bits.shape)
        got = strided.peek().reshape(210, 2, size)
        mistakes += wrong(to, source, across, np.ascontiguousarray(got[:, 0]).reshape(-1))
        assert np.all(got[:, 1] == 0xDE), f"{launch.name} wrote between its elements"
        mistakes += wrong(to, source, bits, packed.peek())
        strided.free()
        packed.free()
    assert mistakes == []
    assert {"ferry_strided_cast", "ferry_gather_inline"} <= used


HOST_SOURCES = [name for name in TYPES if hasattr(torch, name) and not name.endswith(("int1", "int2", "int4"))]
HOST_RESULTS = [name for name in TYPES if hasattr(ml_dtypes, name) or hasattr(np, name)]


@pytest.mark.parametrize("source", HOST_SOURCES)
def test_bits_are_those_that_the_host_makes(fake: FakeCuda, kernels: Kernels, source: str):
    bits = all_or_boundary_values(source, np.random.default_rng(SEED))
    tensor = torch.from_numpy(bits.reshape(-1).view(np.uint8)).view(getattr(torch, source))
    memory, different = DeviceBytes.of(kernels.driver, bits), []
    for to in HOST_RESULTS:
        if to == source:
            continue
        dtype = np.dtype(getattr(ml_dtypes, to, to))
        expected = ferry.to_numpy(tensor, dtype=dtype, casting="unsafe").view(np.uint8)
        result = DeviceBytes(kernels.driver, len(expected))
        axes = [(len(bits), nbytes_of(to), nbytes_of(source))]
        launch = launch_copy(result.pointer, memory.pointer, (to, source), axes, limit=LIMIT)
        assert launch is not None
        launch.run(kernels)
        fake.drain()
        places = np.flatnonzero((result.peek() != expected).reshape(len(bits), -1).any(axis=1))
        different += [f"{source} {bits[at]} to {to}" for at in places[:2]]
        result.free()
    assert different == []


HOT = {
    ("bfloat16", "float32"),
    ("float16", "float32"),
    ("float32", "bfloat16"),
    ("float32", "float16"),
    ("float32", "float64"),
    ("float32", "uint8"),
}


@pytest.mark.parametrize(
    ("to", "source"),
    sorted(HOT),
    ids=[
        "bfloat16 from float32",
        "float16 from float32",
        "float32 from bfloat16",
        "float32 from float16",
        "float32 from float64",
        "float32 from uint8",
    ],
)
@pytest.mark.parametrize("phase", [0, 1, 3], ids=["aligned", "misaligned by one", "misaligned by three"])
def test_pairs_with_kernels_of_their_own(fake: FakeCuda, kernels: Kernels, to: str, source: str, phase: int):
    rng = np.random.default_rng(SEED)
    every = all_or_boundary_values(source, rng)
    bits = rng.permutation(np.resize(every, max(3000, len(every))))[:3000]
    size, step = nbytes_of(to), nbytes_of(source)
    memory = DeviceBytes(kernels.driver, 3000 * step + 64)
    memory.poke(bits, phase * step)
    for rows, width, gap in ((1, 2999, 0), (30, 100, 0), (10, 128, 16), (60, 17, 3)):
        result = DeviceBytes(kernels.driver, rows * (width + gap) * size + 64)
        axes = [(width, size, step), (rows, (width + gap) * size, width * step)]
        at = result.pointer + phase * size
        launch = launch_copy(at, memory.pointer + phase * step, (to, source), axes, limit=LIMIT)
        assert launch is not None
        assert launch.name == f"ferry_rows_{to}_from_{source}"
        launch.run(kernels)
        fake.drain()
        lines = result.peek()[phase * size :][: rows * (width + gap) * size].reshape(rows, width + gap, size)
        expected = bits[: rows * width].reshape(rows, width)
        assert wrong(to, source, expected.reshape(-1), np.ascontiguousarray(lines[:, :width]).reshape(-1)) == []
        assert np.all(lines[:, width:] == 0xDE)
        strided = launch_copy(at, memory.pointer + phase * step, (to, source), [(50, 2 * size, 3 * step)])
        assert strided is not None
        assert strided.name == f"ferry_strided_{to}_from_{source}"
        strided.run(kernels)
        fake.drain()
        got = result.peek()[phase * size :][: 100 * size].reshape(50, 2, size)[:, 0]
        assert wrong(to, source, bits[:150:3], np.ascontiguousarray(got).reshape(-1)) == []


def test_what_casts_have_no_way_for(fake: FakeCuda):
    assert launch_copy(0x1000, 0x2000, ("float32", "float4_e2m1fn_x2"), [(4, 4, 1)]) is None
    assert launch_copy(0x1001, 0x2000, ("float32", "uint8"), [(4, 4, 1)]) is None
    assert launch_copy(0x1004, 0x2000, ("complex64", "uint8"), [(4, 8, 1)]) is not None
