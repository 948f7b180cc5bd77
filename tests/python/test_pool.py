"""Private host copies get warm, aligned memory from a pool, whose figures are those that one counts by hand."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.memory import address
from helpers.subprocess import stdout_of
from tensorferry.types import PoolStats

KIB, MIB = 1 << 10, 1 << 20
UNLIMITED = 1 << 40

TENSOR = torch.arange(256 * 1024, dtype=torch.float32).reshape(512, 512)  # 1 MiB
MASKED = np.arange(1 << 17, dtype=">i8")

COPIES: dict[str, Callable[[], np.ndarray]] = {
    "copy=True of a tensor": lambda: ferry.to_numpy(TENSOR, copy=True),
    "copy=True of an array": lambda: ferry.to_numpy(TENSOR.numpy(), copy=True),
    "cast": lambda: ferry.to_numpy(TENSOR[:256], dtype="float64"),
    "memory order": lambda: ferry.to_numpy(TENSOR, order="F"),
    "transposed": lambda: ferry.to_numpy(TENSOR.t(), order="C"),
    "conjugate": lambda: ferry.to_numpy(torch.ones(1 << 17, dtype=torch.complex64).conj()),
    "leaf of a nest": lambda: ferry.to_numpy({"a": [TENSOR]}, copy=True)["a"][0],
    "packed float4": lambda: ferry.to_numpy(torch.zeros(512, 1024, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)),
    "dtype of ml_dtypes": lambda: ferry.to_numpy(TENSOR.bfloat16().repeat(2, 1), copy=True),
    "other byte order": lambda: ferry.to_numpy(MASKED, dtype="int64"),
    "stack": lambda: ferry.stack([TENSOR[0]] * 512, to="numpy"),
    "stack for torch": lambda: ferry.stack([TENSOR[0]] * 512).numpy(),
    "from a capsule": lambda: ferry.from_dlpack(TENSOR, to="numpy", copy=True),
}


@pytest.fixture(autouse=True)
def _empty_pool() -> Iterator[None]:
    with ferry.options(host_pool_nbytes=UNLIMITED):
        ferry.trim()
        yield


def change_since(before: PoolStats) -> dict[str, int]:
    after = ferry.pool_stats()
    return {name: now - then for name in vars(after) if (now := vars(after)[name]) != (then := vars(before)[name])}


@pytest.mark.parametrize("kind", COPIES)
def test_every_private_copy_comes_from_the_pool_and_goes_back(kind):
    before = ferry.pool_stats()
    first = COPIES[kind]()
    assert first.nbytes == MIB
    assert change_since(replace(before, high_water_nbytes=0)).items() >= {
        ("in_use_nbytes", MIB), ("in_use_blocks", 1), ("misses", 1),
    }  # fmt: skip
    place, values = address(first), first.tobytes()
    del first
    second = COPIES[kind]()
    assert address(second) == place
    assert second.tobytes() == values
    assert ferry.pool_stats().hits == before.hits + 1


def test_views_and_results_for_out_take_nothing_from_the_pool():
    before = ferry.pool_stats()
    out = np.empty((512, 512), np.float32)
    held = [ferry.to_numpy(TENSOR), ferry.to_numpy(TENSOR, out=out), ferry.from_numpy(out)]
    assert ferry.pool_stats() == before
    assert len(held) == 3


def test_the_figures_are_those_counted_by_hand():
    before = ferry.pool_stats()
    a, b = ferry.to_numpy(TENSOR, copy=True), ferry.to_numpy(TENSOR[:100], copy=True)  # 204,800 bytes are 50 pages
    in_use = 256 * 4096 + 50 * 4096
    assert ferry.pool_stats().in_use_nbytes - before.in_use_nbytes == in_use
    assert ferry.pool_stats().in_use_blocks - before.in_use_blocks == 2
    del a
    assert (ferry.pool_stats().idle_nbytes, ferry.pool_stats().idle_blocks) == (MIB, 1)
    c = ferry.to_numpy(TENSOR[:460], copy=True)  # 942,080 bytes fit into 1 MiB: that wastes less than 1/8
    assert (ferry.pool_stats().idle_nbytes, ferry.pool_stats().hits - before.hits) == (0, 1)
    del c
    d = ferry.to_numpy(TENSOR[:450], copy=True)  # 921,600 bytes would waste more
    assert (ferry.pool_stats().idle_nbytes, ferry.pool_stats().misses - before.misses) == (MIB, 3)
    assert ferry.trim() == MIB
    assert ferry.pool_stats().trims - before.trims == 1
    del b, d
    assert ferry.pool_stats().idle_nbytes == (50 + 225) * 4096
    assert ferry.pool_stats().in_use_nbytes == before.in_use_nbytes
    assert ferry.pool_stats().high_water_nbytes >= before.in_use_nbytes + MIB + (50 + 225) * 4096


@pytest.mark.parametrize(
    ("nbytes", "cost"),
    [(8 * KIB, 8 * KIB), (8 * KIB + 1, 8 * KIB + 64), (64 * KIB + 1, 68 * KIB), (64 * MIB + 1, 66 * MIB)],
    ids=["8 KiB", "a byte more", "64 KiB and a byte", "64 MiB and a byte"],
)
def test_memory_is_exact(nbytes, cost):
    before = ferry.pool_stats()
    copied = ferry.to_numpy(np.zeros(nbytes, np.uint8), copy=True)
    assert copied.nbytes == nbytes
    assert ferry.pool_stats().in_use_nbytes - before.in_use_nbytes == cost


def test_small_copies_are_not_counted():
    before = ferry.pool_stats()
    small = ferry.to_numpy(np.zeros(8 * KIB - 1, np.uint8), copy=True)
    assert ferry.pool_stats() == before
    assert small.nbytes < 8 * KIB


@pytest.mark.parametrize("nbytes", [1, 7, 64, 1000, 1024, 4096, 8192, 65536, 100_000, MIB, 2 * MIB, 5 * MIB + 3])
def test_memory_is_aligned(nbytes):
    held = [ferry.to_numpy(np.full(nbytes, i, np.uint8), copy=True) for i in range(3)]
    for i, copied in enumerate(held):
        assert address(copied) % (2 * MIB if nbytes >= 2 * MIB else 64) == 0
        assert copied.tobytes() == bytes([i]) * nbytes


@pytest.mark.parametrize("size", [3, 1 << 18], ids=["small", "pooled"])
def test_a_copy_is_an_array_like_any_of_numpys_own(size):
    copied = ferry.to_numpy(torch.arange(size, dtype=torch.float64), copy=True)
    assert copied.base is None
    assert copied.flags.owndata
    assert copied.flags.writeable
    assert copied.flags.aligned
    assert copied.flags.c_contiguous
    copied.flags.writeable = False
    copied.flags.writeable = True
    copied[:] = copied[::-1].copy()
    np.testing.assert_array_equal(copied, np.arange(size, dtype=float)[::-1])
    copied.sort()
    np.testing.assert_array_equal(copied, np.arange(size))
    np.testing.assert_array_equal(np.argsort(-copied, kind="stable"), np.arange(size)[::-1])


@pytest.mark.parametrize(
    ("before", "after"),
    [(3, 5), (5, 3), (3, 1 << 16), (1 << 16, 3), (1 << 16, 1 << 18), (1 << 18, 1 << 16), (1 << 18, (1 << 18) - 1)],
)
def test_resize_keeps_the_values_and_fills_with_zeros(before, after):
    copied = ferry.to_numpy(np.arange(1, before + 1), copy=True)
    copied.resize(after, refcheck=False)
    expected = np.zeros(after, int)
    expected[: min(before, after)] = np.arange(1, min(before, after) + 1)
    np.testing.assert_array_equal(copied, expected)
    copied.resize(before, refcheck=False)
    np.testing.assert_array_equal(copied[: min(before, after)], expected[: min(before, after)])
    assert not ferry.to_numpy(np.zeros(before, int), copy=True).any()


def test_an_array_that_was_shrunk_returns_its_block():
    before = ferry.pool_stats()
    copied = ferry.to_numpy(TENSOR.flatten(), copy=True)
    copied.resize(4, refcheck=False)
    assert change_since(replace(before, high_water_nbytes=ferry.pool_stats().high_water_nbytes)) == {
        "misses": 1, "idle_nbytes": MIB, "idle_blocks": 1,
    }  # fmt: skip
    other = ferry.to_numpy(TENSOR, copy=True)
    assert copied.tolist() == [0, 1, 2, 3]
    copied[:] = 9
    np.testing.assert_array_equal(other, TENSOR.numpy())


def test_an_array_that_takes_on_another_state_returns_its_block():
    copied = ferry.to_numpy(TENSOR, copy=True)
    idle = ferry.pool_stats().idle_blocks
    copied.__setstate__(np.arange(3.0).__reduce__()[2])
    assert copied.tolist() == [0, 1, 2]
    assert ferry.pool_stats().idle_blocks == idle + 1


def test_an_array_of_more_than_all_memory_is_refused_as_numpy_does():
    source = torch.zeros(1).expand(1 << 45)
    with pytest.raises(MemoryError, match="Unable to allocate"):
        ferry.to_numpy(source, copy=True)


@pytest.mark.parametrize("size", [100, 1 << 18], ids=["small", "pooled"])
def test_tracemalloc_sees_the_memory_of_copies(size):
    tensor = torch.zeros(size, dtype=torch.float64)
    ferry.to_numpy(tensor, copy=True)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        copied = ferry.to_numpy(tensor, copy=True)
        during = tracemalloc.get_traced_memory()[0] - before
        assert copied.nbytes <= during <= copied.nbytes + 1000
        del copied
        assert tracemalloc.get_traced_memory()[0] - before < 1000
    finally:
        tracemalloc.stop()


def memory_flags(place: int) -> list[str]:
    """Return what Linux says of the mapping that `place` lies in."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= place < int(found[2], 16)
        elif inside and line.startswith("VmFlags:"):
            return line.split()[1:]
    raise LookupError(hex(place))


@pytest.mark.parametrize(
    "made",
    [
        lambda: ferry.to_numpy(np.ones(1 << 21), copy=True),
        lambda: ferry.from_numpy(np.ones(1 << 21), copy=True),
        lambda: ferry.stack([np.ones(1 << 14)] * 128),
    ],
    ids=["copy to NumPy", "copy to torch", "stack for torch"],
)
def test_large_results_lie_in_huge_pages_where_there_are_some(made):
    result = made()
    assert ("hg" in memory_flags(address(result) + result.nbytes // 2)) == Path(
        "/sys/kernel/mm/transparent_hugepage"
    ).exists()
    assert np.asarray(result).min() == 1


def test_trim_keeps_what_it_is_told_to_and_what_lives():
    live = ferry.to_numpy(TENSOR, copy=True)
    arrays = [ferry.to_numpy(TENSOR[: 128 * (i + 1)], copy=True) for i in range(3)]  # 256, 512, 768 KiB
    while arrays:
        arrays.pop(0)
    assert ferry.trim(1536 * KIB) == 0
    assert ferry.trim(1300 * KIB) == 256 * KIB  # the first that went back
    assert ferry.trim(nbytes=0) == 1280 * KIB
    assert ferry.trim() == 0
    np.testing.assert_array_equal(live, TENSOR.numpy())


def test_the_limit_is_a_sixteenth_of_memory_at_first():
    printed = stdout_of("import tensorferry as ferry; print(ferry.pool_stats())")
    physical = stdout_of("import os; print(os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') // 16)")
    limit = int(printed.split("limit_nbytes=")[1].split(",")[0])
    assert 0 < limit <= int(physical)
    assert printed == repr(PoolStats(0, 0, 0, 0, limit, 0, 0, 0, 0))


def test_options_hold_at_once_and_in_a_with_statement_until_its_end():
    held = ferry.pool_stats().limit_nbytes
    copied = ferry.to_numpy(TENSOR, copy=True)
    del copied
    with ferry.options(host_pool_nbytes=MIB - 1):
        assert ferry.pool_stats().limit_nbytes == MIB - 1
        assert ferry.pool_stats().idle_nbytes == 0
        with ferry.options():
            assert ferry.pool_stats().limit_nbytes == MIB - 1
        ferry.to_numpy(TENSOR, copy=True)
        assert ferry.pool_stats().idle_nbytes == 0
    assert ferry.pool_stats().limit_nbytes == held
    ferry.options(host_pool_nbytes=5 * MIB)
    assert ferry.pool_stats().limit_nbytes == 5 * MIB


@pytest.mark.parametrize("value", [-1, 1.5, "1 GiB", True, 1 << 70], ids=repr)
def test_what_is_no_number_of_bytes_is_refused(value):
    with pytest.raises(ferry.ArgumentError, match="no number of bytes"):
        ferry.trim(value)
    with pytest.raises(ferry.ArgumentError, match="host_pool_nbytes"):
        ferry.options(host_pool_nbytes=value)


@pytest.mark.parametrize("size", [10, 1 << 18], ids=["small", "pooled"])
def test_in_debug_mode_new_memory_is_filled_first(size):
    program = f"""
        import os
        os.environ["TENSORFERRY_DEBUG"] = {{setting!r}}
        from tensorferry._native import core
        filled = core.empty_array("uint8", [{size}])
        print((filled == 0xA5).all())
    """
    assert stdout_of(program.format(setting="poison")) == "True"
    assert stdout_of(program.format(setting="")) == "False"
