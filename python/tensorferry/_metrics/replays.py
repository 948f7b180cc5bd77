"""What is logged inside the capture of a CUDA graph: each replay leaves its values in pinned memory."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from tensorferry._device.capturing import refuse_in_capture
from tensorferry._device.driven import drives_torch
from tensorferry._device.streams import torch_stream
from tensorferry._device.torch_memory import introduce_torch, note_torch
from tensorferry._errors import ArgumentError, DeviceError
from tensorferry._metrics.combining import Aggregations
from tensorferry._metrics.delivery import Delivery
from tensorferry._metrics.device_values import all_names
from tensorferry._metrics.series import Series
from tensorferry._metrics.window import Window
from tensorferry._native import core
from tensorferry._transfer.background import background

if TYPE_CHECKING:
    import torch

__all__ = ["Replays"]

_LOOK_S = 0.1
_LEAVE_S = 1.0
_COUNTER = 16  # bytes


class Replays:
    """The captured calls of one log, and the thread that looks for what their graphs' replays leave.

    Any thread may call.

    Parameters
    ----------
    delivery : Delivery
        Where steps go.
    aggregations : Aggregations
        What becomes of the values of `every` replays.
    every : int
        How many replays are one step.
    """

    def __init__(self, delivery: Delivery, aggregations: Aggregations, every: int) -> None:
        self._delivery, self._aggregations, self._every = delivery, aggregations, every
        self._lock = threading.Lock()  # who holds it takes and delivers
        self._known = threading.Lock()
        self._free: list[core.MetricReplays] = []
        self._series: list[Series] = []
        self._thread: threading.Thread | None = None
        self._closed = False
        self._gone_gaps = 0

    @property
    def gaps(self) -> int:
        """How many replays were overwritten before they were read."""
        with self._known:
            return self._gone_gaps + sum(series.gaps for series in self._series)

    def prepare(self, tensors: dict[str, torch.Tensor], slots: int, captures: int) -> None:
        """Take the memory that `captures` calls with tensors like these need. Waits for the device's stream once."""
        device = _device_of(tensors, "prepare_capture()")
        refuse_in_capture("prepare_capture()", device, None)
        torch = sys.modules["torch"]
        introduce_torch(device)
        note_torch()
        stream = torch_stream(device)
        counters = torch.zeros((captures, _COUNTER), dtype=torch.uint8, device=f"cuda:{device}")
        core.end_of_work(device, stream).wait(None)
        for counter in counters:
            made = core.MetricReplays.make(list(tensors.values()), _source(counter, stream), slots)
            if made is None:
                raise _not_made(device)
            with self._known:
                self._free.append(made)

    def captures(self, tensors: dict[str, torch.Tensor]) -> bool:
        """Is one of their streams being captured?"""
        devices = {x.device for x in tensors.values()}
        return any(
            core.capture_state(device.index, torch_stream(device.index)) == "active"
            for device in devices
            if drives_torch(device.type)
        )

    def capture(self, tensors: dict[str, torch.Tensor], values: dict[str, Any], step: int) -> None:
        """Make a call part of the graph that is being captured.

        Parameters
        ----------
        tensors : dict of str to torch.Tensor
            On one device.
        values : dict of str to number
            All names in their order; those of `tensors` without a number.
        step : int
            Of the first replay; later ones count up.
        """
        device = _device_of(tensors, "MetricLog.log()")
        given = list(tensors.values())
        with self._known:
            fitting = next((one for one in self._free if one.device == device and one.fits(given)), None)
            if fitting is None:
                raise _not_prepared(device)
            self._free.remove(fitting)
        if not fitting.capture(given, torch_stream(device)):  # another thread has changed the tensors
            raise _not_prepared(device)
        with self._known:
            self._series.append(Series(fitting, all_names(tensors), values, step, self._aggregations, self._every))
        background.begin_transfer()
        self._start()

    def look(self) -> None:
        """Deliver what has come, unless another thread is at it."""
        if self._lock.acquire(blocking=False):
            try:
                self._deliver(end=False)
            finally:
                self._lock.release()

    def look_without_thread(self) -> None:
        """Do what the thread would, where there is none."""
        if self._series and self._thread is None:
            self.look()

    def flush(self, deadline: float | None) -> bool:
        """Hand everything that has come to the delivery; False when the time is up."""
        if self._delivery.sends_here():
            return True  # a sink that flushes: the step that it is at is not to be waited for
        left = -1 if deadline is None else max(0.0, deadline - time.monotonic())
        if not self._lock.acquire(timeout=left):
            return False
        try:
            self._deliver(end=True)
        finally:
            self._lock.release()
        return True

    def close(self) -> list[str]:
        """End the thread; returns what there is to tell. The graphs may still be replayed, and nobody reads it."""
        self._closed = True
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_LEAVE_S)
        with self._known:
            lost = self._gone_gaps = self._gone_gaps + sum(series.gaps for series in self._series)
            self._series, self._free = [], []
        return [f"MetricLog missed {lost:,} replays of a CUDA graph, which others overwrote first"] if lost else []

    def _deliver(self, end: bool) -> None:
        with self._known:
            series = list(self._series)
        for one in series:
            is_gone = one.is_graph_gone()  # asked first: all that it left is there then
            for window in one.take():
                self._put(window)
            rest = one.end() if end or is_gone else None
            if rest is not None:
                self._put(rest)
            if is_gone:
                with self._known:
                    if one in self._series:  # close() may have let go of it
                        self._series.remove(one)
                        self._gone_gaps += one.gaps

    def _put(self, window: Window) -> None:
        self._delivery.wait_for_room()
        self._delivery.put(window)

    def _start(self) -> None:
        with self._known:
            if self._thread is None and background.on and not self._closed:
                self._thread = threading.Thread(target=self._run, name="tensorferry graph metrics", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            with self._known:
                series = [one.replays for one in self._series]
                if not series or self._closed or not background.on:
                    self._thread = None
                    return
            core.wait_for_replays(series, _LOOK_S)
            if not self._closed:
                try:
                    self.look()
                except BaseException:  # such as a sink's sys.exit(): later calls look
                    with self._known:
                        self._thread = None
                    raise


def _device_of(tensors: dict[str, torch.Tensor], what: str) -> int:
    devices = {x.device for x in tensors.values()}
    if not devices:
        raise ArgumentError(f"{what} without a tensor on a device", "a graph has nothing to send then", "leave it out")
    if len(devices) > 1 or not all(drives_torch(device.type) for device in devices):
        raise DeviceError(
            f"{what} of tensors on {', '.join(sorted(map(str, devices)))}",
            "one call of a graph sends from one CUDA device",
            "call it for each of them",
        )
    return int(next(iter(devices)).index)


def _source(counter: torch.Tensor, stream: int) -> core.DeviceSource:
    from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

    return core.DeviceSource.from_capsule(to_dlpack(counter), stream)


def _not_made(device: int) -> DeviceError:
    return DeviceError(
        f"prepare_capture() on cuda:{device}",
        "replays send by kernels of tensorferry into pinned memory, and one of the two is not there, or torch is older "
        "than 2.10, or a tensor is no contiguous block of numbers",
        "see `tensorferry doctor`, and call .contiguous() on the tensors; else capture to_numpy_async(x, out=...)",
    )


def _not_prepared(device: int) -> DeviceError:
    return DeviceError(
        f"MetricLog.log() of tensors on cuda:{device}, captured into a graph",
        "each captured call needs memory that was taken before the capture, and none that is left is large enough for "
        "these, or one of them is no contiguous block of numbers",
        "call log.prepare_capture(metrics) before the capture, with metrics like these, once for each such call",
    )
