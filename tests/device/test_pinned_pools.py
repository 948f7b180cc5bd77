"""PinnedPool: limits, fences, figures, what it gives back, and what outlives it."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import seen, settle, until
from helpers.fake_cuda import LEGACY, FakeCuda
from helpers.fake_cuda_arrays import TableArray
from helpers.fake_cuda_driver import Driver
from helpers.orders import orders

KIB, MIB = 1 << 10, 1 << 20
FENCES = ["streams", "context", "never"]
every_fence = pytest.mark.parametrize("fence", FENCES)


def address(x: Any) -> int:
    return int(x.__array_interface__["data"][0])


def emptied(fake: FakeCuda, pool: ferry.PinnedPool) -> bool:
    """Let everything come back, and give it to the system."""

    def is_empty() -> bool:
        gc.collect()
        settle(fake)
        pool.trim()
        stats = pool.stats
        return stats.idle_nbytes + stats.retired_nbytes + stats.in_use_nbytes == 0

    return until(is_empty, timeout_s=5)


@every_fence
def test_arrays_count_until_their_last_view_is_gone(fake: FakeCuda, fence: str):
    pool = ferry.PinnedPool(10 * MIB, fence=fence)
    assert pool.stats == type(pool.stats)(0, 0, 0, 0, 0, 10 * MIB, 0, 0, 0, 0, 0, 0)
    array = pool.empty((2, MIB), "uint8")
    view = array[1:, ::2]
    stats = pool.stats
    assert (stats.in_use_nbytes, stats.in_use_arrays, stats.misses, stats.hits) == (2 * MIB, 1, 1, 0)
    del array
    gc.collect()
    assert pool.stats.in_use_arrays == 1
    del view
    gc.collect()
    stats = pool.stats
    assert (stats.in_use_nbytes, stats.in_use_arrays) == (0, 0)
    assert stats.idle_nbytes + stats.retired_nbytes <= stats.high_water_nbytes == 2 * MIB
    registered = fake.live("host_registrations")
    assert emptied(fake, pool)
    assert fake.live("host_registrations") == registered - 1


def test_the_limit_holds_and_what_is_beyond_is_ordinary(fake: FakeCuda):
    pool = ferry.PinnedPool(4 * MIB)
    arrays = [pool.empty(MIB, "uint8") for _ in range(6)]
    assert [ferry.describe(array).pinned for array in arrays] == [True] * 4 + [False] * 2
    assert (pool.stats.in_use_nbytes, pool.stats.refusals) == (4 * MIB, 2)
    assert f"the limit is {4 * MIB} bytes" in ferry.describe(arrays[5]).note
    for array in arrays:
        x = TableArray(np.full(MIB, 3, np.uint8))
        assert ferry.to_numpy(x, out=array) is array
        assert (array == 3).all()
    del arrays, array
    assert emptied(fake, pool)


def test_a_destination_from_any_pool_is_filled_directly(any_schedule: FakeCuda):
    pool = ferry.PinnedPool(MIB)
    out = pool.empty(1000, "int32")
    x = TableArray(np.zeros(1000, np.int32))
    x.write_later(np.arange(1000))
    with seen(any_schedule) as record:
        assert ferry.plan(x, out=out).path == "dma"
        ferry.to_numpy(x, out=out)
    assert record.copies("DtoH") == [4000]
    assert out.tolist() == list(range(1000))


@every_fence
def test_no_memory_serves_twice_while_work_may_touch_it(fake: FakeCuda, fence: str, without_thread: None):
    cuda, nbytes = Driver(), 100_000
    others = cuda.stream()
    pool = ferry.PinnedPool(2 * MIB, fence=fence)
    for number, order in enumerate(orders(fake, seeds=40)):
        stream = (LEGACY, others)[number % 2]
        source = TableArray(np.full(nbytes, 7, np.uint8), stream=stream)
        first = pool.empty(nbytes, "uint8")
        if ferry.describe(first).pinned:
            cuda("cuMemcpyDtoHAsync", address(first), source.pointer, nbytes, stream)
            if stream == others and fence != "context":
                pool.hold(first, stream)
        del first
        second = pool.empty(nbytes, "uint8")
        second[...] = 0
        fake.drain()
        assert not second.any(), order
        del second
    assert (pool.stats.hits > 0) == (fence != "never")
    assert fake.violations() == []
    assert emptied(fake, pool)


def test_memory_of_a_pool_that_never_uses_it_again_goes_back_to_the_system(fake: FakeCuda):
    pool = ferry.PinnedPool(10 * MIB, fence="never")
    registered = fake.live("host_registrations")
    array = pool.empty(3 * MIB, "uint8")
    assert fake.live("host_registrations") == registered + 1
    del array
    assert until(lambda: settle(fake) is None and pool.trim() == 0 and pool.stats.retired_nbytes == 0)
    assert fake.live("host_registrations") == registered
    assert pool.stats.idle_nbytes == 0


def test_trim_keeps_as_much_as_it_is_told(fake: FakeCuda):
    pool = ferry.PinnedPool(64 * MIB)
    arrays = [pool.empty(MIB, "uint8") for _ in range(8)]
    del arrays
    assert until(lambda: settle(fake) is None and pool.trim(8 * MIB) == 0 and pool.stats.idle_nbytes == 8 * MIB)
    assert pool.trim(3 * MIB) == 5 * MIB
    assert pool.stats.idle_nbytes == 3 * MIB
    assert pool.trim() == 3 * MIB
    assert pool.stats.trims == 8


def test_arrays_outlive_their_pool_and_then_all_memory_goes(fake: FakeCuda):
    registered = fake.live("host_registrations")
    pool = ferry.PinnedPool(8 * MIB)
    array = pool.empty(2 * MIB, "uint8")
    other = pool.empty(100, "uint8")
    del pool, other
    gc.collect()
    array[...] = 4
    x = TableArray(np.full(2 * MIB, 5, np.uint8))
    ferry.to_numpy(x, out=array)
    assert (array == 5).all()
    ferry.trim()  # looks after pools that nobody has any more
    assert ferry.describe(array).pinned
    del array
    before = registered + 2  # a block, and one for small arrays
    assert until(lambda: settle(fake) is None and ferry.trim() >= 0 and fake.live("host_registrations") <= before - 2)


HOLDS = {"of the default pool": lambda: ferry.empty_pinned(10_000), "a result": lambda: _result()}


def _result() -> Any:
    return ferry.to_numpy(TableArray(np.zeros(10_000, np.float32)))


@pytest.mark.parametrize("make", HOLDS.values(), ids=HOLDS)
def test_hold_takes_all_memory_that_pools_have_lent(fake: FakeCuda, make: Any):
    array, stream = make(), Driver().stream()
    with seen(fake) as record:
        ferry.hold(array, stream)
        ferry.hold(array[3:], LEGACY)
        ferry.hold(ferry.from_numpy(array, readonly="share"), stream)
    assert [line.rsplit("stream=")[1] for line in record.lines if line.startswith("cuEventRecord")][1] == "legacy"
    assert record.count("cuEventRecord") == 3


def test_hold_refuses_what_is_not_the_pools_and_what_is_no_stream(fake: FakeCuda):
    pool = ferry.PinnedPool(MIB)
    with pytest.raises(ferry.ArgumentError, match="lent by no pool"):
        ferry.hold(np.zeros(3), LEGACY)
    with pytest.raises(ferry.ArgumentError, match="not lent by this pool"):
        pool.hold(ferry.empty_pinned(100_000), LEGACY)
    with pytest.raises(ferry.ArgumentError, match="keep the array until"):
        ferry.hold(TableArray(np.zeros(3)), LEGACY)
    for stream in (0, -1, None, "legacy"):
        with pytest.raises(ferry.StreamError):
            ferry.hold(ferry.empty_pinned(3), stream)


def test_a_capturing_stream_cannot_be_held(fake: FakeCuda):
    stream = Driver().stream()
    array = ferry.empty_pinned(100_000)
    fake.begin_capture(stream)
    with pytest.raises(ferry.DeviceError, match="captur"):
        ferry.hold(array, stream)
    graph = fake.end_capture(stream)
    fake.destroy_graph(graph)


def test_taking_and_dropping_memory_leaves_a_capture_of_others_alone(fake: FakeCuda):
    stream = Driver().stream()
    fake.begin_capture(stream)
    for _ in range(3):
        array = ferry.zeros_pinned(3 * MIB, "uint8")
        with ferry.pinned(np.zeros(10_000)):
            del array
        ferry.trim()
        assert ferry.pool_stats().pinned is not None
    graph = fake.end_capture(stream)
    fake.destroy_graph(graph)
    fake.drain()


def test_pools_are_for_all_threads(fake: FakeCuda):
    fake.schedule("threaded", 3)
    pool = ferry.PinnedPool(8 * MIB)
    failures: list[str] = []

    def work(number: int) -> None:
        fake.use_device(0)
        for i in range(40):
            array = pool.empty(64 * KIB + 4096 * (i % 5), "uint8")
            array[...] = number
            if i % 3 == 0:
                pool.trim(MIB)
            if i % 5 == 0:
                pool.hold(array, LEGACY)
            if not (array == number).all():
                failures.append(f"thread {number}, round {i}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert pool.stats.high_water_nbytes <= 8 * MIB
    assert emptied(fake, pool)


@pytest.mark.usefixtures("without_thread")  # it may bring memory back at any moment
def test_pool_stats_tell_of_pinned_results(fake: FakeCuda):
    def idle_nbytes() -> int:
        settle(fake)
        ferry.trim()
        pinned = ferry.pool_stats().pinned
        return pinned.idle_nbytes + pinned.retired_nbytes if pinned else 0

    before, idle_before = ferry.pool_stats().pinned, idle_nbytes()
    array = ferry.empty_pinned(5 * MIB, "uint8")
    after = ferry.pool_stats().pinned
    assert after is not None
    assert after.in_use_nbytes - (before.in_use_nbytes if before else 0) == array.nbytes
    del array
    assert ferry.pool_stats().pinned.in_use_nbytes == after.in_use_nbytes - 5 * MIB
    assert until(lambda: idle_nbytes() <= idle_before, timeout_s=5)
