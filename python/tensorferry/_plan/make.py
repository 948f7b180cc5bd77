"""Plans out of decisions: one function for each way a conversion can go."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert.options import ToNumpyOptions
from tensorferry._convert.take import Taken
from tensorferry._device.driven import drives_torch
from tensorferry._dtypes import NATIVE
from tensorferry._native import core
from tensorferry._plan.departure import plan_of_departure
from tensorferry._plan.plan import Plan
from tensorferry._torch import fallback
from tensorferry._torch import make as torch_make

if TYPE_CHECKING:
    from tensorferry._convert.prepare import Prepared

__all__ = ["moved_to", "plan_of", "plan_of_alias", "plan_of_array", "plan_of_tensor"]


def plan_of(taken: Taken, decision: core.Decision, out: Any) -> Plan:
    copied = decision.path == "copy"
    copied_on_read = taken.tensor is not None and taken.tensor.copied_on_read
    steps = [f"read {taken.source.summary()}"] if taken.source is not None else []
    if taken.moved_from is not None:
        steps.append(f"copy from {taken.moved_from} to the host through torch, blocking")
    if copied_on_read:
        steps.append("torch copies the tensor out of the memory that a lazy snapshot keeps")
    if copied:
        steps.append(f"write {decision.value_dtype} to {'the destination' if out is not None else 'new memory'}")
        if decision.checks_values:
            steps.append("check that every value survived")
    elif decision.path == "lazy":
        steps.append("share memory copy-on-write: a later write to the tensor goes to new memory")
    else:
        steps.append("share memory")
    nbytes = _nbytes(taken)
    moved = taken.moved_from is not None
    early = int(moved) + int(copied_on_read)  # copies before ours
    reason = _reason(taken, decision)
    if taken.moved_from is not None:
        moved_because = f"the tensor is on {taken.moved_from}, and {fallback.reason(taken.moved_from)}"
        reason = f"{moved_because}; {reason}" if copied else moved_because
    return Plan(
        path="fallback" if moved else decision.path,
        reason=reason,
        steps=tuple(steps),
        nbytes_moved=decision.nbytes_moved * copied + nbytes * early,
        copies=int(copied) + early,
        waits=("the device",) if moved else (),
        shares_memory=decision.shares_memory and not moved,
        writable=bool(decision.writable),
        dtype=decision.result_dtype,
        shape=tuple(decision.shape),
        strides=tuple(out.strides) if out is not None else tuple(decision.strides),
    )


def _reason(taken: Taken, decision: core.Decision) -> str:
    if decision.path == "copy":
        return " and ".join(decision.causes)
    if decision.path == "lazy":
        return "the present values are kept, and copied only if someone writes to the tensor"
    if taken.source is not None and decision.result_dtype != decision.value_dtype:
        return f"the bits of {taken.source.dtype} are read as {decision.result_dtype}"
    return "nothing about it has to change"


def _nbytes(taken: Taken) -> int:
    source = taken.source
    return math.prod(source.shape) * int(NATIVE[source.dtype]["itemsize"]) if source is not None else 0


def plan_of_array(prepared: Prepared, options: ToNumpyOptions) -> Plan:
    x = prepared.taken.array
    assert x is not None
    copied = not prepared.kept
    return Plan(
        path="copy" if copied else "same object",
        reason="a private copy or another memory order was asked for" if copied else "it is an array already",
        steps=("copy with NumPy",) if copied else ("return the array itself",),
        nbytes_moved=x.nbytes if copied else 0,
        copies=int(copied),
        waits=(),
        shares_memory=not copied,
        writable=options.copy == "always" if copied else bool(x.flags.writeable),
        dtype=x.dtype.name,
        shape=x.shape,
        strides=np.empty_like(x, order=options.order).strides if copied else x.strides,  # type: ignore[call-overload]
    )


def plan_of_alias(alias: torch_make.Alias) -> Plan:
    itemsize = alias.dtype.itemsize
    return Plan(
        path="alias",
        reason="the array is a view that tensorferry made of a tensor that is still alive",
        steps=("detach the tensor", "describe the array's layout in its storage"),
        nbytes_moved=0,
        copies=0,
        waits=(),
        shares_memory=True,
        writable=True,
        dtype=str(alias.dtype).removeprefix("torch."),
        shape=alias.shape,
        strides=tuple(step * itemsize for step in alias.strides),
    )


def plan_of_tensor(tensor: Any) -> Plan:
    strided = str(tensor.layout) == "torch.strided" and not tensor.is_nested
    return Plan(
        path="same object",
        reason="it is a tensor already",
        steps=("return the tensor itself",),
        nbytes_moved=0,
        copies=0,
        waits=(),
        shares_memory=True,
        writable=True,
        dtype=_torch.dtype_name(tensor),
        shape=() if tensor.is_nested else tuple(tensor.shape),
        strides=tuple(step * tensor.element_size() for step in tensor.stride()) if strided else (),
    )


def moved_to(made: Plan, device: Any, taken: Taken) -> Plan:
    """Add the copy to another device."""
    import torch

    kind = torch.device(device).type
    if kind == "cpu":
        return made
    if drives_torch(kind):
        return plan_of_departure(made, torch.device(device), taken)
    itemsize = int(NATIVE[made.dtype]["itemsize"])
    in_elements = tuple(step // itemsize for step in made.strides)
    return dataclasses.replace(
        made,
        path="fallback",
        reason=f"{made.reason}; {fallback.reason(device)}" if made.copies else fallback.reason(device),
        steps=(*made.steps, f"copy to {device} through torch, blocking"),
        nbytes_moved=made.nbytes_moved + math.prod(made.shape) * itemsize,
        copies=made.copies + 1,
        waits=("the device",),
        shares_memory=False,
        strides=tuple(step * itemsize for step in fallback.copied_strides(made.shape, in_elements)),
    )
