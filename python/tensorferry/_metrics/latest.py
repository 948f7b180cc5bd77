"""One step as its readers see it."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["MetricStep"]


class MetricStep(NamedTuple):
    """A step and its values.

    Attributes
    ----------
    step : int or None
        Its number; None before the first step is complete.
    values : dict of str to number
        By the names of the metrics, in the order in which they were logged.

    Examples
    --------
    >>> from tensorferry.metrics import MetricStep
    >>> MetricStep(3, {"loss": 0.5}).values["loss"]
    0.5
    """

    step: int | None
    values: dict[str, Any]
