"""The classes that the functions of tensorferry return, for annotations and ``isinstance``."""

from tensorferry._description import Description, Pitch
from tensorferry._description_nest import NestDescription
from tensorferry._dlpack import Producer
from tensorferry._explain import Explanation, Step
from tensorferry._plan_class import Plan

__all__ = ["Description", "Explanation", "NestDescription", "Pitch", "Plan", "Producer", "Step"]
