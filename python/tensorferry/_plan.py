"""What a conversion will do: decided by the code that then does it, told without doing it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensorferry import _from_numpy, _to_numpy, _torch, _torch_make
from tensorferry._dtypes import NATIVE
from tensorferry._errors import ArgumentError
from tensorferry._native import core
from tensorferry._nest import is_nest, labelled_leaves, map_leaves
from tensorferry._options import FromNumpyOptions, ToNumpyOptions, choose
from tensorferry._take import Taken, is_array_like, take

__all__ = ["Plan", "plan"]


@dataclass(frozen=True)
class Plan:
    """What a conversion does, or a nest of conversions together.

    Attributes
    ----------
    path : str
        "same object", "view", "alias", "lazy", "copy", "fallback" (through torch, from another device), or "nest".
    reason : str
        Why this path was taken.
    steps : tuple of str
        What happens, in order.
    nbytes_moved : int
        Bytes written by all copies.
    copies : int
        How many times the values are copied.
    waits : tuple of str
        What the host waits for; empty when it waits for nothing.
    shares_memory : bool
        Does the result share memory with the source? For a nest: do all of them?
    writable : bool
        May the result be written to? For a nest: all of them?
    dtype : str
        Name of the result's dtype; "" for a nest.
    shape : tuple of int
        Shape of the result; () for a nest.
    strides : tuple of int
        Strides of the result in bytes; () for a nest.
    parts : mapping of str to Plan
        For a nest, the plan of each leaf by its place in the nest.
    """

    path: str
    reason: str
    steps: tuple[str, ...]
    nbytes_moved: int
    copies: int
    waits: tuple[str, ...]
    shares_memory: bool
    writable: bool
    dtype: str = ""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    parts: Mapping[str, Plan] = field(default_factory=dict)

    def __str__(self) -> str:
        """One line: the path, what it costs and why."""
        cost = f"{self.copies} copies, {self.nbytes_moved:,} bytes moved" if self.copies else "nothing moved"
        waits = f", waits for {' and '.join(self.waits)}" if self.waits else ""
        what = f" {self.dtype} {self.shape}" if self.path != "nest" else f" of {len(self.parts)} leaves"
        return f"{self.path}:{what}, {cost}{waits}: {self.reason}"


_Planner = Callable[[Any, Any, bool], Plan]


def plan(x: Any, /, *, to: str = "numpy", **arguments: Any) -> Plan:
    """Tell what ``to_numpy(x, **arguments)`` or ``from_numpy(x, **arguments)`` would do now, without doing it.

    Parameters
    ----------
    x : tensor, array or nest
        What would be converted.
    to : {"numpy", "torch"}
        The direction.
    **arguments
        Those of :func:`to_numpy` or :func:`from_numpy`.

    Returns
    -------
    Plan
        For a nest, the sum, with each leaf under ``parts``.

    Raises
    ------
    FerryError
        What the conversion itself would raise.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> ferry.plan(np.arange(6.0), copy=True).nbytes_moved
    48
    """
    choose("to", to, ("numpy", "torch"))
    out = arguments.pop("out", None)
    plan_one = _numpy_planner(arguments, out) if to == "numpy" else _torch_planner(arguments, out)
    if not is_nest(x):
        return plan_one(x, out, False)

    def leaf(node: Any, destination: Any = None) -> _Leaf:
        return _Leaf(plan_one(node, destination, True) if is_array_like(node) else None)

    planned = map_leaves(leaf, x) if out is None else map_leaves(leaf, x, out)
    return _sum_up(planned)


class _Leaf:
    """Stands for a leaf while its place in the nest is looked up."""

    def __init__(self, plan: Plan | None) -> None:
        self.plan = plan


def _sum_up(planned: Any) -> Plan:
    parts = {path: leaf.plan for path, leaf in labelled_leaves(planned) if leaf.plan is not None}
    distinct = list({id(part): part for part in parts.values()}.values())  # the same tensor twice converts once
    return Plan(
        path="nest",
        reason=f"{len(distinct)} distinct tensors, each by its own plan",
        steps=tuple(f"{path}: {part.path}" for path, part in parts.items()),
        nbytes_moved=sum(part.nbytes_moved for part in distinct),
        copies=sum(part.copies for part in distinct),
        waits=tuple(dict.fromkeys(wait for part in distinct for wait in part.waits)),
        shares_memory=all(part.shares_memory for part in distinct),
        writable=all(part.writable for part in distinct),
        parts=parts,
    )


def _numpy_planner(arguments: dict[str, Any], out: Any) -> _Planner:
    defaults = {"copy": None, "dtype": None, "casting": "same_kind", "order": "K", "stream": None, "pinned": "auto"}
    options = ToNumpyOptions.parse(out=out, **_complete("to_numpy", defaults, arguments))

    def plan_one(x: Any, destination: Any, in_nest: bool) -> Plan:
        prepared = _to_numpy.prepare(take(x, move=False), options, destination, in_nest=in_nest)
        if prepared.decision is None:
            return _plan_of_array(prepared, options)
        return _plan_of(prepared.taken, prepared.decision, destination)

    return plan_one


def _torch_planner(arguments: dict[str, Any], out: Any) -> _Planner:
    if out is not None:
        raise ArgumentError('out= with to="torch"', "from_numpy has no such argument", "leave it out")
    defaults = {
        "device": None,
        "dtype": None,
        "casting": "same_kind",
        "copy": None,
        "readonly": "copy",
        "requires_grad": False,
    }
    options = FromNumpyOptions.parse(**_complete("from_numpy", defaults, arguments))
    _torch.require('plan(..., to="torch")')

    def plan_one(x: Any, destination: Any, in_nest: bool) -> Plan:
        if _torch.is_tensor(x):
            return _plan_of_tensor(_torch_make.adjusted(x, options))
        prepared = _from_numpy.prepare(x, options, in_nest=in_nest)
        if prepared.alias is not None:
            return _plan_of_alias(prepared.alias)
        assert prepared.decision is not None
        made = _plan_of(prepared.taken, prepared.decision, destination)
        return _moved_to(made, options.device) if options.device is not None else made

    return plan_one


def _complete(function: str, defaults: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    unknown = set(given) - set(defaults)
    if unknown:
        raise ArgumentError(
            f"plan(..., {', '.join(sorted(unknown))}=)",
            f"{function} has no such argument",
            f"choose among {', '.join(defaults)}",
        )
    return {**defaults, **given}


def _plan_of(taken: Taken, decision: core.Decision, out: Any) -> Plan:
    copied = decision.path == "copy"
    steps = [f"read {taken.source.summary()}"] if taken.source is not None else []
    if taken.moved_from is not None:
        steps.append(f"copy from {taken.moved_from} to the host through torch, blocking")
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
    reason = " and ".join(decision.causes) if copied else "nothing about it has to change"
    if moved:
        reason = f"the tensor is on {taken.moved_from}" + (f", and {reason}" if copied else "")
    writable = bool(decision.writable)
    return Plan(
        path="fallback" if moved else decision.path,
        reason=reason,
        steps=tuple(steps),
        nbytes_moved=decision.nbytes_moved * copied + nbytes * moved,
        copies=int(copied) + int(moved),
        waits=("the device",) if moved else (),
        shares_memory=decision.shares_memory and not moved,
        writable=writable,
        dtype=decision.result_dtype,
        shape=tuple(decision.shape),
        strides=tuple(out.strides) if out is not None else tuple(decision.strides),
    )


def _nbytes(taken: Taken) -> int:
    source = taken.source
    return math.prod(source.shape) * int(NATIVE[source.dtype]["itemsize"]) if source is not None else 0


def _plan_of_array(prepared: _to_numpy.Prepared, options: ToNumpyOptions) -> Plan:
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


def _plan_of_alias(alias: _torch_make.Alias) -> Plan:
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


def _plan_of_tensor(tensor: Any) -> Plan:
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
        shape=tuple(tensor.shape),
        strides=tuple(step * tensor.element_size() for step in tensor.stride()),
    )


def _moved_to(made: Plan, device: Any) -> Plan:
    """Add the copy to another device that torch makes last."""
    if str(device).partition(":")[0] == "cpu":
        return made
    itemsize = int(NATIVE[made.dtype]["itemsize"])
    return dataclasses.replace(
        made,
        path="fallback",
        steps=(*made.steps, f"copy to {device} through torch, blocking"),
        nbytes_moved=made.nbytes_moved + math.prod(made.shape) * itemsize,
        copies=made.copies + 1,
        waits=("the device",),
        shares_memory=False,
    )
