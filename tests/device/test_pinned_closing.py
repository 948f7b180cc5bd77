"""The end of pinned(): it waits for our transfers, and threads that pin the same pages do not collide."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import allow_abandoned
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import TableArray
from helpers.pinned_pages import is_pinned, pages, registrations


@pytest.fixture
def registered(fake: FakeCuda) -> Any:
    """How many more registrations there are than at the beginning."""
    with registrations(fake) as count:
        yield count


def test_closing_waits_for_transfers_into_the_memory(any_schedule: FakeCuda, registered: Any):
    memory = pages(2, np.int32)
    x = TableArray(np.zeros(memory.size, np.int32))
    x.write_later(np.arange(memory.size))
    with ferry.pinned(memory):
        transfer = ferry.to_numpy_async(x, out=memory, snapshot=False)
    assert registered() == 0
    assert memory.tolist() == list(range(memory.size))
    assert transfer.result() is memory
    assert any_schedule.violations() == []


def test_closing_waits_as_long_as_the_device_needs(fake: FakeCuda, registered: Any):
    memory = pages(1, np.int32)
    fake.schedule("threaded")
    x = TableArray(np.arange(memory.size, dtype=np.int32))
    held = ferry.pinned(memory)
    with fake.held():
        ferry.to_numpy_async(x, out=memory, snapshot=False)
        closing = threading.Thread(target=held.close)
        closing.start()
        time.sleep(0.05)
        assert closing.is_alive()
        assert registered() == 1
    closing.join()
    assert registered() == 0
    assert memory.tolist() == list(range(memory.size))


def test_dropping_it_unregisters_after_transfers_into_the_memory(any_schedule: FakeCuda, registered: Any):
    memory = pages(2, np.int32)
    x = TableArray(np.arange(memory.size, dtype=np.int32))
    held = ferry.pinned(memory)
    transfer = ferry.to_numpy_async(x, out=memory, snapshot=False)
    del held
    gc.collect()
    assert transfer.result()[5] == 5


def test_threads_that_pin_the_same_pages_do_not_collide(fake: FakeCuda, registered: Any):
    memory = pages(16)
    rng = np.random.default_rng(11)
    bounds = np.sort(rng.integers(0, memory.size, (8, 60, 2)), -1)
    failures: list[str] = []

    def work(number: int) -> None:
        fake.use_device(0)
        for low, high in bounds[number]:
            try:
                with ferry.pinned(memory[low:high]):
                    if high > low and not is_pinned(memory[low:high]):
                        failures.append(f"{low}:{high} is not pinned")
            except ferry.DeviceError as error:
                failures.append(str(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert registered() == 0


def test_closing_does_not_wait_for_a_device_that_is_lost(fake: FakeCuda):
    memory = pages(1, np.int32)
    x = TableArray(np.arange(memory.size, dtype=np.int32))
    held = ferry.pinned(memory)
    fake.fault("execution", 700)
    transfer = ferry.to_numpy_async(x, out=memory, snapshot=False)
    fake.drain()
    before = time.monotonic()
    held.close()
    assert time.monotonic() - before < 30
    with pytest.raises(ferry.DeviceError):
        transfer.result()
    allow_abandoned(10)
