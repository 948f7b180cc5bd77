"""Metrics of each training step, from host and devices to where they are kept, without a wait."""

from tensorferry._api.metrics import MetricLog
from tensorferry._api.watch import watch
from tensorferry._metrics.histogram import Histogram
from tensorferry._metrics.latest import MetricStep
from tensorferry._metrics.metric_stats import MetricStats

__all__ = ["Histogram", "MetricLog", "MetricStats", "MetricStep", "watch"]
