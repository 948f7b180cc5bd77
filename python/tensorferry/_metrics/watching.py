"""Statistics of gradients and weights, taken when a gradient is complete."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from tensorferry._errors import ArgumentError
from tensorferry._metrics.statistics import statistics
from tensorferry._torch import require

if TYPE_CHECKING:
    from tensorferry._api.metrics import MetricLog

__all__ = ["Watch", "watch"]


class Watch:
    """What ``watch`` returns: the hooks on a model's parameters."""

    def __init__(self, handles: list[Any]) -> None:
        self._handles = handles

    def close(self) -> None:
        """Take the hooks away; a second time it does nothing."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def __repr__(self) -> str:
        """How many parameters are watched."""
        return f"<Watch of {len(self._handles)} parameters>"


def watch(model: Any, log: MetricLog, every: int, gradients: bool, weights: bool) -> Watch:
    """See :func:`tensorferry.metrics.watch`."""
    torch = require("watch()")
    if not isinstance(model, torch.nn.Module):
        raise ArgumentError(f"a model of type {type(model).__name__}", "it is no torch.nn.Module", "pass the module")
    if not isinstance(every, int) or isinstance(every, bool) or every < 1:
        raise ArgumentError(f"every={every!r}", "that is no number of passes", "pass an int of at least 1")
    handles = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            hook = _Hook(name, log, every, gradients, weights)
            handles.append(parameter.register_post_accumulate_grad_hook(hook))
    return Watch(handles)


class _Hook:
    """One parameter's; keeps the log no longer than others do."""

    def __init__(self, name: str, log: MetricLog, every: int, gradients: bool, weights: bool) -> None:
        self._name, self._every = name, every
        self._log = weakref.ref(log)
        self._gradients, self._weights = gradients, weights
        self._passes = 0

    def __call__(self, parameter: Any) -> None:
        due = self._passes % self._every == 0
        self._passes += 1
        log = self._log()
        if not due or log is None:
            return
        found = {}
        if self._gradients and parameter.grad is not None:
            found[f"gradients/{self._name}"] = statistics(parameter.grad)
        if self._weights:
            found[f"weights/{self._name}"] = statistics(parameter)
        log._log.stage(found)
