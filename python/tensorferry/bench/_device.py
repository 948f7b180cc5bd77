"""Clocks and limits of a CUDA device. Their figures exist only where there is one.

A call may work on the host, on the current stream and on streams of its own, so candidates are timed between two waits
for the whole device. Raw copies stay on one stream: events around them leave the host out. Nothing runs on the legacy
stream, on which everything else would wait.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from tensorferry._errors import DeviceError
from tensorferry.bench._clock import Bound, Loop

__all__ = ["event_loop", "on_device", "origin_of", "raw_copy_call", "waiting"]


def origin_of(device: str) -> Literal["measured", "simulated"]:
    """Return what figures of this device are: simulated, where a double of the driver stands in for it."""
    named = os.environ.get("TENSORFERRY_LIBCUDA")
    if device == "cpu" or not named:
        return "measured"
    try:
        return "simulated" if hasattr(ctypes.CDLL(named), "fake_drain") else "measured"
    except OSError:
        return "measured"


@contextmanager
def on_device(device: str) -> Iterator[Callable[[Bound], Bound]]:
    """Make a stream of the device current, and give the clock for what runs there.

    Raises
    ------
    DeviceError
        When it is neither "cpu" nor a CUDA device that torch sees.
    """
    if device == "cpu":
        yield lambda bound: bound
        return
    cuda = _cuda(device)
    with cuda.stream(cuda.Stream()):
        yield lambda bound: Bound(bound.once, waiting(bound.loop, cuda.synchronize))
        cuda.synchronize()


def _cuda(device: str) -> Any:
    import torch

    if device.partition(":")[0] != "cuda" or not torch.cuda.is_available():
        raise DeviceError(
            f"device={device!r}", "torch sees no such device here", 'measure with device="cpu", or where there is a GPU'
        )
    return torch.cuda


def waiting(loop: Loop, wait: Callable[[], object]) -> Loop:
    """Return a loop whose time begins after a wait for the device and ends after another."""

    def waited(calls: int) -> float:
        wait()
        start = time.perf_counter()
        loop(calls)
        wait()
        return time.perf_counter() - start

    return waited


def event_loop(call: Callable[[], object], cuda: Any) -> Loop:
    """Return a loop over work on the current stream, timed by two events around it."""

    def loop(calls: int) -> float:
        start, stop = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        cuda.synchronize()
        start.record()
        for _ in range(calls):
            call()
        stop.record()
        stop.synchronize()
        return float(start.elapsed_time(stop)) / 1e3  # milliseconds

    return loop


def raw_copy_call(nbytes: int, to_host: bool) -> Callable[[], object]:
    """Return one driver copy of `nbytes` between pinned memory and the device, enqueued on the current stream."""
    import torch

    pinned = torch.randint(0, 256, (nbytes,), dtype=torch.uint8).pin_memory()
    there = pinned.to("cuda")
    target, source = (pinned, there) if to_host else (there, pinned)
    return lambda: target.copy_(source, non_blocking=True)
