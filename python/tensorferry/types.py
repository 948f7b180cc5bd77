"""The classes that the functions of tensorferry return, for annotations and ``isinstance``."""

from tensorferry._convert.dlpack import Producer
from tensorferry._inspect.description import Description, Pitch
from tensorferry._inspect.description_nest import NestDescription
from tensorferry._memory.pinned_stats import PinnedPoolStats
from tensorferry._memory.pinning import Pinned
from tensorferry._memory.pool import PoolStats
from tensorferry._plan.explain import Explanation, Step
from tensorferry._plan.plan import Plan
from tensorferry._transfer.graph_slot import GraphSlot
from tensorferry._transfer.stats import TransferStats
from tensorferry._transfer.transfer import Transfer

__all__ = [
    "Description",
    "Explanation",
    "GraphSlot",
    "NestDescription",
    "Pinned",
    "PinnedPoolStats",
    "Pitch",
    "Plan",
    "PoolStats",
    "Producer",
    "Step",
    "Transfer",
    "TransferStats",
]
