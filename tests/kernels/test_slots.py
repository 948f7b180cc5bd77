"""Gathers into a ring of slots, as captured launches repeat them: numbers before and after each payload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers.fake_cuda import FakeCuda
from helpers.fake_kernels import DeviceBytes, Kernels
from helpers.kernel_launches import Piece, Slots, gather

Pin = Callable[[int], NDArray[Any]]
SLOTS, PITCH, HEADERS = 3, 4096, 4 * 4096
REPLAYS = 40


class Ring:
    """A captured gather of pieces into the slots of a ring in mapped memory."""

    def __init__(self, kernels: Kernels, host: NDArray[Any], count: int) -> None:
        self.driver, self.host, self.count = kernels.driver, host, count
        self.headers = host[HEADERS : HEADERS + 16 * SLOTS].view(np.uint64).reshape(SLOTS, 2)
        self.counter = DeviceBytes.of(self.driver, np.zeros(2, np.uint64))
        self.source = DeviceBytes(self.driver, 16 * count)
        slots = Slots(self.counter.pointer, host.ctypes.data + HEADERS, host.ctypes.data, PITCH, SLOTS)
        pieces = [Piece(self.source.pointer + 16 * (count - 1 - i), 16 * i, 16) for i in range(count)]
        launch, self.table = gather(kernels, pieces, slots=slots, limit=(3, 64))
        assert launch.name == ("ferry_gather_slot_inline" if self.table is None else "ferry_gather_slot_table")
        self.stream, self.event = self.driver.stream(), self.driver.event()
        kernels.function(launch.name)
        self.driver("cuStreamBeginCapture", self.stream, 0)
        launch.run(kernels, self.stream)
        graph = self.driver.get_handle("cuStreamEndCapture", self.stream)
        self.executable = self.driver.get_handle_after("cuGraphInstantiate", graph, 0)

    def replay(self, number: int) -> None:
        """Launch the graph on values that tell of the number."""
        self.source.poke(self.values(number)[::-1].copy())
        self.driver("cuGraphLaunch", self.executable, self.stream)
        self.driver("cuEventRecord", self.event, self.stream)

    def values(self, number: int) -> NDArray[np.uint64]:
        """What the payload of a launch holds."""
        return np.full((self.count, 2), number, np.uint64) + np.arange(self.count, dtype=np.uint64)[:, None] * 1000

    def read(self, slot: int) -> tuple[int, NDArray[np.uint64], int]:
        """The numbers behind and before the payload, in the order in which a reader must look."""
        end = int(self.headers[slot, 1])
        payload = self.host[PITCH * slot :][: 16 * self.count].view(np.uint64).reshape(-1, 2).copy()
        return end, payload, int(self.headers[slot, 0])


def torn(ring: Ring, number: int) -> int:
    """Replay, and look at every slot while the stores land: how often was a payload taken for another launch's?"""
    ring.replay(number)
    bad = 0
    for _ in range(8):
        for slot in range(SLOTS):
            end, payload, begin = ring.read(slot)
            if begin == end and end != 0:
                bad += not np.array_equal(payload, ring.values(end))
        ring.driver.is_done(ring.event)
    return bad


@pytest.mark.parametrize("count", [170, 200], ids=["pieces in the arguments", "pieces in a table"])
@pytest.mark.parametrize("schedule", ["lazy", "shuffled"])
def test_equal_numbers_mean_a_whole_payload(fake: FakeCuda, kernels: Kernels, pinned: Pin, schedule: str, count: int):
    ring = Ring(kernels, pinned(5 * 4096), count)
    for number in range(1, REPLAYS + 1):
        fake.schedule(schedule, number)
        assert torn(ring, number) == 0, f"replay {number}"
        fake.drain()
        end, payload, begin = ring.read((number - 1) % SLOTS)
        assert begin == end == number
        assert np.array_equal(payload, ring.values(number))
    assert ring.counter.peek(np.uint32).tolist() == [REPLAYS, 0, 0, 0]


@pytest.mark.parametrize("nth", [1, 2, 3], ids=["after the first number", "before the ticket", "before the flag"])
def test_each_fence_is_needed(fake: FakeCuda, kernels: Kernels, pinned: Pin, nth: int):
    ring, bad = Ring(kernels, pinned(5 * 4096), 170), 0
    with fake.kernel_mistake("fence", nth):
        for number in range(1, REPLAYS + 1):
            fake.schedule("lazy", number)
            bad += torn(ring, number)
            fake.drain()
    print(f"{bad} torn payloads were taken for whole ones")
    assert bad > 0


def test_the_barrier_behind_the_first_number_is_needed(fake: FakeCuda, kernels: Kernels, pinned: Pin):
    ring, bad = Ring(kernels, pinned(5 * 4096), 170), 0
    with fake.kernel_mistake("barrier", 1):
        for number in range(1, REPLAYS + 1):
            fake.schedule("lazy", number)
            bad += torn(ring, number)
            fake.drain()
    assert bad > 0
