"""Logging from code that torch compiles: one custom operator, which is called when the compiled code runs.

The operator says that it writes to a tensor, a clock that each log has: so the compiler neither drops a call nor
changes the order of two.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tensorferry._errors import ArgumentError

if TYPE_CHECKING:
    import torch

    from tensorferry._metrics.log import Log

__all__ = ["log_compiled", "make_ready"]

_logs: weakref.WeakValueDictionary[int, Log] = weakref.WeakValueDictionary()
_op: Any = None


def make_ready(log: Log) -> torch.Tensor:
    """Register the operator once, and return the clock of a log."""
    global _op
    import torch

    if _op is None:
        _op = _operator(torch)
    _logs[id(log)] = log
    return torch.zeros((), dtype=torch.int64)


def log_compiled(log: Any, metrics: Any, step: int | None) -> None:
    """Log from inside a function that is being compiled: this code is traced, and only the operator stays."""
    if log.clock is None:
        raise ArgumentError(
            "log() in compiled code, of a MetricLog that was made before torch was imported",
            "torch did not know of it when the code was compiled",
            "import torch first",
        )
    tensors: list[Any] = []
    floats: list[float] = []
    ints: list[int] = []
    layout: list[str] = []
    _collect(metrics, "", tensors, floats, ints, layout)
    _op(log.clock, tensors, floats, ints, "\n".join(layout), log.key, -1 if step is None else step)


def _collect(node: Any, name: str, tensors: list[Any], floats: list[float], ints: list[int], layout: list[str]) -> None:
    import torch

    if isinstance(node, dict):
        for key, child in node.items():
            _collect(child, f"{name}/{key}" if name else str(key), tensors, floats, ints, layout)
    elif isinstance(node, (list, tuple)):
        for i, child in enumerate(node):
            _collect(child, f"{name}/{i}" if name else str(i), tensors, floats, ints, layout)
    elif isinstance(node, torch.Tensor):
        tensors.append(node)
        layout.append("t" + name)
    elif isinstance(node, int):
        ints.append(int(node))
        layout.append(("b" if isinstance(node, bool) else "i") + name)
    else:
        floats.append(float(node))
        layout.append("f" + name)


def _operator(torch: Any) -> Any:
    def log_metrics(
        clock: torch.Tensor,
        tensors: Sequence[torch.Tensor],
        floats: Sequence[float],
        ints: Sequence[int],
        layout: str,
        log: int,
        step: int,
    ) -> None:
        clock.add_(1)
        known = _logs.get(log)
        if known is not None:
            known.log(_metrics(tensors, floats, ints, layout), None if step < 0 else step)

    # The annotations are text here, which the operator's schema is not made of.
    log_metrics.__annotations__ = {
        "clock": torch.Tensor,
        "tensors": Sequence[torch.Tensor],
        "floats": Sequence[float],
        "ints": Sequence[int],
        "layout": str,
        "log": int,
        "step": int,
        "return": None,
    }
    made = torch.library.custom_op("tensorferry::log_metrics", log_metrics, mutates_args=("clock",))
    made.register_fake(lambda clock, tensors, floats, ints, layout, log, step: None)
    return torch.ops.tensorferry.log_metrics.default


def _metrics(
    tensors: Sequence[torch.Tensor], floats: Sequence[float], ints: Sequence[int], layout: str
) -> dict[str, Any]:
    numbers = iter(ints)
    values: dict[str, Iterator[Any]] = {"t": iter(tensors), "f": iter(floats), "i": numbers, "b": map(bool, numbers)}
    return {line[1:]: next(values[line[0]]) for line in layout.split("\n") if line}
