"""Many pieces into one block of memory, and back."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.fake_cuda import FakeCuda
from helpers.fake_kernels import DeviceBytes, Kernels
from helpers.kernel_launches import Launch, Piece, gather

INLINE = 176


class Pieces:
    """Random pieces in a common memory, each at an alignment of its own, with places in a block.

    Attributes
    ----------
    memory, block : DeviceBytes
        Where the pieces are, and the block.
    expected : ndarray of uint8
        The block after a gather.
    """

    def __init__(self, kernels: Kernels, count: int, seed: int, *, largest: int = 70) -> None:
        rng = np.random.default_rng(seed)
        extents = rng.integers(0, largest, count)
        extents[rng.random(count) < 0.1] = 0
        if count > 2:
            extents[int(rng.integers(count))] = 40 * largest
        gaps = rng.integers(0, 5, (2, count)) * (rng.random((2, count)) < 0.5)
        self.starts = np.cumsum(extents + gaps[0]) - extents
        self.offsets = np.cumsum(extents + gaps[1]) - extents
        order = rng.permutation(count)
        self.memory = DeviceBytes.of(
            kernels.driver, rng.integers(0, 256, int(self.starts[-1] + extents[-1]) + 1, np.uint8)
        )
        self.block = DeviceBytes(kernels.driver, int(self.offsets[-1] + extents[-1]) + 1)
        self.extents = extents
        self.list = [
            Piece(self.memory.pointer + int(self.starts[i]), int(self.offsets[i]), int(extents[i])) for i in order
        ]
        self.expected, values = self.block.peek(), self.memory.peek()
        for i in range(count):
            self.expected[self.offsets[i] :][: extents[i]] = values[self.starts[i] :][: extents[i]]


def run(fake: FakeCuda, kernels: Kernels, launch: Launch, seed: int) -> None:
    fake.kernel_seed(seed)
    launch.run(kernels)
    fake.drain()


COUNTS = [1, 2, 3, 50, INLINE, INLINE + 1, 300, 2000]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("seed", range(4))
def test_pieces_arrive_at_their_offsets(fake: FakeCuda, kernels: Kernels, count: int, seed: int):
    pieces = Pieces(kernels, count, seed)
    limit = (1 + seed * 3, [32, 256, 128, 512][seed])
    launch, table = gather(kernels, pieces.list, pieces.block.pointer, limit=limit)
    filled = np.count_nonzero(pieces.extents)
    assert launch.name == ("ferry_gather_table" if filled > INLINE else "ferry_gather_inline")
    assert (table is None) == (filled <= INLINE)
    run(fake, kernels, launch, seed)
    assert np.array_equal(pieces.block.peek(), pieces.expected), f"seed {seed}"


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("seed", range(4))
def test_pieces_go_back_to_their_places(fake: FakeCuda, kernels: Kernels, count: int, seed: int):
    pieces = Pieces(kernels, count, 100 + seed)
    rng = np.random.default_rng(seed)
    values, expected = rng.integers(0, 256, pieces.block.nbytes, np.uint8), pieces.memory.peek()
    pieces.block.poke(values)
    for start, offset, extent in zip(pieces.starts, pieces.offsets, pieces.extents, strict=True):
        expected[start : start + extent] = values[offset : offset + extent]
    launch, _ = gather(kernels, pieces.list, pieces.block.pointer, scatter=True, limit=(1 + seed, 64))
    assert launch.name in ("ferry_scatter_table", "ferry_scatter_inline")
    run(fake, kernels, launch, seed)
    assert np.array_equal(pieces.memory.peek(), expected), f"seed {seed}"


def test_twenty_thousand_pieces(fake: FakeCuda, kernels: Kernels):
    pieces = Pieces(kernels, 20_000, 7, largest=30)
    launch, _ = gather(kernels, pieces.list, pieces.block.pointer, limit=(64, 256))
    run(fake, kernels, launch, 7)
    assert np.array_equal(pieces.block.peek(), pieces.expected)


def test_casts_among_moved_bits(fake: FakeCuda, kernels: Kernels):
    floats = DeviceBytes.of(kernels.driver, np.arange(1000, dtype=np.float64) / 4)
    raw = DeviceBytes.of(kernels.driver, np.arange(256, dtype=np.uint8))
    block = DeviceBytes(kernels.driver, 4000 + 200)
    for count in (1, 100):  # of the casts; the second needs a table
        pieces = [Piece(raw.pointer + 3, 4000, 199)] + [
            Piece(floats.pointer + 8000 // count * i, 4000 // count * i, 1000 // count, ("float32", "float64"))
            for i in range(count)
        ]
        pieces += [Piece(raw.pointer, 4199, 1)] * (0 if count == 1 else 100)
        launch, _ = gather(kernels, pieces, block.pointer)
        run(fake, kernels, launch, count)
        got = block.peek()
        assert np.array_equal(got[:4000].view(np.float32), np.arange(1000, dtype=np.float32) / 4)
        assert got[4000:4199].tolist() == list(range(3, 202))


def test_many_equal_pieces_one_after_the_other(fake: FakeCuda, kernels: Kernels):
    source = DeviceBytes.of(kernels.driver, np.arange(1 << 14, dtype=np.uint32))
    block = DeviceBytes(kernels.driver, 1 << 16)
    pieces = [Piece(source.pointer + 64 * i, (1 << 16) - 64 * (i + 1), 64) for i in range(1 << 10)]
    launch, _ = gather(kernels, pieces, block.pointer, limit=(16, 256))
    run(fake, kernels, launch, 1)
    expected = np.arange(1 << 14, dtype=np.uint32).reshape(-1, 16)[::-1].ravel()
    assert np.array_equal(block.peek(np.uint32), expected)


def test_freeing_a_piece_of_a_pending_gather_is_noticed(fake: FakeCuda, kernels: Kernels):
    small = [DeviceBytes(kernels.driver, 16) for _ in range(INLINE + 5)]
    block = DeviceBytes(kernels.driver, 16 * len(small))
    launch, table = gather(kernels, [Piece(one.pointer, 16 * i, 16) for i, one in enumerate(small)], block.pointer)
    assert table is not None
    launch.run(kernels)
    small[100].free()
    assert fake.violations() == ["device#101 was freed with pending work: ferry_gather_table in legacy"]
    fake.drain()
    fake.clear_violations()
