"""The decision chart, walked for one tensor: autograd, device, writing, layout, dtype, and the way back."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._errors import ArgumentError, FerryError
from tensorferry._nest import is_nest
from tensorferry._plan.explain_steps import Case, Step, walk
from tensorferry._plan.plan import Plan
from tensorferry._plan.planning import plan

__all__ = ["Explanation", "Step", "explain"]

_COLUMNS = 99


@dataclass(frozen=True)
class Explanation:
    """Why a conversion goes the way it goes; ``str()`` is the chart, walked.

    Attributes
    ----------
    subject : str
        What was asked about.
    steps : tuple of Step
        The questions, in order.
    plan : Plan or None
        What the conversion will do; None when it is refused.
    refusal : str
        The error message when it is refused, else "".
    """

    subject: str
    steps: tuple[Step, ...]
    plan: Plan | None
    refusal: str = ""

    def __str__(self) -> str:
        """The chart as text, one question a paragraph, in lines of at most 99 columns."""
        lines = _wrapped(self.subject)
        for number, step in enumerate(self.steps, 1):
            lines += _wrapped(f"{number}. {step.question}  {step.answer}")
            lines += _wrapped(step.consequence, "   ")
        end = f"refused: {self.refusal}" if self.plan is None else str(self.plan)
        return "\n".join(lines + _wrapped(f"=> {end}"))


def _wrapped(text: str, indent: str = "") -> list[str]:
    width = _COLUMNS if not indent else 96
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent="   ", break_on_hyphens=False)


def explain(x: Any, /, *, to: str = "numpy", **arguments: Any) -> Explanation:
    """See :func:`tensorferry.explain`."""
    if is_nest(x):
        raise ArgumentError(
            f"explain() of a {type(x).__name__}", "the chart is about one tensor", "explain a leaf, or print plan(x)"
        )
    made, refusal = _try_plan(x, to, arguments)
    back = _try_plan(x, "numpy", {})[0] if to == "torch" and _torch.is_tensor(x) else None
    return Explanation(f"{_subject(x)}, to {to}", walk(Case(x, to, arguments, made, back)), made, refusal)


def _try_plan(x: Any, to: str, arguments: Mapping[str, Any]) -> tuple[Plan | None, str]:
    try:
        return plan(x, to=to, **arguments), ""
    except ArgumentError:
        raise
    except FerryError as error:
        return None, str(error)


def _subject(x: Any) -> str:
    if _torch.is_tensor(x):
        shape = "nested" if x.is_nested else str(tuple(x.shape))
        return f"{type(x).__name__} {shape} {_torch.dtype_name(x)} on {x.device}"
    if isinstance(x, np.ndarray):
        return f"{type(x).__name__} {x.shape} {x.dtype}"
    return type(x).__name__
