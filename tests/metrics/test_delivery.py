"""From the log to its sinks: who calls them, what waits for whom, and what is lost."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import pytest
import torch

import tensorferry as ferry

Steps = list[tuple[int, dict[str, Any]]]


def threads_of_metrics() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "tensorferry metrics"]


def test_there_is_no_thread_while_everything_is_on_the_host():
    before, callers = threads_of_metrics(), set()
    with ferry.MetricLog(lambda step, values: callers.add(threading.get_ident())) as log:
        for step in range(200):
            log.log({"a": torch.tensor(1.0), "b": step}, step=step)
        log.log_histogram("h", torch.ones(3), step=step)
        log.log_array("x", torch.ones(3), step=step)
        assert set(threads_of_metrics()) <= set(before)
    assert callers == {threading.get_ident()}


def test_a_slow_sink_is_felt_once_and_then_left_to_a_thread():
    steps: Steps = []

    def slow(step: int, values: dict[str, Any]) -> None:
        time.sleep(0.03)
        steps.append((step, values))

    with ferry.MetricLog(slow, depth=100) as log:
        began = time.perf_counter()
        for step in range(21):
            log.log({"a": step})
        took = time.perf_counter() - began
        assert took < 20 * 0.03 / 2
        assert log.stats.waiting > 10
    assert steps == [(step, {"a": step}) for step in range(21)]


class Gate:
    """A sink that is stuck until it is let go."""

    def __init__(self) -> None:
        self.open, self.entered = threading.Event(), threading.Event()
        self.steps: list[int] = []

    def __call__(self, step: int, values: dict[str, Any]) -> None:
        self.entered.set()
        assert self.open.wait(20)
        self.steps.append(step)


@pytest.fixture
def gate() -> Gate:
    return Gate()


def behind(gate: Gate, **options: Any) -> ferry.MetricLog:
    """A log whose sink is stuck in its thread at step 0."""
    first = [True]

    def sink(step: int, values: dict[str, Any]) -> None:
        if first[0]:  # once slow: from then on the thread calls it
            first[0] = False
            time.sleep(0.03)
        else:
            gate(step, values)

    log = ferry.MetricLog(sink, **options)
    log.log({"a": 0}, step=0)
    log.log({"a": 0}, step=1)
    log.log({"a": 0}, step=2)
    assert gate.entered.wait(10)
    return log


def test_flush_gives_up_in_time_and_loses_nothing(gate: Gate):
    log = behind(gate)
    began = time.perf_counter()
    with pytest.raises(ferry.TransferTimeout, match="2 steps"):
        log.flush(0.1)
    assert time.perf_counter() - began < 5
    gate.open.set()
    log.close()
    assert gate.steps == [1, 2]


def test_a_full_queue_drops_new_steps_and_counts_them(gate: Gate):
    log = behind(gate, depth=3, on_full="drop")
    for step in range(3, 11):
        log.log({"a": step})
    gate.open.set()
    log.close()
    assert gate.steps == [1, 2, 3]
    assert log.stats.dropped == 7
    assert log.stats.delivered == 4


def test_a_full_queue_grows(gate: Gate):
    log = behind(gate, depth=1, on_full="grow")
    for step in range(3, 100):
        log.log({"a": step})
    assert log.stats.waiting == 98
    gate.open.set()
    log.close()
    assert gate.steps == list(range(1, 100))


def test_a_full_queue_makes_the_caller_wait(gate: Gate):
    log = behind(gate, depth=2, on_full="wait")
    threading.Timer(0.1, gate.open.set).start()
    for step in range(3, 20):
        log.log({"a": step})
    assert gate.open.is_set()
    log.close()
    assert gate.steps == list(range(1, 20))
    assert log.stats.dropped == 0


def test_latest_does_not_wait_for_a_sink(gate: Gate):
    log = behind(gate)
    log.log({"a": 7}, step=9)
    log.log({"a": 8}, step=10)
    assert log.latest() == (9, {"a": 7})
    gate.open.set()
    log.close()


def test_the_thread_ends_when_there_is_nothing_to_do(gate: Gate, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.modules["tensorferry._metrics.delivery"], "_IDLE_S", 0.05)
    log = behind(gate)
    gate.open.set()
    log.flush()
    deadline = time.monotonic() + 10
    while threads_of_metrics() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads_of_metrics() == []
    log.log({"a": 1})
    log.close()
    assert gate.steps[-1] == 3


def test_flush_waits_for_a_step_that_another_thread_is_handing_over():
    entered, done = threading.Event(), []

    def slow(step: int, values: dict[str, Any]) -> None:
        entered.set()
        time.sleep(0.1)
        done.append(step)

    log = ferry.MetricLog(slow)
    log.log({"a": 0})
    other = threading.Thread(target=log.log, args=({"a": 1},))
    other.start()
    assert entered.wait(10)
    log.flush()
    assert done == [0, 1]
    other.join()
    log.close()


def test_a_sink_may_log_to_its_own_log():
    steps: Steps = []

    def echoes(step: int, values: dict[str, Any]) -> None:
        steps.append((step, values))
        if "echo" not in values and step < 10:
            log.log({"echo": step})

    log = ferry.MetricLog(echoes, depth=1)
    log.log({"a": 1})
    log.log({"a": 2})
    log.close()
    assert steps == [(0, {"a": 1}), (1, {"a": 2}), (2, {"echo": 0}), (3, {"echo": 1})]


def test_threads_may_log_together():
    steps: Steps = []
    log = ferry.MetricLog(lambda step, values: steps.append((step, values)))

    def logs(name: str) -> None:
        for number in range(200):
            log.log({name: torch.tensor(number)})

    workers = [threading.Thread(target=logs, args=(f"worker {i}",)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    log.close()
    assert [step for step, _ in steps] == list(range(800))
    for i in range(4):
        own = [values[f"worker {i}"] for _, values in steps if f"worker {i}" in values]
        assert own == list(range(200))


def test_without_the_internal_thread_the_caller_delivers():
    steps: Steps = []

    def slow(step: int, values: dict[str, Any]) -> None:
        time.sleep(0.025)
        steps.append((step, values))

    before = threads_of_metrics()
    with ferry.options(background=False), ferry.MetricLog(slow, depth=1) as log:
        for step in range(4):
            log.log({"a": step})
        assert set(threads_of_metrics()) <= set(before)
    assert [step for step, _ in steps] == [0, 1, 2, 3]
