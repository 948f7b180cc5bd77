"""The questions of the decision chart, and what the plan of one conversion answers to each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._dtypes import NATIVE, TORCH
from tensorferry._inspect.describe_producers import dlpack_device
from tensorferry._plan.plan import Plan
from tensorferry._torch import fallback

__all__ = ["Case", "Step", "walk"]


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
class Case:
    """What is explained: the conversion asked for, and its plan, or None when it is refused."""

    x: Any
    to: str
    arguments: Mapping[str, Any]
    made: Plan | None
    back: Plan | None  # of to_numpy(x), when x is a tensor and stays one

    @property
    def is_tensor(self) -> bool:
        """Is a torch tensor converted?"""
        return _torch.is_tensor(self.x)


def walk(case: Case) -> tuple[Step, ...]:
    """Return all steps, in order."""
    return (_graph(case), _device(case), _change(case), _layout(case), _dtype(case), _back(case))


def _graph(case: Case) -> Step:
    question = "Part of an autograd graph?"
    made = case.made
    answer = "yes" if case.is_tensor and case.x.requires_grad else "no"
    if made is None:
        return Step(question, answer, "See the refusal below.")
    if case.is_tensor and case.to == "torch":
        return Step(question, answer, "The tensor itself comes back, as it is.")
    if case.is_tensor:
        private = made.writable
        if answer == "yes":
            how = "private" if private else "read-only"
            return Step(
                question, answer, f"Reading is fine: the array is detached and {how}, so no gradient can be damaged."
            )
        saved = "It may still have been saved for a backward pass"
        rest = "; the array is private, so that is safe." if private else ", so the array is read-only all the same."
        return Step(question, answer, saved + rest)
    if case.to == "numpy":
        return Step(question, answer, "Arrays never are.")
    if made.path == "alias":
        return Step(
            question, answer, "Arrays are not, but this one is a view of a tensor, and the result is its alias."
        )
    if made.shares_memory:
        return Step(
            question,
            answer,
            "Arrays are not; torch cannot see later writes to this one, so use copy=True if a graph will use the "
            "result.",
        )
    return Step(question, answer, "Arrays are not, and the result has memory of its own.")


def _device(case: Case) -> Step:
    question = "In host memory?"
    name = str(case.x.device) if case.is_tensor else _producer_device(case.x)
    if name == "cpu":
        device = case.arguments.get("device")
        if device is not None and case.made is not None and case.made.path == "fallback":
            why = _sentence(fallback.reason(device))
            return Step(
                question, "yes", f"The result is copied to {device} at last; the call waits for that device. {why}"
            )
        return Step(question, "yes", "No device has to be waited for.")
    answer = f"no, on {name}"
    if case.made is None:
        return Step(question, answer, "See the refusal below.")
    if case.to == "torch":
        return Step(question, answer, "The tensor stays there.")
    if case.made.path != "fallback":
        figures = "" if case.made.link is None else f" Figures in use, {case.made.link.together}."
        return Step(question, answer, _sentence("; ".join(case.made.steps[1:])) + figures)
    how = "The values are copied to the host through torch; the call waits for the device."
    return Step(question, answer, f"{how} {_sentence(fallback.reason(name))}")


def _sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}."


def _producer_device(x: Any) -> str:
    try:
        return dlpack_device(x)[0]
    except Exception:
        return "a device that it does not tell"


def _change(case: Case) -> Step:
    question = "Will you change the result?"
    if case.arguments.get("out") is not None:
        return Step(question, "it is your own array", "The destination is filled and returned.")
    if case.made is not None and case.made.path == "same object":
        return Step(question, "it is your own object", "What was given comes back as it is; writes reach it.")
    return _change_of_tensor(question, case) if case.to == "torch" else _change_of_array(question, case)


def _change_of_array(question: str, case: Case) -> Step:
    copy = case.arguments.get("copy")
    if copy is True:
        return Step(question, "yes (copy=True)", "A private, writable copy is made.")
    if copy is False:
        return Step(question, "no (copy=False)", "Memory is shared, or an error says why it cannot be.")
    if copy == "lazy":
        lazy = case.made is not None and case.made.path == "lazy"
        how = "memory is copied only when someone writes to the tensor." if lazy else "here by a copy."
        return Step(question, 'no, but others may (copy="lazy")', f"The values of now are kept; {how}")
    in_place = ", or edit in place with writable()" if case.is_tensor else ""
    return Step(
        question,
        "no (copy=None)",
        f"Memory is shared where possible and read-only; pass copy=True to write{in_place}.",
    )


def _change_of_tensor(question: str, case: Case) -> Step:
    copy, made = case.arguments.get("copy"), case.made
    if copy is True:
        return Step(question, "yes (copy=True)", "A private tensor is made: what is written to it stays in it.")
    given = f"copy={copy}"
    if made is not None and not made.shares_memory:
        return Step(
            question, f"you may ({given})", "The tensor has memory of its own: what is written to it stays in it."
        )
    if isinstance(case.x, np.ndarray) and not case.x.flags.writeable and made is not None and made.path == "view":
        return Step(question, 'no (readonly="share")', "The memory is read-only, and torch cannot know: never write.")
    return Step(
        question,
        f"writes reach the array ({given})",
        "Tensors are writable, and a shared one writes to the array; pass copy=True for a private one.",
    )


# What a plan's reason says of a layout, in a word.
_LAYOUT_CAUSES = {
    "negative strides": "negative strides",
    "no multiples of the element size": "misaligned",
    "elements overlap": "elements overlap",
    "two elements share a byte": "two elements share a byte",
    "packs two elements": "two elements go into a byte",
}


def _layout(case: Case) -> Step:
    question = "Is the layout one that the result can have?"
    made = case.made
    if made is None:
        return Step(question, "it is not converted", "See the refusal below.")
    kind = _contiguity(case.x, made)
    if made.shares_memory:
        return Step(question, f"yes, {kind}", "Strides are passed on as they are; nothing is packed.")
    if case.arguments.get("out") is not None:
        return Step(question, "yes, the destination's", "Values are written where the destination has them.")
    order = case.arguments.get("order", "K")
    if "memory order" in made.reason:
        return Step(question, f'no, order="{order}" was asked for', "One pass packs the elements in that order.")
    for words, short in _LAYOUT_CAUSES.items():
        if words in made.reason:
            return Step(question, f"no, {short}", "One pass writes the elements to new memory.")
    return Step(
        question, f"{kind}, and copied anyway", "The copy keeps the order of the axes unless order= says otherwise."
    )


def _contiguity(x: Any, made: Plan) -> str:
    if _torch.is_tensor(x):
        contiguous = bool(x.is_contiguous()) if str(x.layout) == "torch.strided" else False
    elif isinstance(x, np.ndarray):
        contiguous = x.flags.c_contiguous
    else:
        contiguous = made.strides == _packed(made.shape, made.dtype)
    return "contiguous" if contiguous else "strided"


def _packed(shape: tuple[int, ...], dtype: str) -> tuple[int, ...]:
    itemsize = int(NATIVE[dtype]["itemsize"])
    return tuple(itemsize * math.prod(max(extent, 1) for extent in shape[i + 1 :]) for i in range(len(shape)))


def _dtype(case: Case) -> Step:
    question = "Does the dtype exist on the other side?"
    made = case.made
    if made is None:
        return Step(question, "it is not converted", "See the refusal below.")
    kept = "Values and bits" if made.shares_memory else "Values"
    unchanged = Step(question, f"yes: {made.dtype}", f"{kept} stay as they are.")
    if made.path == "same object":
        return unchanged
    own = _own_dtype(case.x) or made.dtype
    asked = case.arguments.get("dtype")
    if isinstance(asked, str) and asked == "bits" and own != made.dtype:
        return Step(question, f"{own} is read as {made.dtype}", "The bits stay as they are.")
    if own != made.dtype:
        note = _note(own) if asked is None and case.is_tensor else ""
        return Step(
            question,
            f"{own} becomes {made.dtype}",
            note or "Values are cast in the same pass as the copy, if there is one.",
        )
    if isinstance(case.x, np.ndarray) and not case.x.dtype.isnative:
        return Step(question, f"yes: {made.dtype}", "The bytes of each value are swapped in the same pass.")
    if case.to == "numpy" and made.dtype in NATIVE and not NATIVE[made.dtype]["numpy_native"]:
        return Step(
            question,
            f"through ml_dtypes: {made.dtype}",
            f'Its arithmetic surprises; dtype="numpy" gives {NATIVE[made.dtype]["native"]}, which holds every value.',
        )
    return unchanged


def _own_dtype(x: Any) -> str:
    if _torch.is_tensor(x):
        return _torch.dtype_name(x)
    return str(x.dtype.name) if isinstance(x, (np.ndarray, np.generic)) else ""


def _note(own: str) -> str:
    entry = TORCH.get(own)
    return _sentence(entry.note) if entry is not None and entry.note else ""


def _back(case: Case) -> Step:
    question = "And back again?"
    made = case.made
    if made is None:
        return Step(question, "no", "Follow the remedy first.")
    if case.to == "torch":
        return _back_to_array(question, case, made)
    answer = "from_numpy(result)"
    if case.arguments.get("out") is not None:
        return Step(question, answer, "A tensor that shares your array's memory.")
    if made.path == "same object":
        return Step(question, answer, "A tensor that shares the array's memory, where torch can.")
    if made.path == "view" and case.is_tensor and not _torch.exports_itself(case.x):
        return Step(question, answer, "An alias of the tensor: same memory, same version counter.")
    if made.dtype == "float4_e2m1fn":
        return Step(question, answer, "A private copy: torch packs two elements into a byte.")
    if made.writable:
        return Step(question, answer, "A tensor over the copy; the original does not see its changes.")
    return Step(question, answer, "A private copy, for the array is read-only; the original does not see its changes.")


def _back_to_array(question: str, case: Case, made: Plan) -> Step:
    if case.is_tensor and case.back is None:
        return Step(question, "no", "to_numpy refuses this tensor; explain(x) says why.")
    moved = made.path == "fallback" or (case.back is not None and case.back.path == "fallback")
    if moved:
        return Step(question, "to_numpy(result)", "A copy on the host, read-only.")
    shared = case.back.shares_memory if case.back is not None else NATIVE[made.dtype]["array"] == made.dtype
    what = "A view of the tensor, read-only." if shared else "A copy, read-only: an array cannot lie in this memory."
    return Step(question, "to_numpy(result)", what)
