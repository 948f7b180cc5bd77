"""The decision chart, walked for one tensor: autograd, device, writing, layout, dtype, and the way back."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._dtypes import NATIVE, TORCH
from tensorferry._errors import ArgumentError, FerryError
from tensorferry._nest import is_nest
from tensorferry._plan import Plan, plan

__all__ = ["Explanation", "Step", "explain"]


@dataclass(frozen=True)
class Step:
    """One question of the chart.

    Attributes
    ----------
    question : str
        What is asked.
    answer : str
        The answer for this tensor, in a word or two.
    consequence : str
        What follows from it.
    """

    question: str
    answer: str
    consequence: str


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
        """The chart as text, one question a paragraph."""
        lines = [self.subject]
        for number, step in enumerate(self.steps, 1):
            lines.append(f"{number}. {step.question}  {step.answer}")
            lines.extend(textwrap.wrap(step.consequence, 96, initial_indent="   ", subsequent_indent="   "))
        if self.plan is not None:
            lines.append(f"=> {self.plan}")
        else:
            lines.extend(textwrap.wrap(f"=> refused: {self.refusal}", 99, subsequent_indent="   "))
        return "\n".join(lines)


def explain(x: Any, /, *, to: str = "numpy", **arguments: Any) -> Explanation:
    """Walk the decision chart for one tensor or array, with the plan at its end.

    Parameters
    ----------
    x : tensor or array
        What would be converted. For a nest, explain its leaves one by one.
    to : {"numpy", "torch"}
        The direction.
    **arguments
        Those of :func:`to_numpy` or :func:`from_numpy`.

    Returns
    -------
    Explanation
        A refused conversion is explained too, with the error's message.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> print(str(ferry.explain(np.arange(3.0)[::-1], to="torch")).splitlines()[-1])
    => copy: float64 (3,), 1 copy, 24 bytes moved: torch has no negative strides
    """
    if is_nest(x):
        raise ArgumentError(
            f"explain() of a {type(x).__name__}", "the chart is about one tensor", "explain a leaf, or print plan(x)"
        )
    made, refusal = _try_plan(x, to, arguments)
    walk = _from_tensor if _torch.is_tensor(x) else _from_array
    return Explanation(f"{_subject(x)}, to {to}", tuple(walk(x, to, arguments, made)), made, refusal)


def _try_plan(x: Any, to: str, arguments: dict[str, Any]) -> tuple[Plan | None, str]:
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


def _from_tensor(x: Any, to: str, arguments: dict[str, Any], made: Plan | None) -> list[Step]:
    host = x.device.type == "cpu"
    if x.requires_grad:
        graph = Step(
            "Part of an autograd graph?",
            "yes",
            "Reading is fine: the array is detached and read-only, so no gradient can be damaged.",
        )
    else:
        graph = Step(
            "Part of an autograd graph?",
            "no",
            "It may still have been saved for a backward pass, so the array is read-only all the same.",
        )
    device = Step(
        "In host memory?",
        "yes" if host else f"no, on {x.device}",
        "No device has to be waited for."
        if host
        else "The values are copied to the host through torch; the call waits for the device.",
    )
    return [graph, device, _change(arguments), _layout(x, arguments, made), _dtype(x, made), _back(to, made)]


def _change(arguments: dict[str, Any]) -> Step:
    copy = arguments.get("copy")
    question = "Will you change the result?"
    if arguments.get("out") is not None:
        return Step(question, "it is your own array", "The destination is filled and returned.")
    answers: dict[Any, Step] = {
        True: Step(question, "yes (copy=True)", "A private, writable copy is made."),
        False: Step(question, "no (copy=False)", "Memory is shared, or an error says why it cannot be."),
        "lazy": Step(
            question,
            'no, but others may (copy="lazy")',
            "The values of now are kept; memory is copied only when someone writes to the tensor.",
        ),
    }
    default = Step(
        question,
        "no (copy=None)",
        "Memory is shared where possible and read-only; pass copy=True to write, or edit in place with writable().",
    )
    return answers.get(copy, default)


def _layout(x: Any, arguments: dict[str, Any], made: Plan | None) -> Step:
    question = "Is the layout one that the result can have?"
    order = arguments.get("order", "K")
    if made is None:
        return Step(question, "it is not converted", "See the refusal below.")
    contiguous = _is_contiguous(x)
    kind = "contiguous" if contiguous else "strided"
    if made.shares_memory:
        return Step(question, f"yes, {kind}", "Strides are passed on as they are; nothing is packed.")
    if order in ("C", "F") and "memory order" in made.reason:
        return Step(question, f'no, order="{order}" was asked for', "One pass packs the elements in that order.")
    return Step(
        question, f"{kind}, and copied anyway", "The copy keeps the order of the axes unless order= says otherwise."
    )


def _is_contiguous(x: Any) -> bool:
    check: Callable[[], bool] | None = getattr(x, "is_contiguous", None)
    if check is not None:
        return bool(check())
    return bool(np.asarray(x).flags.c_contiguous)


def _dtype(x: Any, made: Plan | None) -> Step:
    question = "Does the dtype exist on the other side?"
    if made is None:
        return Step(question, "it is not converted", "See the refusal below.")
    own = _torch.dtype_name(x) if _torch.is_tensor(x) else str(getattr(x, "dtype", ""))
    if own != made.dtype:
        return Step(
            question,
            f"{own} becomes {made.dtype}",
            _dtype_note(own) or "Values are cast in the same pass as the copy, if there is one.",
        )
    if made.dtype in NATIVE and not NATIVE[made.dtype]["numpy_native"]:
        return Step(
            question,
            f"through ml_dtypes: {made.dtype}",
            f'Its arithmetic surprises; dtype="numpy" gives {NATIVE[made.dtype]["native"]}, which holds every value.',
        )
    return Step(question, f"yes: {made.dtype}", "Values and bits stay as they are.")


def _dtype_note(own: str) -> str:
    entry = TORCH.get(own)
    return f"{entry.note[0].upper()}{entry.note[1:]}." if entry is not None and entry.note else ""


def _back(to: str, made: Plan | None) -> Step:
    question = "And back again?"
    if made is None:
        return Step(question, "no", "Follow the remedy first.")
    if to == "torch":
        return Step(question, "to_numpy(result)", "A view of the tensor, read-only.")
    if made.shares_memory:
        return Step(question, "from_numpy(result)", "An alias of the tensor: same memory, same version counter.")
    return Step(question, "from_numpy(result)", "A tensor over the copy; the original does not see its changes.")


def _from_array(x: Any, to: str, arguments: dict[str, Any], made: Plan | None) -> list[Step]:
    graph = Step(
        "Part of an autograd graph?",
        "no",
        "Arrays are not; torch cannot see later writes to this one, so use copy=True if a graph will use the result.",
    )
    device = Step("In host memory?", "yes", "No device has to be waited for.")
    return [graph, device, _change(arguments), _layout(x, arguments, made), _dtype(x, made), _back(to, made)]
