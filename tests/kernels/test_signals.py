"""Stores into mapped memory, and the flag behind them: whoever sees the flag sees all data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers.fake_cuda import FakeCuda
from helpers.fake_kernels import DeviceBytes, Kernels
from helpers.kernel_launches import Launch, Piece, Signal, gather, launch_copy

Pin = Callable[[int], NDArray[Any]]
SHOWING_SCHEDULES = ["lazy", "shuffled", "threaded"]
SEEDS = 30
COUNT = 900


class Storing:
    """Launches that store into mapped memory and raise a flag there."""

    def __init__(self, kernels: Kernels, host: NDArray[Any]) -> None:
        self.kernels, self.driver, self.host = kernels, kernels.driver, host
        self.flag = host[8192:8200].view(np.uint64)
        self.ticket = DeviceBytes.of(self.driver, np.zeros(1, np.uint32))
        rng = np.random.default_rng(3)
        self.source = DeviceBytes.of(self.driver, rng.integers(0, 256, 8000, np.uint8))
        self.values = self.source.peek()
        self.event = self.driver.event()

    def signal(self, sequence: int) -> Signal:
        return Signal(self.host.ctypes.data + 8192, self.ticket.pointer, sequence)

    def prepared(self, kind: str, sequence: int) -> tuple[Launch, NDArray[np.uint8]]:
        """A launch, and what is to be found behind its flag."""
        to, source = self.host.ctypes.data, self.source.pointer
        signal, limit = self.signal(sequence), (3, 64)
        if kind == "strided_store":
            launch = launch_copy(to, source, ("uint32", "uint32"), [(COUNT, 4, 8)], limit=limit, signal=signal)
            expected = self.values.view(np.uint32)[: 2 * COUNT : 2].copy()
        elif kind == "strided_cast_store":
            launch = launch_copy(to, source, ("float32", "uint8"), [(COUNT, 4, 3)], limit=limit, signal=signal)
            expected = self.values[: 3 * COUNT : 3].astype(np.float32)
        else:
            count = 200 if kind == "gather_store_table" else 170  # for more than one block
            pieces = [Piece(source + 37 * i, 18 * i, 18) for i in range(count)]
            launch, _ = gather(self.kernels, pieces, to, limit=limit, signal=signal)
            expected = np.concatenate([self.values[37 * i : 37 * i + 18] for i in range(count)])
        assert launch is not None
        assert launch.name == f"ferry_{kind}"
        return launch, expected.view(np.uint8)

    def found_behind_the_flag(self, launch: Launch, nbytes: int, sequence: int) -> NDArray[np.uint8]:
        """Launch, and read as soon as the flag shows."""
        self.host[:8192] = 0xEE
        launch.run(self.kernels)
        self.driver("cuEventRecord", self.event, 1)
        for _ in range(100_000):
            if self.flag[0] == sequence:
                break
            self.driver.is_done(self.event)
        assert self.flag[0] == sequence
        return self.host[:nbytes].copy()


KINDS = ["strided_store", "strided_cast_store", "gather_store_inline", "gather_store_table"]


def how_often_wrong(fake: FakeCuda, storing: Storing, kind: str, schedule: str) -> int:
    wrong = 0
    for seed in range(SEEDS):
        fake.schedule(schedule, seed)
        fake.kernel_seed(seed)
        launch, expected = storing.prepared(kind, seed + 1)
        wrong += not np.array_equal(storing.found_behind_the_flag(launch, len(expected), seed + 1), expected)
        fake.drain()
        assert np.array_equal(storing.host[: len(expected)], expected)
        assert np.all(storing.host[len(expected) : 8192] == 0xEE)
        assert storing.ticket.peek(np.uint32).tolist() == [0], "the ticket counter is ready for the next launch"
    print(f"{kind}, {schedule}: {wrong} of seeds 0 to {SEEDS - 1} showed wrong values behind the flag")
    return wrong


@pytest.mark.parametrize("schedule", SHOWING_SCHEDULES)
@pytest.mark.parametrize("kind", KINDS)
def test_all_data_is_there_when_the_flag_is(fake: FakeCuda, kernels: Kernels, pinned: Pin, kind: str, schedule: str):
    assert how_often_wrong(fake, Storing(kernels, pinned(12288)), kind, schedule) == 0


@pytest.mark.parametrize(
    ("what", "nth"),
    [("barrier", 1), ("fence", 1)],
    ids=["the barrier before the ticket", "the fence before the ticket"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_each_rule_is_needed(fake: FakeCuda, kernels: Kernels, pinned: Pin, kind: str, what: str, nth: int):
    storing = Storing(kernels, pinned(12288))
    with fake.kernel_mistake(what, nth):
        assert how_often_wrong(fake, storing, kind, "lazy") > 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_fence_before_the_flag_is_needed(fake: FakeCuda, kernels: Kernels, pinned: Pin, kind: str):
    storing = Storing(kernels, pinned(12288))
    with fake.kernel_mistake("fence", 2):
        assert how_often_wrong(fake, storing, kind, "lazy") > 0
