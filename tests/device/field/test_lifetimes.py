"""Field cases: memory that went while a copy still used it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import TableArray
from helpers.orders import orders

NBYTES = 10_000
DESTINATIONS: dict[str, Callable[[], Any]] = {
    "pageable": lambda: np.zeros(NBYTES, np.uint8),
    "pinned": lambda: ferry.zeros_pinned(NBYTES, "uint8"),
}
every_destination = pytest.mark.parametrize("destination", DESTINATIONS.values(), ids=DESTINATIONS)


def source(value: int) -> TableArray:
    """An array whose values the device has still to write."""
    x = TableArray(np.zeros(NBYTES, np.uint8))
    x.write_later(np.full(NBYTES, value, np.uint8))
    return x


def test_f006_source_and_destination_live_until_the_copy_is_done(fake: FakeCuda):
    """Seen: memory freed while an asynchronous copy was reading it, in at least 94 public places."""
    for round_, order in enumerate(orders(fake)):
        value = round_ % 100 + 1
        out = ferry.empty_pinned(NBYTES, "uint8")
        transfer = ferry.to_numpy_async(source(value), out=out)  # nothing else holds the source
        del out
        taken = [ferry.empty_pinned(NBYTES, "uint8") for _ in range(2)]
        for array in taken:
            array[:] = 255
        overwritten = source(0)
        assert (transfer.result() == value).all(), order
        assert all((array == 255).all() for array in taken), order
        del overwritten
        assert fake.violations() == [], order


def test_f007_a_pinned_result_that_was_dropped_is_not_used_again_under_the_copy(fake: FakeCuda):
    """Seen: copies through raw pointers, whose pinned memory was lent again meanwhile: a score fell from 0.80 to 0."""
    for order in orders(fake):
        ferry.to_numpy_async(source(7))  # dropped at once, with its result
        taken = [ferry.empty_pinned(NBYTES, "uint8") for _ in range(3)]
        for array in taken:
            array[:] = 255
        fake.drain()
        assert all((array == 255).all() for array in taken), order


@every_destination
def test_f008_ordinary_and_pinned_destinations_differ_in_nothing_but_speed(
    fake: FakeCuda, destination: Callable[[], Any]
):
    """Seen: a staging buffer that became pinned, and so a safe local buffer became one used after its scope."""

    def helper(value: int) -> Any:
        out = destination()
        return ferry.to_numpy_async(source(value), out=out)

    for round_, order in enumerate(orders(fake, 300)):
        transfers = [helper(round_ % 50 + i) for i in range(3)]
        for i, transfer in enumerate(transfers):
            assert (transfer.result() == round_ % 50 + i).all(), order


@every_destination
def test_f008_two_threads_with_buffers_of_their_own(any_schedule: FakeCuda, destination: Callable[[], Any]):
    errors: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            any_schedule.use_device(0)
            for i in range(20):
                value = thread * 100 + i
                result = ferry.to_numpy_async(source(value), out=destination()).result()
                assert (result == value).all()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
