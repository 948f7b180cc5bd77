"""Transposes by tiles in shared memory."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.fake_cuda import FakeCuda
from helpers.fake_kernels import Kernels
from helpers.kernel_layouts import BITS, OnDevice, copied_by_launch

SHAPES = [(64, 64), (128, 128), (33, 65), (129, 127), (200, 40), (40, 200), (1, 300, 70), (3, 90, 50), (2, 3, 40, 72)]


def transpose(
    fake: FakeCuda, kernels: Kernels, itemsize: int, shape: tuple[int, ...], *, offset: int = 0, blocks: int = 3
) -> bool:
    """Transpose the last two axes; are the values right?"""
    rng, dtype = np.random.default_rng(itemsize), BITS[itemsize]
    base = rng.integers(0, 256, int(np.prod(shape)) * itemsize, np.uint8).view(dtype).reshape(shape)
    source = np.swapaxes(base, -1, -2)
    to = np.zeros(source.shape, dtype)
    out_of, into = OnDevice(kernels, base, offset), OnDevice(kernels, to, offset)
    launch = copied_by_launch(kernels, to, into, source, out_of, (dtype, dtype), limit=(blocks, 256))
    assert launch is not None
    # Elements that do not lie at multiples of their size move in parts, which no tile holds.
    assert launch.name.startswith("ferry_transpose" if offset % itemsize == 0 else "ferry_strided")
    launch.run(kernels)
    fake.drain()
    right = into.values().tobytes() == np.ascontiguousarray(source).tobytes()
    into.memory.free()
    out_of.memory.free()
    return right


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("itemsize", BITS)
def test_matrices_of_many_shapes(fake: FakeCuda, kernels: Kernels, itemsize: int, shape: tuple[int, ...]):
    assert transpose(fake, kernels, itemsize, shape)


@pytest.mark.parametrize("itemsize", BITS)
@pytest.mark.parametrize("offset", [1, 2, 4, 8, 16])
def test_matrices_of_any_alignment(fake: FakeCuda, kernels: Kernels, itemsize: int, offset: int):
    assert transpose(fake, kernels, itemsize, (70, 90), offset=offset)


@pytest.mark.parametrize("nth", [1, 2], ids=["before the tile is read", "before the next tile is written"])
@pytest.mark.parametrize("itemsize", BITS)
def test_both_barriers_are_needed(fake: FakeCuda, kernels: Kernels, itemsize: int, nth: int):
    wrong = 0
    for seed in range(4):
        fake.kernel_seed(seed)
        with fake.kernel_mistake("barrier", nth, period=2):
            wrong += not transpose(fake, kernels, itemsize, (300, 300), blocks=1)
        assert any("shared memory" in line for line in fake.violations()), f"no race was seen with seed {seed}"
        fake.clear_violations()
    print(f"{wrong} of 4 seeds gave wrong values")
    assert wrong > 0
