"""The public function that watches a model; loads its implementation when called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorferry._api.metrics import MetricLog
    from tensorferry.types import Watch

__all__ = ["watch"]


def watch(model: Any, log: MetricLog, *, every: int = 100, gradients: bool = True, weights: bool = True) -> Watch:
    """Log statistics of a model's gradients and weights from now on.

    They are those of :meth:`MetricLog.log_stats`, named ``gradients/<parameter>/...`` and ``weights/<parameter>/...``,
    and belong to the step that is logged next after a backward pass. They are taken when a gradient is complete, as the
    optimiser is about to see it, and computed on its device.

    Parameters
    ----------
    model : torch.nn.Module
        Its parameters that require grad are watched.
    log : MetricLog
        Where they go.
    every : int
        Backward passes from one time to the next, of each parameter.
    gradients, weights : bool
        What to watch.

    Returns
    -------
    Watch
        Whose ``close()`` ends it.

    Raises
    ------
    ArgumentError
        For what is no module, and for no number of passes.

    Examples
    --------
    >>> import torch, tensorferry as ferry
    >>> model, steps = torch.nn.Linear(2, 1), []
    >>> log = ferry.MetricLog(lambda step, values: steps.append(values))
    >>> watching = ferry.metrics.watch(model, log, every=1)
    >>> model(torch.ones(1, 2)).sum().backward()
    >>> log.log({"loss": 1.0})
    >>> log.close()
    >>> steps[0]["gradients/bias/mean"]
    1.0
    """
    from tensorferry._metrics.watching import watch as implementation

    return implementation(model, log, every, gradients, weights)
