"""The classes that the functions of tensorferry return, for annotations and ``isinstance``."""

from tensorferry._convert.dlpack import Producer
from tensorferry._inspect.description import Description, Pitch
from tensorferry._inspect.description_nest import NestDescription
from tensorferry._memory.pool import PoolStats
from tensorferry._plan.explain import Explanation, Step
from tensorferry._plan.plan import Plan

__all__ = ["Description", "Explanation", "NestDescription", "Pitch", "Plan", "PoolStats", "Producer", "Step"]
