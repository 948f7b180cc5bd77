"""Promises 1 and 2: what arrives is complete, and is the value at the call, in whatever order the device works."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import seen, until
from helpers.fake_cuda import LEGACY, PER_THREAD, FakeCuda
from helpers.fake_cuda_arrays import DeviceArray, InterfaceArray, OldCapsuleArray, TableArray
from helpers.fake_cuda_driver import Driver
from helpers.orders import orders
from tensorferry.types import Transfer

FOREIGN = [DeviceArray, OldCapsuleArray, InterfaceArray]
foreign = pytest.mark.parametrize("foreign_kind", FOREIGN, ids=["capsules", "old capsules", "array interface"])
snapshots = pytest.mark.parametrize("snapshot", ["auto", True, False], ids="snapshot={}".format)


@pytest.fixture
def driver(fake: FakeCuda) -> Driver:
    return Driver()


def current(stream: int) -> None:
    """Let the exchange table answer with this stream, with NULL for the legacy one as torch does."""
    TableArray.current_stream = None if stream == LEGACY else stream


@snapshots
def test_promise_2_a_producer_that_overwrites_after_the_call_changes_nothing(
    fake: FakeCuda, driver: Driver, snapshot: Any
):
    streams = [LEGACY, driver.stream(), driver.stream(blocking=True)]
    for number, order in enumerate(orders(fake)):
        stream = streams[number % 3]
        current(stream)
        x = TableArray(np.zeros(6, np.int32), stream=stream)
        x.write_later(np.arange(6))
        transfer = ferry.to_numpy_async(x, snapshot=snapshot)
        x.write_later(np.full(6, -1))
        assert transfer.result().tolist() == [0, 1, 2, 3, 4, 5], order
        assert fake.violations() == [], order


def test_promise_1_to_numpy_returns_what_was_written_before_it(fake: FakeCuda, driver: Driver):
    side = driver.stream()
    for number, order in enumerate(orders(fake)):
        stream = (LEGACY, side)[number % 2]
        current(stream)
        x = TableArray(np.zeros(4, np.int16), stream=stream)
        x.write_later([1, 2, 3, 4])
        first = ferry.to_numpy(x)
        x.write_later([5, 6, 7, 8])
        second = ferry.to_numpy({"x": x})["x"]
        x.write_later([9, 9, 9, 9])
        assert (first.tolist(), second.tolist()) == ([1, 2, 3, 4], [5, 6, 7, 8]), order


@snapshots
def test_the_source_may_be_freed_right_after_the_call(fake: FakeCuda, driver: Driver, snapshot: Any):
    streams = [LEGACY, driver.stream()]
    for number, order in enumerate(orders(fake)):
        stream = streams[number % 2]
        current(stream)
        x = TableArray(np.zeros(5, np.uint8), stream=stream)
        x.write_later(np.arange(5))
        transfer = ferry.to_numpy_async([x], snapshot=snapshot)
        del x
        recycled = TableArray(np.zeros(5, np.uint8), stream=stream)
        recycled.write_later(np.full(5, 99))
        assert transfer.result()[0].tolist() == [0, 1, 2, 3, 4], order
        assert fake.violations() == [], order


def test_a_transfer_that_nobody_keeps_does_no_harm(fake: FakeCuda, driver: Driver):
    stream = driver.stream()
    current(stream)
    for _ in orders(fake, 200):
        x = TableArray(np.zeros(5, np.uint8), stream=stream)
        x.write_later(np.arange(5))
        ferry.to_numpy_async(x)
        x.write_later(np.full(5, 7))
        del x
    assert fake.violations() == []


def test_random_programs_of_several_streams_devices_and_calls(fake: FakeCuda, driver: Driver):
    streams = {0: [LEGACY, driver.stream(), driver.stream()]}
    with_second = Driver()
    fake.use_device(1)
    streams[1] = [LEGACY, with_second.stream()]
    fake.use_device(0)
    for number, order in enumerate(orders(fake)):
        rng = random.Random(number)
        expected: list[list[int]] = []
        transfers: list[Any] = []
        for _ in range(3):
            device = rng.randrange(2)
            stream = rng.choice(streams[device])
            current(stream)
            x = TableArray(np.zeros(3, np.int64), device=device, stream=stream)
            value = rng.randrange(1000)
            x.write_later(np.full(3, value))
            y = TableArray(np.zeros(3, np.int64), device=device, stream=stream) if rng.random() < 0.5 else x
            y.write_later(np.full(3, value + 1))
            transfers.append(ferry.to_numpy_async([x, y], snapshot=rng.choice(["auto", False])))
            x.write_later(np.full(3, -1))
            expected.append([value if y is not x else value + 1, value + 1])
            if rng.random() < 0.3:
                transfers.pop()  # dropped
                expected.pop()
        rng.shuffle(pairs := list(zip(transfers, expected, strict=True)))
        for transfer, values in pairs:
            assert [array.tolist() for array in transfer.result()] == [[value] * 3 for value in values], order
        assert fake.violations() == [], order


@pytest.mark.parametrize("call", ["to_numpy", "to_numpy_async"])
def test_the_stream_that_is_named_is_the_one_that_orders(fake: FakeCuda, driver: Driver, call: str):
    side = driver.stream()

    class Named:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, side)

    for number, order in enumerate(orders(fake)):
        x = TableArray(np.zeros(4, np.int8), stream=side)
        x.write_later([1, 2, 3, 4])
        stream = (side, Named())[number % 2]
        made = ferry.to_numpy(x, stream=stream) if call == "to_numpy" else ferry.to_numpy_async(x, stream=stream)
        x.write_later([9, 9, 9, 9])
        array = made.result() if isinstance(made, Transfer) else made
        assert array.tolist() == [1, 2, 3, 4], order


def test_the_per_thread_stream_is_that_of_the_calling_thread(fake: FakeCuda):
    found: dict[int, Any] = {}
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            fake.use_device(0)
            for seed in range(50):
                x = TableArray(np.zeros(4, np.int32))  # given back in the legacy stream, which waits for all of them
                x.write_later(np.full(4, number * 1000 + seed), stream=PER_THREAD)
                transfer = ferry.to_numpy_async(x, stream=PER_THREAD)
                x.write_later(np.full(4, -1), stream=PER_THREAD)
                del x
                found.setdefault(number, []).append(transfer.result()[0])
        except BaseException as error:
            errors.append(error)

    for schedule in ("lazy", "shuffled", "threaded"):
        found.clear()
        fake.schedule(schedule, 5)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert errors == []
        assert found == {number: [number * 1000 + seed for seed in range(50)] for number in range(4)}


@pytest.mark.parametrize("where", [0, 1], ids="tensor on device {}".format)
@pytest.mark.parametrize("kind", [TableArray, *FOREIGN])
def test_the_current_device_does_not_matter_and_stays(any_schedule: FakeCuda, kind: Any, where: int):
    driver = Driver()
    x = kind(np.zeros(4, np.int32), device=where)
    x.write_later([1, 2, 3, 4])
    for now in (0, 1):
        any_schedule.use_device(now)
        before = driver.get_handle("cuCtxGetCurrent")
        assert ferry.to_numpy(x).tolist() == [1, 2, 3, 4]
        assert ferry.to_numpy_async([x]).result()[0].tolist() == [1, 2, 3, 4]
        assert driver.get_handle("cuCtxGetCurrent") == before


def test_a_thread_without_a_current_context_reads_as_well(any_schedule: FakeCuda):
    x = TableArray(np.zeros(4, np.int32), device=1)
    x.write_later([1, 2, 3, 4])
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(ferry.to_numpy(x).tolist()))
    thread.start()
    thread.join(60)
    assert found == [[1, 2, 3, 4]]


@foreign
def test_foreign_work_before_the_call_is_seen(fake: FakeCuda, driver: Driver, foreign_kind: Any):
    stream = driver.stream()
    for order in orders(fake):
        x = foreign_kind(np.zeros(4, np.int32), stream=stream)
        x.write_later([1, 2, 3, 4])
        array = ferry.to_numpy(x)
        x.write_later([9, 9, 9, 9])
        assert array.tolist() == [1, 2, 3, 4], order


@foreign
def test_foreign_producers_later_work_is_kept_out_by_blocking(fake: FakeCuda, driver: Driver, foreign_kind: Any):
    stream = driver.stream()
    for order in orders(fake, 300):
        x = foreign_kind(np.zeros(4, np.int32), stream=stream)
        x.write_later([1, 2, 3, 4])
        transfer = ferry.to_numpy_async(x)
        x.write_later([9, 9, 9, 9])
        assert transfer.plan.waits == ("the device",)
        assert transfer.done()
        assert transfer.result().tolist() == [1, 2, 3, 4], order


@foreign
def test_a_call_for_a_foreign_producer_returns_only_when_the_copy_is_done(
    fake: FakeCuda, driver: Driver, foreign_kind: Any
):
    x = foreign_kind(np.zeros(4, np.int32), stream=driver.stream())
    made: list[Any] = []
    with fake.held():
        x.write_later([1, 2, 3, 4])
        thread = threading.Thread(target=lambda: made.append(ferry.to_numpy_async(x)))
        thread.start()
        assert not until(lambda: bool(made), timeout_s=0.1)
    thread.join(60)
    assert made[0].result().tolist() == [1, 2, 3, 4]


def test_a_producer_with_a_table_does_not_make_the_call_wait(fake: FakeCuda, driver: Driver):
    stream = driver.stream()
    current(stream)
    x = TableArray(np.zeros(4, np.int32), stream=stream)
    ferry.to_numpy_async(x).result()  # takes staging
    x.write_later([1, 2, 3, 4])
    with fake.held():
        transfer = ferry.to_numpy_async(x)
        assert transfer.plan.waits == ()
        assert not transfer.done()
    assert transfer.result().tolist() == [1, 2, 3, 4]


def test_the_producers_stream_goes_on_while_a_snapshot_is_on_its_way(fake: FakeCuda, driver: Driver):
    stream = driver.stream()
    current(stream)
    x = TableArray(np.arange(4), stream=stream)
    ferry.to_numpy_async(x).result()
    with seen(fake) as made:
        transfer = ferry.to_numpy_async(x, snapshot=True)
    transfer.result()
    own = [line for line in made.lines if line.startswith("cuMemcpy")]
    assert [line.split()[0] for line in own] == ["cuMemcpyDtoDAsync", "cuMemcpyDtoHAsync"]
    assert own[0].split("stream=")[1] != own[1].split("stream=")[1]
    assert transfer.stats.snapshot
