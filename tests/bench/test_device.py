"""The clocks of a device, on a stand-in that keeps a log."""

from __future__ import annotations

import time

import pytest
import torch

import tensorferry as ferry
from tensorferry.bench import compare
from tensorferry.bench._device import event_loop, on_device, origin_of, waiting


class StandIn:
    """What the clocks use of ``torch.cuda``; it writes down every call."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def synchronize(self) -> None:
        self.log.append("wait")

    def is_available(self) -> bool:
        return True

    def Stream(self) -> str:  # noqa: N802
        return "a stream of its own"

    def stream(self, stream):
        return Entered(self.log, stream)

    def Event(self, *, enable_timing):  # noqa: N802
        assert enable_timing
        return Event(self.log)


class Entered:
    """A stream that is current inside."""

    def __init__(self, log, stream) -> None:
        self.log, self.stream = log, stream

    def __enter__(self) -> None:
        self.log.append(f"on {self.stream}")

    def __exit__(self, *_: object) -> None:
        self.log.append("back")


class Event:
    """An event whose time is its place in the log."""

    def __init__(self, log) -> None:
        self.log, self.at = log, -1

    def record(self) -> None:
        self.at = len(self.log)
        self.log.append("record")

    def synchronize(self) -> None:
        self.log.append("wait for event")

    def elapsed_time(self, other) -> float:
        return float(other.at - self.at)


def test_events_stand_around_the_calls_and_never_between_them():
    cuda = StandIn()
    seconds = event_loop(lambda: cuda.log.append("copy"), cuda)(3)
    assert cuda.log == ["wait", "record", "copy", "copy", "copy", "record", "wait for event"]
    assert seconds == pytest.approx(4e-3)  # torch counts milliseconds


def test_the_clock_of_candidates_begins_and_ends_with_a_wait():
    cuda = StandIn()

    def loop(calls):
        cuda.log.append(f"{calls} calls")
        time.sleep(0.002)
        return 0.0  # what the host saw does not count

    assert waiting(loop, cuda.synchronize)(5) >= 0.002
    assert cuda.log == ["wait", "5 calls", "wait"]


def test_the_time_until_the_device_is_idle_counts():
    assert waiting(lambda calls: 0.0, lambda: time.sleep(0.002))(1) >= 0.002


def test_candidates_run_on_a_stream_of_their_own(monkeypatch):
    cuda = StandIn()
    monkeypatch.setattr(torch, "cuda", cuda)
    result = compare(
        {"a": lambda inputs: cuda.log.append("call")}, setup=lambda rng: {"x": rng.random(9)}, rounds=2, device="cuda"
    )
    assert cuda.log[0] == "on a stream of its own"
    assert cuda.log[-2:] == ["wait", "back"]
    assert cuda.log.count("wait") > 2 * 2
    assert len(result.ours.samples_s) == 2


def test_the_host_needs_no_stream():
    with on_device("cpu") as wrap:
        bound = object()
        assert wrap(bound) is bound


@pytest.mark.parametrize("device", ["cuda", "cuda:7", "tpu"])
def test_a_device_that_is_not_there_is_refused(device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ferry.DeviceError) as refusal, on_device(device):
        pass
    assert device in refusal.value.given
    assert 'device="cpu"' in refusal.value.instead


def test_figures_are_measured_unless_a_double_of_the_driver_gave_them(monkeypatch):
    monkeypatch.delenv("TENSORFERRY_LIBCUDA", raising=False)
    assert origin_of("cuda") == "measured"
    monkeypatch.setenv("TENSORFERRY_LIBCUDA", "/nowhere/libcuda.so.1")
    assert origin_of("cuda") == "measured"
    monkeypatch.setenv("TENSORFERRY_LIBCUDA", "libm.so.6")  # a library, and no double
    assert origin_of("cuda") == "measured"
