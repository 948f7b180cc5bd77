"""Metrics logged inside a capture: each replay delivers a step, in order; what is overwritten is a gap, never a lie."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import tensorferry as ferry
from helpers.captures import MODES, Captured, capture
from helpers.device_path import kernels, leases_in_use, seen, until
from tensorferry._native import core

Steps = list[tuple[int, dict[str, Any]]]
ALLOCATING = ("cuMem", "cuEvent", "cuStreamWait", "cuStreamCreate", "cuLibrary", "cuStreamSync", "cuCtxSync")


@pytest.fixture(autouse=True)
def our_kernels(cuda: Any) -> Iterator[None]:
    """Replays send by kernels of ours."""
    cuda.settled(torch.zeros(()))  # the device is in use
    with kernels():
        yield


@pytest.fixture
def side(cuda: Any) -> Iterator[torch.cuda.Stream]:
    """A stream of torch's, current inside."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        yield stream


@pytest.fixture
def steps() -> Steps:
    return []


@pytest.fixture
def log(cuda: Any, steps: Steps) -> Iterator[ferry.MetricLog]:
    made = ferry.MetricLog(lambda step, values: steps.append((step, values)))
    yield made
    cuda.fake.drain()
    made.close()


def captured(cuda: Any, stream: Any, call: Callable[[], Any], mode: str = "global") -> Captured:
    torch.cuda.synchronize()
    with capture(cuda.fake, stream.cuda_stream, mode) as made:
        call()
    return made


def quiet_leases() -> int:
    """How many are in use once the threads that let go of them have done so."""
    last, now = -1, leases_in_use()
    while now != last:
        core.reap()
        time.sleep(0.05)
        last, now = now, leases_in_use()
    return now


def replayed(cuda: Any, log: Any, made: Captured, stream: Any, x: torch.Tensor, values: list[float]) -> None:
    for value in values:
        x.fill_(value)
        cuda.fake.launch_graph(made.graph, stream.cuda_stream)
        x.fill_(-1.0)
    cuda.fake.drain()
    log.flush()


def test_each_replay_delivers_a_step_with_its_values_in_order(any_schedule: Any, side: Any, log: Any, steps: Steps):
    x = any_schedule.settled(torch.zeros(3))
    log.prepare_capture({"x": x, "first": x[0]})
    made = captured(any_schedule, side, lambda: log.log({"lr": 0.5, "x": x, "first": x[0]}, step=7))
    assert steps == []
    replayed(any_schedule, log, made, side, x, list(range(20)))
    names = ["lr", "x/0", "x/1", "x/2", "first"]
    assert steps == [(7 + i, dict(zip(names, [0.5, *[float(i)] * 4], strict=True))) for i in range(20)]
    assert all(list(values) == names for _, values in steps)
    assert log.gaps == 0
    any_schedule.fake.destroy_graph(made.graph)


def test_more_tensors_than_a_launch_names_itself_and_every_dtype_arrive(any_schedule: Any, side: Any, steps: Steps):
    numbers = {torch.float32: 0.5, torch.bfloat16: 1.5, torch.int64: 2**62 + 1, torch.bool: True, torch.uint8: 200}
    dtypes = list(numbers)
    tensors = {
        f"metric {i}": any_schedule.settled(torch.tensor(numbers[dtypes[i % 5]]).to(dtypes[i % 5])) for i in range(300)
    }
    with ferry.MetricLog(lambda step, values: steps.append((step, values))) as log:
        log.prepare_capture(tensors)
        made = captured(any_schedule, side, lambda: log.log(tensors))
        for _ in range(3):
            any_schedule.fake.launch_graph(made.graph, side.cuda_stream)
        any_schedule.fake.drain()
    expected = {f"metric {i}": numbers[dtypes[i % 5]] for i in range(300)}
    assert steps == [(step, expected) for step in range(3)]
    any_schedule.fake.destroy_graph(made.graph)


def test_a_slow_reader_loses_replays_that_are_counted_and_gets_no_wrong_value(any_schedule: Any, side: Any, capfd: Any):
    x = any_schedule.settled(torch.zeros(64))
    got: Steps = []
    with ferry.options(background=False):
        log = ferry.MetricLog(lambda step, values: got.append((step, values)))
        log.prepare_capture({"x": x}, slots=4)
        made = captured(any_schedule, side, lambda: log.log({"x": x}))
        for begin in range(0, 60, 10):
            replayed(any_schedule, log, made, side, x, [float(value) for value in range(begin, begin + 10)])
        assert [step for step, _ in got] == [begin + i for begin in range(0, 60, 10) for i in range(6, 10)]
        assert all(set(values.values()) == {float(step)} for step, values in got)
        assert log.gaps == 36
        log.close()
    assert "missed 36 replays" in capfd.readouterr().err
    any_schedule.fake.destroy_graph(made.graph)


def test_a_reader_beside_the_replays_never_gets_a_torn_value(any_schedule: Any, side: Any, steps: Steps):
    x = any_schedule.settled(torch.zeros(512))
    with ferry.MetricLog(lambda step, values: steps.append((step, values))) as log:
        log.prepare_capture({"x": x}, slots=2)
        made = captured(any_schedule, side, lambda: log.log({"x": x}))
        for value in range(200):
            x.fill_(float(value))
            any_schedule.fake.launch_graph(made.graph, side.cuda_stream)
        any_schedule.fake.drain()
        log.flush()
        assert all(set(values.values()) == {float(step)} for step, values in steps)
        assert [step for step, _ in steps] == sorted({step for step, _ in steps})
        assert len(steps) + log.gaps == 200
    any_schedule.fake.destroy_graph(made.graph)


def test_replays_arrive_without_another_call(cuda: Any, side: Any, log: Any, steps: Steps):
    x = cuda.settled(torch.ones(()))
    log.prepare_capture({"x": x})
    made = captured(cuda, side, lambda: log.log({"x": x}))
    cuda.fake.launch_graph(made.graph, side.cuda_stream)
    cuda.fake.drain()
    assert until(lambda: steps == [(0, {"x": 1.0})])
    assert log.latest() == (0, {"x": 1.0})
    cuda.fake.destroy_graph(made.graph)


@pytest.mark.parametrize("mode", MODES)
def test_a_captured_call_is_one_launch_and_takes_nothing(cuda: Any, side: Any, log: Any, mode: str):
    x = cuda.settled(torch.ones(8))
    log.prepare_capture({"x": x})
    torch.cuda.synchronize()
    with capture(cuda.fake, side.cuda_stream, mode) as made, seen(cuda.fake) as record:
        log.log({"x": x})
        assert torch.cuda.is_current_stream_capturing()
    assert [line for line in record.lines if line.startswith(ALLOCATING)] == []
    assert len([line for line in record.lines if line.startswith("cuLaunchKernel")]) == 1
    cuda.fake.destroy_graph(made.graph)


def test_replays_are_aggregated_like_steps(cuda: Any, side: Any, steps: Steps):
    x = cuda.settled(torch.zeros(()))
    with ferry.MetricLog(lambda step, values: steps.append((step, values)), every=3, agg="mean") as log:
        log.prepare_capture({"x": x})
        made = captured(cuda, side, lambda: log.log({"x": x}))
        replayed(cuda, log, made, side, x, [1.0, 2.0, 6.0, 4.0])
    assert steps == [(2, {"x": 3.0}), (3, {"x": 4.0})]
    cuda.fake.destroy_graph(made.graph)


def test_nan_of_a_replay_is_told_with_its_step(cuda: Any, side: Any, steps: Steps):
    x = cuda.settled(torch.zeros(()))
    log = ferry.MetricLog(lambda step, values: steps.append((step, values)), on_nan="raise")
    log.prepare_capture({"x": x})
    made = captured(cuda, side, lambda: log.log({"x": x}, step=5))
    with pytest.raises(ferry.CheckError, match="'x' at step 6"):
        replayed(cuda, log, made, side, x, [1.0, float("nan")])
    log.close()
    assert [step for step, _ in steps] == [5, 6]
    cuda.fake.destroy_graph(made.graph)


def test_memory_comes_back_when_the_graph_is_destroyed_and_what_it_left_is_delivered(
    cuda: Any, side: Any, log: Any, steps: Steps
):
    x = cuda.settled(torch.zeros(()))
    log.log({"x": x})
    log.flush()
    held = quiet_leases()
    log.prepare_capture({"x": x})
    made = captured(cuda, side, lambda: log.log({"x": x}, step=3))
    replayed(cuda, log, made, side, x, [2.0])
    assert quiet_leases() == held + 1
    cuda.fake.launch_graph(made.graph, side.cuda_stream)
    cuda.fake.destroy_graph(made.graph)

    def is_back() -> bool:
        cuda.fake.drain()
        core.reap()
        return leases_in_use() == held

    assert until(is_back)
    assert until(lambda: steps == [(0, {"x": 0.0}), (3, {"x": 2.0}), (4, {"x": -1.0})])


def test_two_captured_calls_and_other_streams_steps_do_not_disturb_each_other(
    any_schedule: Any, side: Any, log: Any, steps: Steps
):
    x, y, five = (any_schedule.settled(torch.tensor(value)) for value in (0.0, 0.0, 5.0))
    log.prepare_capture({"x": x}, captures=2)

    def twice() -> None:
        log.log({"before": x}, step=100)
        x.copy_(five)
        log.log({"after": x}, step=200)

    made = captured(any_schedule, side, twice)
    other = torch.cuda.Stream()
    for step in range(10):
        x.fill_(float(step))
        any_schedule.fake.launch_graph(made.graph, side.cuda_stream)
        with torch.cuda.stream(other):
            y.fill_(float(step))
            log.log({"y": y}, step=step)
    any_schedule.fake.drain()
    log.flush()
    assert [(step, values) for step, values in steps if step < 100] == [(i, {"y": float(i)}) for i in range(10)]
    assert [pair for pair in steps if 100 <= pair[0] < 200] == [(100 + i, {"before": float(i)}) for i in range(10)]
    assert [pair for pair in steps if pair[0] >= 200] == [(200 + i, {"after": 5.0}) for i in range(10)]
    any_schedule.fake.destroy_graph(made.graph)


@pytest.mark.parametrize(
    ("prepared", "tensors"),
    [(1, 1), (0, 1), (1, 100)],
    ids=["a second call with memory for one", "nothing prepared", "more tensors than prepared"],
)
def test_without_prepared_memory_it_is_refused_and_the_capture_stays_valid(
    cuda: Any, side: Any, log: Any, steps: Steps, prepared: int, tensors: int
):
    x = cuda.settled(torch.ones(()))
    if prepared:
        log.prepare_capture({"x": x})

    def call() -> None:
        if prepared and tensors == 1:
            log.log({"x": x})
        with pytest.raises(ferry.DeviceError, match="prepare_capture") as caught:
            log.log({f"x{i}": x for i in range(tensors)})
        assert all((caught.value.given, caught.value.why, caught.value.instead))
        with pytest.raises(ferry.DeviceError, match="captured"):
            log.prepare_capture({"x": x})

    made = captured(cuda, side, call)
    cuda.fake.launch_graph(made.graph, side.cuda_stream)
    cuda.fake.drain()
    log.flush()
    assert steps == ([(0, {"x": 1.0})] if prepared and tensors == 1 else [])
    cuda.fake.destroy_graph(made.graph)


def test_without_kernels_nothing_can_be_prepared(cuda: Any, side: Any, log: Any):
    core.set_transfer_limits(kernels=False)
    try:
        with pytest.raises(ferry.DeviceError, match="kernels"):
            log.prepare_capture({"x": cuda.settled(torch.ones(()))})
    finally:
        core.set_transfer_limits(kernels=True)


def test_a_sink_that_flushes_and_logs_itself_does_not_wait_for_itself(cuda: Any, side: Any):
    x = cuda.settled(torch.ones(()))
    got: list[int] = []

    def sink(step: int, values: dict[str, Any]) -> None:
        got.append(step)
        log.flush(5)
        if step == 50:
            log.log({"echo": 1}, step=0)

    log = ferry.MetricLog(sink, depth=1)
    log.prepare_capture({"x": x})
    made = captured(cuda, side, lambda: log.log({"x": x}, step=50))
    replayed(cuda, log, made, side, x, [1.0, 2.0, 3.0])
    log.close(5)
    assert sorted(got) == [0, 50, 51, 52]
    cuda.fake.destroy_graph(made.graph)
