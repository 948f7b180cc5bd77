"""Pinned memory of results: when it is used, how much, when again, and when not."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import is_pinned, settle, until
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import TableArray
from helpers.fake_cuda_driver import Driver
from tensorferry._native import core

MIB = 1 << 20


def make(nbytes: int, value: int = 1) -> Any:
    return TableArray(np.full(nbytes, value, np.uint8))


_before = 0  # what tests that lost a device have left for good


@pytest.fixture(autouse=True)
def _only_ours(fake: FakeCuda) -> None:
    global _before
    _before = 0
    _before = in_use()


def in_use() -> int:
    stats = core.pinned_stats()
    return 0 if stats is None else int(stats["in_use_nbytes"]) - _before


def nothing_in_use(fake: FakeCuda) -> bool:
    """Has everything come back? The internal thread may be at it."""
    gc.collect()
    return until(lambda: settle(fake) is None and in_use() == 0)


def emptied(fake: FakeCuda) -> bool:
    """Let what other tests left in the pool come back, and give it to the system."""

    def is_empty() -> bool:
        ferry.to_numpy(make(MIB + 1))  # a pool that grows looks what may be used again
        settle(fake)
        core.PinnedPool.of_results().trim(0)
        return bool(in_use() + core.pinned_stats()["retired_nbytes"] <= 2 * MIB)

    return until(is_empty)


@pytest.mark.parametrize("pinned", ["auto", True])
@pytest.mark.parametrize("nbytes", [1, 1000, 100_000, 3 * MIB])
def test_results_lie_in_pinned_memory_where_they_may(any_schedule: FakeCuda, pinned: Any, nbytes: int):
    x = make(nbytes)
    array = ferry.to_numpy(x, pinned=pinned)
    assert is_pinned(array)
    assert is_pinned(ferry.to_numpy_async(x, pinned=pinned).result())
    assert array.tobytes() == b"\1" * nbytes
    assert any_schedule.live("pageable_copies") == 0


@pytest.mark.parametrize("nbytes", [1, 100_000, 3 * MIB])
def test_ordinary_memory_on_demand(any_schedule: FakeCuda, nbytes: int):
    x = make(nbytes)
    array = ferry.to_numpy(x, pinned=False)
    assert not is_pinned(array)
    assert ferry.plan(x, pinned=False).path == "ring"
    assert array.tobytes() == b"\1" * nbytes
    transfer = ferry.to_numpy_async(x, pinned=False)
    assert transfer.plan.path == "ring"
    assert transfer.plan.waits == ("the device",)
    assert transfer.result().tobytes() == b"\1" * nbytes
    assert nothing_in_use(any_schedule)
    assert any_schedule.live("pageable_copies") == 0


def test_a_copy_that_is_writable_in_pinned_memory_is_private(any_schedule: FakeCuda):
    x = make(1000)
    first, second = ferry.to_numpy(x, copy=True), ferry.to_numpy(x, copy=True)
    first[:] = 5
    assert second.tobytes() == b"\1" * 1000


def test_beyond_the_budget_results_come_through_the_ring_and_the_plan_says_so(any_schedule: FakeCuda):
    x = make(4 * MIB, 7)
    assert emptied(any_schedule)
    with ferry.options(pinned_nbytes=_before + 7 * MIB):
        kept = ferry.to_numpy(x)
        assert is_pinned(kept)
        planned = ferry.plan(x)
        assert (planned.path, planned.copies) == ("ring", 2)
        beyond = ferry.to_numpy(x)
        assert not is_pinned(beyond)
        assert beyond.tobytes() == kept.tobytes() == b"\7" * (4 * MIB)
        with pytest.raises(ferry.DeviceError, match="4,194,304"):
            ferry.to_numpy(x, pinned=True)
        with pytest.raises(ferry.DeviceError, match="pinned"):
            ferry.to_numpy_async([x], pinned=True)
        del kept
        gc.collect()


def test_where_the_system_locks_no_memory_of_results_everything_still_arrives(fake: FakeCuda):
    fake.host_budget(3 * MIB)
    x = make(4 * MIB, 3)
    array = ferry.to_numpy(x)
    assert array.tobytes() == b"\3" * (4 * MIB)
    assert not is_pinned(array)


def test_a_block_is_used_again_only_when_nothing_can_touch_it(any_schedule: FakeCuda):
    """Given away by an array, work of others may be in flight in it: here a copy to the device from its memory."""
    fake, driver = any_schedule, Driver()
    x, sink = make(MIB, 1), make(MIB, 0)
    array = ferry.to_numpy(x)
    address = array.ctypes.data
    with fake.held():
        driver("cuMemcpyHtoDAsync", sink.pointer, address, MIB, 1)  # in the legacy stream, as torch's would be
        del array
        gc.collect()
        for value in range(5):
            transfer = ferry.to_numpy_async(make(MIB, 100 + value), snapshot=False)
            del transfer
    fake.drain()
    assert sink.peek().tobytes() == b"\1" * MIB


def test_memory_comes_back_and_is_used_again(any_schedule: FakeCuda):
    for value in range(200):
        array = ferry.to_numpy(make(MIB, value % 250))
        assert array[-1] == value % 250
        del array
        settle(any_schedule)
    assert nothing_in_use(any_schedule)
    stats = core.pinned_stats()
    assert stats["idle_nbytes"] + stats["retired_nbytes"] <= 130 * MIB  # two epochs of 64 MiB, and what is over
    assert stats["hits"] > 0


def test_a_view_keeps_the_memory_and_the_last_one_gives_it_back(any_schedule: FakeCuda):
    array = ferry.to_numpy(make(MIB, 9))
    view = array.reshape(1024, 1024)[::2, 1:]
    del array
    for value in range(20):
        ferry.to_numpy(make(MIB, value))
    assert (view == 9).all()
    assert until(lambda: settle(any_schedule) is None and in_use() == MIB)
    del view
    assert nothing_in_use(any_schedule)


def test_small_leaves_of_a_nest_do_not_keep_a_large_block(any_schedule: FakeCuda):
    nest = ferry.to_numpy({"large": make(8 * MIB), "small": make(16), "scalar": make(1)})
    small = nest["small"], nest["scalar"]
    del nest
    gc.collect()
    assert until(lambda: settle(any_schedule) is None and in_use() <= 1024)
    assert [array.tolist() for array in small] == [[1] * 16, [1]]


def test_a_pinned_result_is_a_destination_that_is_filled_directly(any_schedule: FakeCuda):
    out = ferry.to_numpy(make(MIB, 0), copy=True)
    x = make(MIB, 5)
    assert ferry.plan(x, out=out).copies == 1
    any_schedule.clear_trace()
    assert ferry.to_numpy(x, out=out) is out
    assert any_schedule.call_counts()["cuMemcpyDtoHAsync"] == 1
    assert out.tobytes() == b"\5" * MIB
    part = out[1000:2000]
    ferry.to_numpy_async(make(1000, 6), out=part).result()
    assert (out[999], out[1000], out[1999], out[2000]) == (5, 6, 6, 5)


def test_trimming_gives_idle_memory_back(fake: FakeCuda):
    registered = fake.live("host_registrations")
    ferry.to_numpy(make(4 * MIB))
    settle(fake)
    with ferry.options(pinned_nbytes=_before + MIB):
        ferry.to_numpy(make(100_000))
        settle(fake)
    assert nothing_in_use(fake)
    core.PinnedPool.of_results().trim(0)
    assert fake.live("host_registrations") <= registered + 4


@pytest.mark.parametrize("preset", ["register_unsupported", "register_not_permitted", "register_random_failure"])
def test_where_registering_fails_results_are_right(fake: FakeCuda, preset: str):
    fake.preset(preset)
    for value in range(10):
        assert ferry.to_numpy(make(100_000, value)).tobytes() == bytes([value]) * 100_000
        assert ferry.to_numpy_async(make(300, value)).result().tobytes() == bytes([value]) * 300
