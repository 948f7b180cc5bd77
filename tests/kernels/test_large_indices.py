"""Memory of many gigabytes, and more elements than 31 bits count: only a few blocks of such grids run."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.fake_cuda import FakeCuda, fake_cuda
from helpers.fake_kernels import DeviceBytes, Kernels
from helpers.kernel_launches import Piece, decisions, gather, launch_copy

GIB = 1 << 30
BLOCKS, THREADS = 1 << 19, 1024  # as many threads as 32-bit indices allow


def peek(memory: DeviceBytes, offset: int, nbytes: int) -> np.ndarray:
    out = np.empty(nbytes, np.uint8)
    assert fake_cuda().library.fake_peek(memory.pointer + offset, out.ctypes.data, nbytes) == 0
    return out


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16])
def test_strides_of_gigabytes(fake: FakeCuda, kernels: Kernels, itemsize: int):
    far, dtype = 5 * GIB + 16 * 3, f"V{itemsize}"
    source, to = DeviceBytes(kernels.driver, 11 * GIB), DeviceBytes(kernels.driver, 11 * GIB)
    values = np.random.default_rng(1).integers(0, 256, (3, 7, itemsize), np.uint8)
    for i in range(3):
        source.poke(values[i], (2 - i) * far)
    names = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}
    axes = [(3, far, -far), (7, 3 * itemsize, itemsize)]
    launch = launch_copy(to.pointer, source.pointer + 2 * far, (names[itemsize],) * 2, axes)
    assert launch is not None
    launch.run(kernels)
    fake.drain()
    for i in range(3):
        got = peek(to, i * far, 3 * 7 * itemsize).view(dtype)[::3]
        assert got.tobytes() == values[i].tobytes()


@pytest.mark.parametrize("distance", [4 * GIB - 16, 4 * GIB, 8 * GIB], ids=["below 2^32", "at 2^32", "beyond"])
def test_rows_far_apart(fake: FakeCuda, kernels: Kernels, distance: int):
    source, to = DeviceBytes(kernels.driver, 9 * GIB), DeviceBytes(kernels.driver, 9 * GIB)
    values = np.random.default_rng(2).integers(0, 256, (2, 500), np.uint8)
    source.poke(values[0])
    source.poke(values[1], distance)
    axes = [(2, distance, distance), (500, 1, 1)]
    launch = launch_copy(to.pointer, source.pointer, ("uint8", "uint8"), axes)
    assert launch is not None
    assert launch.name == "ferry_rows"
    launch.run(kernels)
    fake.drain()
    assert np.array_equal(peek(to, 0, 500), values[0])
    assert np.array_equal(peek(to, distance, 500), values[1])


def some_blocks(fake: FakeCuda, kernels: Kernels, count: int, first: int) -> tuple[bool, int, np.ndarray]:
    """Copy every second of so many bytes, by two blocks of the grid: is it wide; first place, and what came there."""
    source, to = DeviceBytes(kernels.driver, 2 * count), DeviceBytes(kernels.driver, count)
    step = BLOCKS * THREADS
    expected = np.random.default_rng(3).integers(0, 256, 2 * THREADS, np.uint8)
    last = (count - 1 - first * THREADS) // step * step + first * THREADS
    source.poke(np.repeat(expected, 2)[: 2 * (count - last)], 2 * last)
    launch = launch_copy(to.pointer, source.pointer, ("uint8", "uint8"), [(count, 1, 2)], limit=(BLOCKS, THREADS))
    assert launch is not None
    assert (launch.name, launch.threads) == ("ferry_strided_1", THREADS)
    with fake.only_blocks(first, 2):
        launch.run(kernels, blocks=BLOCKS)
        fake.drain()
    n = min(2 * THREADS, count - last)
    assert np.array_equal(peek(to, last, n), expected[:n]), f"{count} elements, blocks {first} and {first + 1}"
    return launch.is_wide, last, expected


@pytest.mark.parametrize("first", [0, 77, BLOCKS - 2])
@pytest.mark.parametrize("count", [(1 << 31) - 1, 1 << 31, (1 << 31) + 5000, 5 * (1 << 31) + 3], ids=str)
def test_more_elements_than_31_bits_count(fake: FakeCuda, kernels: Kernels, count: int, first: int):
    wide, last, _ = some_blocks(fake, kernels, count, first)
    assert wide == (count >= 1 << 31)
    assert last < count


def test_a_long_dense_copy(fake: FakeCuda, kernels: Kernels):
    nbytes = 33 * GIB + 5
    source, to = DeviceBytes(kernels.driver, nbytes), DeviceBytes(kernels.driver, nbytes)
    tail = np.arange(5, dtype=np.uint8) + 1
    source.poke(tail, nbytes - 5)
    # More than 2^31 windows of 16 bytes; the last of them belongs to this block.
    launch = launch_copy(to.pointer, source.pointer, ("uint8", "uint8"), [(nbytes, 1, 1)], limit=(BLOCKS, THREADS))
    assert launch is not None
    assert launch.name == "ferry_rows"
    assert launch.is_wide
    windows = (nbytes + 15) // 16
    with fake.only_blocks((windows - 1) // THREADS % BLOCKS, 1):
        launch.run(kernels, blocks=BLOCKS)
        fake.drain()
    assert np.array_equal(peek(to, nbytes - 5, 5), tail)


def test_pieces_gigabytes_apart(fake: FakeCuda, kernels: Kernels):
    source, block = DeviceBytes(kernels.driver, 9 * GIB), DeviceBytes(kernels.driver, 9 * GIB)
    values = np.arange(100, dtype=np.uint8)
    source.poke(values, 7 * GIB + 3)
    launch, table = gather(kernels, [Piece(source.pointer + 7 * GIB + 3, 8 * GIB + 1, 100)], block.pointer)
    assert table is not None, "offsets beyond 2^32 do not fit the arguments"
    launch.run(kernels)
    fake.drain()
    assert np.array_equal(peek(block, 8 * GIB + 1, 100), values)


def test_division_by_multiplication():
    rng = np.random.default_rng(20240229)
    few, wide = decisions().quotient, decisions().wide_quotient
    for bits, divide in ((31, few), (63, wide)):
        edges = [1, 2, 3, 5, 7, (1 << bits) - 1, (1 << bits) - 2, 1 << (bits - 1), (1 << (bits - 1)) + 1]
        numbers = [
            *edges,
            0,
            *(
                int(n) >> int(s)
                for n, s in zip(rng.integers(0, 1 << bits, 300), rng.integers(0, bits, 300), strict=True)
            ),
        ]
        divisors = [
            *edges,
            *(
                max(int(n) >> int(s), 1)
                for n, s in zip(rng.integers(1, 1 << bits, 60), rng.integers(0, bits, 60), strict=True)
            ),
        ]
        for divisor in divisors:
            multiples = [divisor * (number // divisor) + d for number in numbers[:40] for d in (-1, 0, 1)]
            for number in [*numbers, *(n for n in multiples if 0 <= n < 1 << bits)]:
                assert divide(number, divisor) == number // divisor, f"{number} / {divisor}"
