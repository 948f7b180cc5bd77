"""Metrics of CUDA tensors: the value at the call arrives, the host never waits, and nobody's capture is harmed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch

import tensorferry as ferry
from helpers.captures import capture
from helpers.device_path import leases_in_use, until
from tensorferry._native import core

Steps = list[tuple[int, dict[str, Any]]]
NUMBERS = {
    "float32": 0.5,
    "bfloat16": 1.5,
    "float16": -2.25,
    "int64": 2**62 + 1,
    "int32": -7,
    "bool": True,
    "uint8": 200,
}
NUMBERS |= {"float64": 0.1, "float8_e4m3fn": 1.75, "float8_e5m2": -0.5}


@pytest.fixture(autouse=True, params=["by our kernels", "by torch"])
def gathered(request: pytest.FixtureRequest, cuda: Any) -> Iterator[str]:
    """Who gathers the values of a step."""
    core.set_transfer_limits(kernels=request.param == "by our kernels")
    if request.param == "by our kernels":
        cuda.settled(torch.zeros(()))  # the device is in use
        assert core.kernels_there(0, load=True)
    yield request.param
    core.set_transfer_limits(kernels=True)


@pytest.fixture
def steps() -> Steps:
    return []


@pytest.fixture
def log(cuda: Any, steps: Steps) -> Iterator[ferry.MetricLog]:
    made = ferry.MetricLog(lambda step, values: steps.append((step, values)))
    yield made
    cuda.fake.drain()
    made.close()


def scalars(cuda: Any) -> dict[str, torch.Tensor]:
    return {
        name: cuda.settled(torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None).to(dtype))
        for name, value in NUMBERS.items()
        for dtype in [getattr(torch, name)]
    }


def test_numbers_of_every_dtype_arrive_exactly_and_in_the_order_of_insertion(cuda: Any, log: Any, steps: Steps):
    log.log({"lr": 0.25, **scalars(cuda), "epoch": 3})
    log.flush()
    assert steps == [(0, {"lr": 0.25, **NUMBERS, "epoch": 3})]
    assert list(steps[0][1]) == ["lr", *NUMBERS, "epoch"]
    assert [type(value) for value in steps[0][1].values()] == [float, *map(type, NUMBERS.values()), int]


def test_overwriting_a_source_right_after_the_call_changes_nothing(any_schedule: Any, steps: Steps):
    x = any_schedule.settled(torch.zeros(4))
    with ferry.MetricLog(lambda step, values: steps.append((step, values))) as log:
        for step in range(20):
            x.fill_(float(step))
            log.log({"first": x[0], "all": {"x": x}, "whole": x.sum()})
            x.fill_(-1.0)
    expected = {f"all/x/{i}": 0.0 for i in range(4)}
    for step, (number, values) in enumerate(steps):
        assert number == step
        assert values == {"first": step, **dict.fromkeys(expected, step), "whole": 4.0 * step}
    assert len(steps) == 20


def test_f085_a_thousand_scalars_are_one_launch_one_copy_and_one_event(
    cuda: Any, log: Any, steps: Steps, gathered: str
):
    dtypes = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float64)
    values = {f"metric {i}": cuda.settled(torch.tensor(i % 7).to(dtypes[i % 5])) for i in range(1000)}
    before = leases_in_use()
    for _ in range(3):
        log.log(values)
        cuda.fake.drain()
        log.flush()
        assert until(lambda: leases_in_use() <= before)  # the thread that lets go of them has done so
    cuda.fake.clear_trace()
    log.log(values)
    counts = cuda.fake.call_counts()
    log.flush()
    assert [name for name in counts if "Synchronize" in name] == []
    assert [name for name in counts if "Alloc" in name or "Register" in name or "EventCreate" in name] == []
    launches = sum(counts[name] for name in counts if name.startswith("cuLaunchKernel"))
    by_table = os.environ.get("TENSORFERRY_NO_EXCHANGE_API") != "1"  # else torch gathers
    if gathered == "by our kernels" and by_table:
        assert (launches, counts["cuMemcpyDtoHAsync"], counts["cuEventRecord"]) == (1, 1, 1)
    else:  # a copy for each dtype; an event orders our stream, another one ends the copies
        assert (launches, counts["cuMemcpyDtoHAsync"], counts["cuEventRecord"]) == (0, 5, 2)
    assert steps[3][1] == {name: x.cpu().item() for name, x in values.items()}


def test_f082_log_returns_while_the_device_is_busy(cuda: Any, log: Any, steps: Steps):
    x = cuda.settled(torch.ones(()))
    with cuda.fake.held():
        for step in range(5):
            log.log({"x": x, "step": step})
        assert steps == []
        assert log.latest().step is None
        with pytest.raises(ferry.TransferTimeout):
            log.flush(0.05)
    log.flush()
    assert [number for number, _ in steps] == list(range(5))


def test_latest_knows_what_has_arrived_without_waiting(cuda: Any, log: Any):
    x = cuda.settled(torch.ones(()))
    log.log({"x": x})
    log.log({"x": x})
    cuda.fake.drain()
    assert log.latest() == (0, {"x": 1.0})


def test_f084_no_tensor_is_held_when_its_values_have_arrived(cuda: Any, log: Any):
    log.log({"x": cuda.settled(torch.ones(()))})
    log.flush()
    x = cuda.settled(torch.ones(1 << 16))
    before = cuda.fake.live("device_bytes")
    log.log({"x": x[0]})
    log.flush()
    del x

    def is_free() -> bool:
        core.reap()
        cuda.fake.drain()
        return cuda.fake.live("device_bytes") < before

    assert until(is_free)


def test_many_steps_take_no_more_memory_and_events_than_few(cuda: Any, log: Any, steps: Steps):
    values = {f"metric {i}": cuda.settled(torch.tensor(float(i))) for i in range(20)}

    def after_some_steps() -> tuple[int, ...]:
        for _ in range(200):
            log.log(values)
            cuda.fake.drain()
        log.flush()
        core.reap()
        return tuple(cuda.fake.live(name) for name in ("device_bytes", "host_bytes", "events", "streams"))

    # A thread may hold a step's memory for a moment longer, and then one more is made: a few times, not every time.
    found = [after_some_steps()]
    while len(found) < 20:
        found.append(after_some_steps())
        if all(now <= then for now, then in zip(found[-1], found[-2], strict=True)):
            break
    else:
        pytest.fail(f"it grew every time: {found}")
    assert len(steps) == 200 * len(found)


def test_values_of_two_devices_and_the_host_are_one_step(cuda: Any, log: Any, steps: Steps):
    log.log({"a": torch.tensor(1.0).to("cuda:1"), "b": 2, "c": torch.tensor(3.0).to("cuda:0"), "d": torch.tensor(4)})
    log.flush()
    assert steps == [(0, {"a": 1.0, "b": 2, "c": 3.0, "d": 4})]
    assert list(steps[0][1]) == list("abcd")


def test_values_are_those_of_the_stream_that_is_current(cuda: Any, log: Any, steps: Steps):
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.full((), 5.0, device="cuda")
        log.log({"x": x})
        x.fill_(6.0)
    log.flush()
    assert steps == [(0, {"x": 5.0})]


@pytest.mark.parametrize(
    ("agg", "expected"), [("mean", 2.5), ("sum", 10), ("min", 1), ("max", 4), ("last", 4)], ids=lambda value: str(value)
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_steps_are_aggregated_on_the_device(any_schedule: Any, steps: Steps, agg: str, expected: float, dtype: str):
    with ferry.MetricLog(lambda step, values: steps.append((step, values)), every=4, agg=agg) as log:
        for number in (3, 1, 2, 4, 7):
            x = torch.tensor(number, dtype=getattr(torch, dtype)).to("cuda")
            log.log({"x": x, "host": float(number)})
            x.zero_()
    assert steps == [(3, {"x": expected, "host": float(expected)}), (4, {"x": 7, "host": 7.0})]
    assert list(steps[0][1]) == ["x", "host"]


def test_totals_follow_the_caller_from_stream_to_stream(any_schedule: Any, steps: Steps):
    streams = [torch.cuda.Stream() for _ in range(3)]
    sources = []
    with ferry.MetricLog(lambda step, values: steps.append((step, values)), every=6, agg="sum") as log:
        for step in range(6):
            with torch.cuda.stream(streams[step % 3]):
                sources.append(torch.full((), float(step), device="cuda"))
                log.log({"x": sources[-1]})
    assert steps == [(5, {"x": 15.0})]


def test_a_capture_of_another_thread_survives(cuda: Any, log: Any, steps: Steps):
    x = cuda.settled(torch.ones(()))
    log.log({"x": x})
    log.flush()
    before = len(cuda.fake.captures())  # other tests' are among them
    ready, end = threading.Event(), threading.Event()
    alive: list[bool] = []

    def captures() -> None:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream), capture(cuda.fake, stream.cuda_stream) as made:
            ready.set()
            end.wait(10)
            alive.append(torch.cuda.is_current_stream_capturing())
        cuda.fake.destroy_graph(made.graph)

    other = threading.Thread(target=captures)
    other.start()
    assert ready.wait(10)
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(5):
            log.log({"x": x})
        log.flush()
    end.set()
    other.join()
    assert alive == [True]
    assert "invalidated" not in " ".join(cuda.fake.captures()[before:])
    assert [values for _, values in steps] == [{"x": 1.0}] * 6


def test_inside_a_capture_it_is_refused_and_the_capture_stays_valid(cuda: Any, log: Any, steps: Steps):
    x = cuda.settled(torch.ones(()))
    log.log({"x": x})
    log.flush()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), capture(cuda.fake, stream.cuda_stream) as made:
        with pytest.raises(ferry.DeviceError, match="captured into a graph"):
            log.log({"x": x}, step=5)
        assert torch.cuda.is_current_stream_capturing()
        log.log({"host": torch.tensor(2.0)}, step=4)
    cuda.fake.destroy_graph(made.graph)
    log.flush()
    assert steps == [(0, {"x": 1.0}), (4, {"host": 2.0})]


def test_replays_that_cannot_be_prepared_say_what_is_missing(cuda: Any, log: Any, steps: Steps, gathered: str):
    x = cuda.settled(torch.zeros(3))
    possible = gathered == "by our kernels" and os.environ.get("TENSORFERRY_NO_EXCHANGE_API") != "1"
    missing = pytest.raises(ferry.DeviceError, match=r"kernels of tensorferry into pinned memory.*torch is older")
    with nullcontext() if possible else missing:
        log.prepare_capture({"x": x})
    log.log({"x": x[0]})  # as before
    log.flush()
    assert steps == [(0, {"x": 0.0})]
