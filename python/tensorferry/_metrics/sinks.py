"""What metrics are handed to: anything that one of the common interfaces of loggers fits."""

from __future__ import annotations

import contextvars
import logging
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

from tensorferry._errors import ArgumentError
from tensorferry._metrics.histogram import Histogram

__all__ = ["Sink", "sink_for"]


class Sink(Protocol):
    """Takes steps in their order, from one thread at a time."""

    name: str

    def take(self, step: int, values: dict[str, Any]) -> None:
        """Take one step; the dict is the sink's own."""

    def close(self) -> None:
        """Let go of what the sink opened itself."""


class _Given:
    """An object of the caller's, who also closes it."""

    def __init__(self, given: Any) -> None:
        self._given = given
        self.name = f"{type(given).__name__} {getattr(given, '__name__', '')}".strip()

    def close(self) -> None:
        """Nothing: it was given."""


class _Callable(_Given):
    """``sink(step, values)``."""

    def take(self, step: int, values: dict[str, Any]) -> None:
        """Call it."""
        self._given(step, values)


class _WithLog(_Given):
    """``sink.log(values, step=step)``: runs of W&B and Trackio, their modules, trackers of Accelerate."""

    def __init__(self, given: Any) -> None:
        super().__init__(given)
        # The module trackio finds its run in a context variable, which a thread of the log's would not have.
        self._context = contextvars.copy_context() if isinstance(given, ModuleType) else None
        # The tracker for MLflow logs to the run that is active in the thread that calls.
        is_mlflow = _package(given) == "accelerate" and type(given).__name__ == "MLflowTracker"
        run = getattr(given, "active_run", None) if is_mlflow else None
        self._more = {} if run is None else {"run_id": run.info.run_id}

    def take(self, step: int, values: dict[str, Any]) -> None:
        """Call its ``log``."""
        if any(isinstance(value, Histogram) for value in values.values()):
            values = {name: self._rendered(value) for name, value in values.items()}
        if self._context is None:
            self._given.log(values, step=step, **self._more)
        else:
            self._context.copy().run(self._given.log, values, step=step)  # a copy: a sink may log itself

    def _rendered(self, value: Any) -> Any:
        if not isinstance(value, Histogram):
            return value
        if (package := _package(self._given)) in ("wandb", "trackio"):
            return sys.modules[package].Histogram(np_histogram=(value.counts, value.edges))
        return value._asdict()


class _WithLogMetrics(_Given):
    """``sink.log_metrics(values, step=step)``: loggers of Lightning, MLflow's module. They take numbers only."""

    def take(self, step: int, values: dict[str, Any]) -> None:
        """Call its ``log_metrics``."""
        numbers = {name: value for name, value in values.items() if isinstance(value, (bool, int, float))}
        if numbers:
            self._log(numbers, step)

    def _log(self, numbers: dict[str, Any], step: int) -> None:
        self._given.log_metrics(numbers, step=step)


class _Mlflow(_WithLogMetrics):
    """The module mlflow: has an active run for each thread, and begins another where there is none."""

    def __init__(self, given: Any) -> None:
        super().__init__(given)
        self._run = given.active_run()

    def _log(self, numbers: dict[str, Any], step: int) -> None:
        self._run = self._run or self._given.active_run()
        if self._run is None:
            raise ArgumentError(
                "the module mlflow", "no run of it was active when the log was made", "call mlflow.start_run() before"
            )
        self._given.log_metrics(numbers, step=step, run_id=self._run.info.run_id)


class _WithAddScalar(_Given):
    """``sink.add_scalar(name, value, step)``: writers of TensorBoard."""

    def take(self, step: int, values: dict[str, Any]) -> None:
        """Call its ``add_scalar`` for each number, and its ``add_histogram_raw``, if it has one."""
        for name, value in values.items():
            if isinstance(value, (bool, int, float)):
                self._given.add_scalar(name, value, step)
            elif isinstance(value, Histogram) and hasattr(self._given, "add_histogram_raw"):
                centers = [(low + high) / 2 for low, high in zip(value.edges, value.edges[1:], strict=False)]
                self._given.add_histogram_raw(
                    name,
                    min=value.edges[0],
                    max=value.edges[-1],
                    num=sum(value.counts),
                    sum=sum(n * x for n, x in zip(value.counts, centers, strict=True)),
                    sum_squares=sum(n * x * x for n, x in zip(value.counts, centers, strict=True)),
                    bucket_limits=value.edges[1:],
                    bucket_counts=value.counts,
                    global_step=step,
                )


def _package(given: Any) -> str:
    """Return the name of the package that a module, or an object's class, is of."""
    return (given.__name__ if isinstance(given, ModuleType) else type(given).__module__).split(".")[0]


_INTERFACES: tuple[tuple[str, Callable[[Any], Sink]], ...] = (
    ("log_metrics", _WithLogMetrics),
    ("add_scalar", _WithAddScalar),
    ("log", _WithLog),
    ("__call__", _Callable),
)


def sink_for(given: Any, rank_suffix: Callable[[], str]) -> Sink:
    """Return the sink that an argument of ``MetricLog`` stands for.

    Raises
    ------
    ArgumentError
        For what has none of the interfaces.
    """
    if isinstance(given, (str, os.PathLike)):
        from tensorferry._metrics.files import file_sink

        return file_sink(os.fspath(given), rank_suffix)
    if isinstance(given, ModuleType) and given.__name__ == "mlflow":
        return _Mlflow(given)
    if not isinstance(given, (type, logging.Logger)):
        for name, adapt in _INTERFACES:
            if callable(getattr(given, name, None)):
                return adapt(given)
    raise ArgumentError(
        f"a sink of type {type(given).__name__}" if not isinstance(given, type) else f"the class {given.__name__}",
        "it cannot be handed metrics",
        "pass a function of (step, values), an object with log, log_metrics or add_scalar, or a path that ends in "
        ".jsonl or .csv",
    )
