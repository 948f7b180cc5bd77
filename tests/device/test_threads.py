"""Threads: no wait holds the GIL, and many threads at once get their own values."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import until
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import DeviceArray, InterfaceArray, TableArray
from helpers.fake_cuda_driver import Driver

LARGE = 3 << 20  # more than a slot of the ring


def array(kind: Any, nbytes: int = 64) -> Any:
    return kind(np.zeros(nbytes // 4, np.float32))


CALLS: dict[str, Callable[[], Any]] = {
    "to_numpy": lambda: ferry.to_numpy(array(TableArray)),
    "to_numpy through capsules": lambda: ferry.to_numpy(array(DeviceArray)),
    "to_numpy through the array interface": lambda: ferry.to_numpy(array(InterfaceArray)),
    "to_numpy of a nest": lambda: ferry.to_numpy([array(TableArray) for _ in range(8)]),
    "to_numpy with a cast": lambda: ferry.to_numpy(array(TableArray), dtype="float64", copy=True),
    "to_numpy through the ring": lambda: ferry.to_numpy(array(TableArray, LARGE), pinned=False),
    "to_numpy into a destination": lambda: ferry.to_numpy(array(TableArray), out=np.zeros(16, np.float32)),
    "to_numpy into a large destination": lambda: ferry.to_numpy(
        array(TableArray, 4 * LARGE), out=np.zeros(LARGE, np.float32)
    ),
    "to_python": lambda: ferry.to_python(array(TableArray)),
    "check": lambda: ferry.check(array(TableArray), finite=True),
    "stack": lambda: ferry.stack([array(TableArray), array(TableArray)], to="numpy"),
    "result": lambda: ferry.to_numpy_async(array(TableArray)).result(),
    "result with a timeout": lambda: ferry.to_numpy_async(array(TableArray)).result(60),
    "to_numpy_async of a foreign producer": lambda: ferry.to_numpy_async(array(DeviceArray)),
    "to_numpy_async through the ring": lambda: ferry.to_numpy_async(array(TableArray, LARGE), pinned=False),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_another_thread_goes_on_while_a_call_waits(fake: FakeCuda, call: Callable[[], Any]):
    call()  # what is made at first use is there
    errors: list[BaseException] = []
    returned = threading.Event()

    def work() -> None:
        try:
            fake.use_device(0)
            call()
        except BaseException as error:
            errors.append(error)
        returned.set()

    thread = threading.Thread(target=work)
    with fake.held():
        fake.clear_trace()
        thread.start()
        waits = ("cuEventSynchronize", "cuEventQuery")
        assert until(lambda: any(fake.call_counts()[name] for name in waits))  # this thread runs, and the other waits
        assert not returned.wait(0.02)
    thread.join(60)
    assert returned.is_set()
    assert errors == []


def test_asking_never_waits(fake: FakeCuda):
    x = array(TableArray)
    with fake.held():
        transfer = ferry.to_numpy_async(x)
        assert not transfer.done()
        assert transfer.running()
        assert "in flight" in repr(transfer)
        assert ferry.plan(x).copies == 1
        assert ferry.describe(x) is not None
        transfer.add_done_callback(lambda _: None)
    assert transfer.result().tolist() == [0] * 16


@pytest.mark.parametrize("schedule", ["lazy", "eager", "shuffled", "threaded"])
def test_eight_threads_of_mixed_use_get_their_own_values(fake: FakeCuda, schedule: str):
    fake.schedule(schedule, 11)
    driver = Driver()
    streams = [driver.stream() for _ in range(8)]
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            fake.use_device(0)
            rng, stream = random.Random(number), streams[number]
            for turn in range(40):
                values = np.full(rng.choice([3, 1000, 50_000]), 100 * number + turn, np.int32)
                x = TableArray(np.zeros_like(values), stream=stream)
                x.write_later(values)
                way = rng.randrange(5)
                if way == 0:
                    array = ferry.to_numpy(x, stream=stream)
                elif way == 1:
                    array = ferry.to_numpy_async(x, stream=stream).result()
                elif way == 2:
                    array = ferry.to_numpy([x, x.view((3,), (1,))], stream=stream, pinned=False)[0]
                elif way == 3:
                    array = ferry.to_numpy(x, stream=stream, out=np.empty(values.shape, np.float64))
                else:
                    ferry.to_numpy_async(x, stream=stream)  # dropped
                    array = ferry.to_numpy(x, stream=stream, copy=True)
                x.write_later(np.zeros_like(values))
                assert np.array_equal(array, values), (number, turn, way)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []
