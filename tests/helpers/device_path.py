"""The product on the fake driver, in one process for many tests: what they need besides the fake itself."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

import tensorferry as ferry
from helpers.fake_cuda import FakeCuda, as_test, fake_cuda
from helpers.fake_cuda_arrays import TableArray
from helpers.fake_cuda_driver import Driver
from tensorferry._native import core

__all__ = [
    "RING_NBYTES",
    "STAGING_NBYTES",
    "Seen",
    "allow_abandoned",
    "fresh",
    "is_pinned",
    "kernels",
    "leases_in_use",
    "left_behind",
    "no_internal_thread",
    "prepared",
    "seen",
    "settle",
    "until",
    "warm",
]

RING_NBYTES = 8 << 20  # four slots of 2 MiB, so that tests fill it
STAGING_NBYTES = 1 << 20
_MOST_REGISTRATIONS, _MOST_EVENTS, _MOST_STREAMS = 40, 600, 40


@cache
def prepared() -> FakeCuda:
    """Let the product use the fake, with limits that small tests can reach; once, before it uses a device."""
    fake = fake_cuda()
    os.environ["TENSORFERRY_LIBCUDA"] = fake.path
    core.set_transfer_limits(ring_nbytes=RING_NBYTES, staging_nbytes=STAGING_NBYTES, kernels=False)
    return fake


def fresh() -> FakeCuda:
    """The fake as in a new process, two devices, the first in use. To the product that was a reset of the device."""
    fake = prepared()
    gc.freeze()  # else each collection looks through all that was imported, and through the capsules of earlier tests
    with no_internal_thread():  # it may be about to ask for an event that the reset ends
        fake.reset()
    fake.preset("two_devices")
    fake.use_device(0)
    core.set_transfer_limits(kernels=False)  # tests of kernels switch them on
    TableArray.current_stream = None
    return fake


def warm(fake: FakeCuda, call: Callable[[], Any]) -> None:
    """Call until pinned memory for it is idle, so that the next call finds some."""
    kept = [call() for _ in range(4)]
    settle(fake)
    del kept
    call()  # finds none yet, and so looks when what came back may be used again
    settle(fake)
    call()
    settle(fake)


def is_pinned(array: np.ndarray[Any, Any]) -> bool:
    """Does the driver know the memory, at both ends?"""
    ends = array.ctypes.data, array.ctypes.data + array.nbytes - 1
    attribute, answer = ctypes.c_int(2), ctypes.c_uint(0)  # CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    pointer = ctypes.c_void_p(ctypes.addressof(answer))
    found = []
    with as_test():
        for end in ends:
            answer.value = 0
            Driver()("cuPointerGetAttributes", 1, ctypes.addressof(attribute), ctypes.addressof(pointer), end)
            found.append(answer.value)
    return found == [1, 1]  # host memory


def until(condition: Callable[[], bool], *, timeout_s: float = 30) -> bool:
    """Ask again and again; false when it never came true."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.0005)
    return True


@contextmanager
def kernels() -> Iterator[None]:
    """Let the product use its kernels inside the block."""
    core.set_transfer_limits(kernels=True)
    try:
        assert core.kernels_there(0, load=True)
        yield
    finally:
        core.set_transfer_limits(kernels=False)


@contextmanager
def no_internal_thread() -> Iterator[None]:
    """Inside the block every call of the driver is made by the threads of the test."""
    with ferry.options(background=False):
        yield


def settle(fake: FakeCuda) -> None:
    """Let the device finish, and the product let go of what was finished."""
    fake.drain()
    core.reap()


def leases_in_use() -> int:
    """How many pieces of pinned memory somebody holds."""
    return int((core.pinned_stats() or {"in_use_leases": 0})["in_use_leases"])


_allowed_leases = 0


def allow_abandoned(leases: int) -> None:
    """The present test loses a device: so much pinned memory, which it may touch for ever, may be kept for good."""
    global _allowed_leases
    _allowed_leases = leases


def left_behind(fake: FakeCuda, leases_before: int) -> list[str]:
    """What should not be there when a test is over: a line each. Waits a little for other threads to let go."""

    def found() -> list[str]:
        settle(fake)
        held, _ = core.retired_work()
        return [
            *([f"{held} pieces of work are held"] if held else []),
            *fake.violations(),
            *(f"{fake.live(what)} {what}" for what in ("pushed_contexts", "pending", "captures") if fake.live(what)),
            *(
                f"{fake.live(what)} {what}, more than {most}"
                for what, most in (
                    ("host_registrations", _MOST_REGISTRATIONS),
                    ("events", _MOST_EVENTS),
                    ("streams", _MOST_STREAMS),
                )
                if fake.live(what) > most
            ),
            *_unexpected_memory(fake, leases_before),
        ]

    with no_internal_thread():
        if found():
            gc.collect()
            ferry.trim()  # what the pool keeps for later, which after thousands of orders is much
        until(lambda: not found(), timeout_s=20)
        return found()


def _unexpected_memory(fake: FakeCuda, leases_before: int) -> list[str]:
    held, leases = fake.live("device_bytes"), leases_in_use()
    too_many = leases > leases_before + _allowed_leases
    lines = [] if held in (0, STAGING_NBYTES, 2 * STAGING_NBYTES) else [f"{held} device_bytes"]
    return lines + ([f"{leases} leases of pinned memory, {leases_before} before"] if too_many else [])


_COPY = re.compile(r"cuMemcpy(DtoH|HtoD|DtoD)Async bytes=(\d+) ")
_COPY_2D = re.compile(r"cuMemcpy2DAsync ")
_RECORD = re.compile(r"cuEventRecord event=(event#\d+)")
_ASKED = re.compile(r"cuEvent(?:Query|Synchronize) (event#\d+)")


@dataclass
class Seen:
    """What the product asked of the driver inside a :func:`seen` block.

    Attributes
    ----------
    lines : list of str
        The trace.
    """

    lines: list[str] = field(default_factory=list)

    def count(self, name: str) -> int:
        """How often a function was called."""
        return sum(line.split()[0] == name for line in self.lines)

    def copies(self, kind: str) -> list[int]:
        """The sizes of the plain copies of a kind: "DtoH", "HtoD" or "DtoD"."""
        return [int(found[2]) for line in self.lines if (found := _COPY.match(line)) and found[1] == kind]

    @property
    def copies_of_rows(self) -> int:
        """How many copies took rows at a step."""
        return sum(bool(_COPY_2D.match(line)) for line in self.lines)

    @property
    def waits(self) -> int:
        """How many records of events were asked for or waited for: an event that is recorded again is another."""
        records: Counter[str] = Counter()
        asked = set()
        for line in self.lines:
            if found := _RECORD.match(line):
                records[found[1]] += 1
            elif found := _ASKED.match(line):
                asked.add((found[1], records[found[1]]))
        return len(asked)

    @property
    def streams(self) -> set[str]:
        """The streams that work was enqueued in."""
        return {
            found[1]
            for line in self.lines
            if line.startswith("cuMemcpy") and (found := re.search(r"stream=(\S+)", line))
        }


@contextmanager
def seen(fake: FakeCuda) -> Iterator[Seen]:
    """Record the product's calls inside the block."""
    fake.clear_trace()
    record = Seen()
    try:
        yield record
    finally:
        record.lines = fake.trace()
