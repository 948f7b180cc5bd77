"""The classes that the functions of tensorferry return, for annotations and ``isinstance``."""

from tensorferry._convert.dlpack import Producer
from tensorferry._device.link_figures import LinkFigures
from tensorferry._inspect.description import Description, Pitch
from tensorferry._inspect.description_nest import NestDescription
from tensorferry._io.inspect import DTypeSum, Inspection, StoredTensor
from tensorferry._io.report import SaveReport
from tensorferry._io.save_handle import SaveHandle
from tensorferry._io.verify import Verification
from tensorferry._memory.pinned_stats import PinnedPoolStats
from tensorferry._memory.pinning import Pinned
from tensorferry._memory.pool import PoolStats
from tensorferry._metrics.histogram import Histogram
from tensorferry._metrics.latest import MetricStep
from tensorferry._metrics.metric_stats import MetricStats
from tensorferry._metrics.watching import Watch
from tensorferry._plan.explain import Explanation, Step
from tensorferry._plan.plan import Plan
from tensorferry._transfer.graph_slot import GraphSlot
from tensorferry._transfer.stats import TransferStats
from tensorferry._transfer.transfer import Transfer

__all__ = [
    "DTypeSum",
    "Description",
    "Explanation",
    "GraphSlot",
    "Histogram",
    "Inspection",
    "LinkFigures",
    "MetricStats",
    "MetricStep",
    "NestDescription",
    "Pinned",
    "PinnedPoolStats",
    "Pitch",
    "Plan",
    "PoolStats",
    "Producer",
    "SaveHandle",
    "SaveReport",
    "Step",
    "StoredTensor",
    "Transfer",
    "TransferStats",
    "Verification",
    "Watch",
]
