"""One contract for everything that metrics can be handed to."""

from __future__ import annotations

import contextvars
import csv
import json
import logging
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

import tensorferry as ferry

Steps = list[tuple[int, dict[str, Any]]]


class Recorder:
    """What the sink of a kind was told; reads it back."""

    def __init__(self) -> None:
        self.steps: Steps = []
        self.sink: Any = None

    def read(self) -> Steps:
        return self.steps


class FunctionSink(Recorder):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.sink = lambda step, values: self.steps.append((step, values))


class RunSink(Recorder):
    """``log(data, step=...)``, as runs of W&B and Trackio and trackers of Accelerate have it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.sink = self

    def log(self, data: dict[str, Any], step: int | None = None) -> None:
        assert step is not None
        self.steps.append((step, data))


class LoggerSink(Recorder):
    """``log_metrics(metrics, step)``, as loggers of Lightning have it; and a ``log`` that is not meant."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.sink = self

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        assert step is not None
        self.steps.append((step, metrics))

    def log(self, message: str) -> None:
        raise AssertionError(message)


class WriterSink(Recorder):
    """``add_scalar(tag, value, global_step)``, as writers of TensorBoard have it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.sink = self

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None) -> None:
        assert global_step is not None
        if not self.steps or self.steps[-1][0] != global_step:
            self.steps.append((global_step, {}))
        self.steps[-1][1][tag] = scalar_value


class JsonLinesSink(Recorder):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path / "metrics.jsonl"
        self.sink = str(self.path)

    def read(self) -> Steps:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        records = [json.loads(line, parse_constant=pytest.fail) for line in lines]
        return [(record.pop("step"), {name: _number(value) for name, value in record.items()}) for record in records]


class CsvSink(Recorder):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path / "metrics.csv"
        self.sink = self.path

    def read(self) -> Steps:
        if not self.path.exists():
            return []
        with self.path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        return [(int(row.pop("step")), {k: _number(v) for k, v in row.items() if v != ""}) for row in rows]


class ChainedLog(Recorder):
    """A MetricLog takes what another one delivers."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.sink = ferry.MetricLog(lambda step, values: self.steps.append((step, values)))

    def read(self) -> Steps:
        self.sink.flush()
        return self.steps


def _number(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value in ("True", "False"):
        return value == "True"
    return int(value) if value.lstrip("-").isdigit() else float(value)


KINDS: dict[str, Callable[[Path], Recorder]] = {
    "a function": FunctionSink,
    "a run with log": RunSink,
    "a logger with log_metrics": LoggerSink,
    "a writer with add_scalar": WriterSink,
    "a .jsonl file": JsonLinesSink,
    "a .csv file": CsvSink,
    "another log": ChainedLog,
}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def recorder(request: pytest.FixtureRequest, tmp_path: Path) -> Recorder:
    made: Recorder = request.param(tmp_path)
    return made


def test_gets_each_step_once_in_order_with_exact_numbers(recorder: Recorder):
    sent = [{"loss": i / 3, "n": 2**60 + i, "ok": i % 2 == 0, "nested": {"lr": 10.0**-i}} for i in range(20)]
    with ferry.MetricLog(recorder.sink) as log:
        for metrics in sent:
            log.log(
                {name: torch.tensor(x, dtype=torch.float64) if name == "loss" else x for name, x in metrics.items()}
            )
    expected = [(i, {"loss": i / 3, "n": 2**60 + i, "ok": i % 2 == 0, "nested/lr": 10.0**-i}) for i in range(len(sent))]
    assert recorder.read() == expected
    assert [[type(x) for x in values.values()] for _, values in recorder.read()] == [[float, int, bool, float]] * 20


def test_gets_metrics_that_come_and_go(recorder: Recorder):
    with ferry.MetricLog(recorder.sink) as log:
        for step in range(5):
            log.log({"always": step, **({'new, and "odd"': step} if step == 2 else {})}, step=10 * step)
    assert recorder.read() == [
        (10 * step, {"always": step, **({'new, and "odd"': step} if step == 2 else {})}) for step in range(5)
    ]


def test_gets_nan_and_infinities(recorder: Recorder):
    with ferry.MetricLog(recorder.sink) as log:
        log.log({"nan": math.nan, "more": math.inf, "less": -math.inf})
    ((_, values),) = recorder.read()
    assert math.isnan(values["nan"])
    assert (values["more"], values["less"]) == (math.inf, -math.inf)


def test_goes_on_while_another_sink_fails(recorder: Recorder):
    def fails(step: int, values: dict[str, Any]) -> None:
        if step % 2:
            raise ConnectionError("the server is gone")

    log = ferry.MetricLog(fails, recorder.sink)
    for step in range(6):
        log.log({"a": step})
    with pytest.raises(ferry.SinkError, match=r"step 1.*ConnectionError: the server is gone.*2 more errors") as caught:
        log.flush()
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert log.stats.failures == 3
    log.close()  # told once
    assert recorder.read() == [(step, {"a": step}) for step in range(6)]


class RunOfThread(ModuleType):
    """What the module mlflow does: each thread has an active run, and one that has none begins another."""

    def __init__(self) -> None:
        super().__init__("mlflow")
        self.own = threading.local()
        self.logged: list[tuple[str, int]] = []
        self.threads: set[int] = set()

    def start_run(self, name: str) -> None:
        self.own.run = SimpleNamespace(info=SimpleNamespace(run_id=name))

    def active_run(self) -> Any:
        return getattr(self.own, "run", None)

    def log_metrics(self, metrics: dict[str, float], step: int | None = None, run_id: str | None = None) -> None:
        assert step is not None
        self.threads.add(threading.get_ident())
        if run_id is None and self.active_run() is None:
            self.start_run("another")
        self.logged.append((run_id or self.active_run().info.run_id, step))


class RunOfContext(ModuleType):
    """What the module trackio does: a context variable has its run."""

    def __init__(self) -> None:
        super().__init__("trackio")
        self.run: contextvars.ContextVar[str] = contextvars.ContextVar("run")
        self.logged: list[tuple[str, int]] = []
        self.threads: set[int] = set()

    def start_run(self, name: str) -> None:
        self.run.set(name)

    def log(self, metrics: dict[str, Any], step: int | None = None) -> None:
        assert step is not None
        self.threads.add(threading.get_ident())
        self.logged.append((self.run.get(), step))


def once_slow(step: int, values: dict[str, Any]) -> None:
    """Make the log call its sinks from a thread after the first step."""
    time.sleep(0.0 if step else 0.03)


RUNS = pytest.mark.parametrize("module", [RunOfThread, RunOfContext], ids=["a run by thread", "a run by context"])


@RUNS
def test_a_module_logs_to_the_run_in_which_the_log_was_made(module: type[RunOfThread | RunOfContext]):
    kept = module()
    kept.start_run("ours")
    with ferry.MetricLog(once_slow, kept) as log:
        for step in range(5):
            log.log({"a": step})
    assert kept.logged == [("ours", step) for step in range(5)]
    assert len(kept.threads) == 2


def test_a_run_of_mlflow_may_begin_after_the_log_is_made():
    mlflow = RunOfThread()
    log = ferry.MetricLog(mlflow, once_slow)
    mlflow.start_run("ours")
    for step in range(5):
        log.log({"a": step})
    log.close()
    assert mlflow.logged == [("ours", step) for step in range(5)]
    assert len(mlflow.threads) == 2


def test_no_run_of_mlflow_is_begun_by_a_log():
    mlflow = RunOfThread()
    log = ferry.MetricLog(mlflow)
    log.log({"a": 1})
    with pytest.raises(ferry.SinkError, match=r"no run of it was active.*start_run"):
        log.close()
    assert mlflow.logged == []


@pytest.mark.parametrize(
    "given",
    [3, None, logging.getLogger("x"), "metrics.txt", FunctionSink],
    ids=["an int", "None", "a logger of logging", "a path of no known kind", "a class"],
)
def test_what_is_no_sink_is_refused(given: Any):
    with pytest.raises(ferry.ArgumentError) as caught:
        ferry.MetricLog(given)
    assert ".jsonl or .csv" in caught.value.instead
