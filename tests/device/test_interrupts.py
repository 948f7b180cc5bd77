"""Ctrl-C while a call waits for a device: it ends the wait, nothing leaks, and the next call works."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import no_internal_thread, until
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import DeviceArray, InterfaceArray, TableArray

LARGE = 3 << 20  # more than a slot of the ring
WAITS = ("cuEventSynchronize", "cuEventQuery")
VALUES = np.arange(16, dtype=np.float32)


def array(kind: Any = TableArray, nbytes: int = 64) -> Any:
    return kind(np.resize(VALUES, nbytes // 4))


@dataclass
class Case:
    """A call that waits, and what it is given."""

    call: Callable[[Any], Any]
    given: Callable[[], Any] = array


CALLS = {
    "to_numpy": Case(ferry.to_numpy),
    "to_numpy through capsules": Case(ferry.to_numpy, lambda: array(DeviceArray)),
    "to_numpy through the array interface": Case(ferry.to_numpy, lambda: array(InterfaceArray)),
    "to_numpy of a nest": Case(lambda nest: ferry.to_numpy(nest)[-1], lambda: [array() for _ in range(8)]),
    "to_numpy with a cast": Case(lambda x: ferry.to_numpy(x, dtype="float64", copy=True)),
    "to_numpy through the ring": Case(lambda x: ferry.to_numpy(x, pinned=False)[:16], lambda: array(nbytes=LARGE)),
    "to_numpy into a destination": Case(lambda x: ferry.to_numpy(x, out=np.zeros(16, np.float32))),
    "to_numpy into a pinned destination": Case(lambda x: ferry.to_numpy(x, out=ferry.empty_pinned(16))),
    "to_numpy into a large destination": Case(
        lambda x: ferry.to_numpy(x, out=np.zeros(LARGE, np.float32))[:16], lambda: array(nbytes=4 * LARGE)
    ),
    "to_python": Case(lambda nest: ferry.to_python(nest)[1], lambda: [array(), array()]),
    "stack": Case(lambda items: ferry.stack(items, to="numpy")[1], lambda: [array(), array()]),
    "check": Case(lambda x: VALUES if ferry.check(x, finite=True) is x else None),
    "result": Case(lambda x: ferry.to_numpy_async(x).result()),
    "to_numpy_async of a foreign producer": Case(
        lambda x: ferry.to_numpy_async(x).result(), lambda: array(DeviceArray)
    ),
}


@pytest.fixture
def sigint() -> Iterator[None]:
    """Python's own handler, whatever the runner has installed."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def with_signal(fake: FakeCuda, call: Callable[[], Any], number: int = signal.SIGINT) -> Any:
    """Call while the device is stuck; a signal comes once the driver was asked. Unless it ends it, the call goes on."""
    over = threading.Event()

    def interrupt() -> None:
        if until(lambda: any(fake.call_counts()[name] for name in WAITS)):
            os.kill(os.getpid(), number)
        if not over.wait(20):
            fake.library.fake_hold(0)

    thread = threading.Thread(target=interrupt)
    with no_internal_thread(), fake.held():  # it asks the driver, too, and the signal would come before the call
        fake.clear_trace()
        thread.start()
        try:
            return call()
        finally:
            over.set()
            thread.join()


@pytest.mark.usefixtures("sigint")
@pytest.mark.parametrize("case", CALLS.values(), ids=CALLS)
def test_the_wait_ends_and_the_next_call_works(fake: FakeCuda, case: Case):
    given = case.given()
    assert np.array_equal(case.call(given), VALUES)  # what is made at first use is there
    for _ in range(5):  # more often than the ring has slots
        with pytest.raises(KeyboardInterrupt):
            with_signal(fake, lambda: case.call(given))
    assert np.array_equal(case.call(given), VALUES)
    assert fake.live("pushed_contexts") == 0


@pytest.mark.usefixtures("sigint")
def test_memory_of_an_interrupted_call_is_not_lent_before_the_copy_is_done(fake: FakeCuda):
    x, other = array(nbytes=1 << 16), TableArray(np.full(1 << 14, 7, np.float32))
    x.write_later(np.full(1 << 14, 9, np.float32))
    with pytest.raises(KeyboardInterrupt):
        with_signal(fake, lambda: ferry.to_numpy(x))
    results = [ferry.to_numpy(other) for _ in range(8)]
    fake.drain()
    assert all((result == 7).all() for result in results)


@pytest.mark.usefixtures("sigint")
def test_a_transfer_is_as_valid_after_an_interrupted_wait_as_before(fake: FakeCuda):
    transfer = ferry.to_numpy_async(array())
    with pytest.raises(KeyboardInterrupt):
        with_signal(fake, transfer.result)
    assert not transfer.cancelled()
    assert transfer.exception() is None
    assert transfer.result().tolist() == VALUES.tolist()


def test_a_handler_that_raises_nothing_leaves_the_wait_alone(fake: FakeCuda):
    x, seen = array(), []

    def handler(number: int, frame: object) -> None:
        seen.append(threading.get_ident())
        fake.use_device(1)  # as a library would that switches devices
        fake.library.fake_hold(0)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        assert np.array_equal(with_signal(fake, lambda: ferry.to_numpy(x), signal.SIGUSR1), VALUES)
        large = array(nbytes=LARGE)
        there = with_signal(fake, lambda: ferry.to_numpy(large, pinned=False), signal.SIGUSR1)
        assert np.array_equal(there[:16], VALUES)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [threading.get_ident()] * 2
    assert fake.live("pushed_contexts") == 0


def test_in_other_threads_the_driver_waits(fake: FakeCuda):
    x, results = array(), []
    thread = threading.Thread(target=lambda: results.append(ferry.to_numpy(x)))
    with fake.held():
        fake.clear_trace()
        thread.start()
        assert until(lambda: fake.call_counts()["cuEventSynchronize"] == 1)
    thread.join(60)
    assert np.array_equal(results[0], VALUES)
