"""What a conversion will do: decided by the code that then does it, told without doing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorferry import _torch
from tensorferry._convert import from_numpy as _from_numpy
from tensorferry._convert.destination import require_separate
from tensorferry._convert.options import FromNumpyOptions, ToNumpyOptions, choose
from tensorferry._convert.prepare import Prepared, prepare
from tensorferry._convert.take import is_array_like, take
from tensorferry._errors import ArgumentError
from tensorferry._native import core
from tensorferry._nest import is_nest, visit_leaves
from tensorferry._plan import make as plan_make
from tensorferry._plan.arrival import gathered, plan_of_arrival, plan_of_capture
from tensorferry._plan.plan import Plan
from tensorferry._torch import make as torch_make

if TYPE_CHECKING:
    from tensorferry._device.reception import Reception

__all__ = ["Plan", "plan", "planner_of_transfer", "sum_up"]

_Planner = Callable[[Any, Any, bool], Plan]


def plan(x: Any, /, *, to: str = "numpy", **arguments: Any) -> Plan:
    """See :func:`tensorferry.plan`."""
    choose("to", to, ("numpy", "torch"))
    out = arguments.pop("out", None)
    plan_one = _numpy_planner(arguments, out) if to == "numpy" else _torch_planner(arguments, out)
    if not is_nest(x):
        return plan_one(x, out, False)

    pairs: list[tuple[Any, core.Source | None]] = []

    def leaf(node: Any, destination: Any = None) -> Plan | None:
        if not is_array_like(node):
            return None
        if destination is not None:
            pairs.append((destination, take(node, move=False, read=False).source))
        return plan_one(node, destination, True)

    planned = visit_leaves(leaf, x) if out is None else visit_leaves(leaf, x, out)
    require_separate(pairs)
    return sum_up(planned, in_nest=True)


def sum_up(planned: list[tuple[str, Plan | None]], in_nest: bool) -> Plan:
    """Return the one plan, or that of a nest, from the plans of its leaves by their places."""
    if not in_nest:
        made = planned[0][1]
        assert made is not None
        return made
    planned, gathers = gathered(planned)
    parts = {path: part for path, part in planned if part is not None}
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
        launches=sum(part.launches for part in distinct) + gathers,
        parts=parts,
    )


def _numpy_planner(arguments: dict[str, Any], out: Any) -> _Planner:
    defaults = {"copy": None, "dtype": None, "casting": "same_kind", "order": "K", "stream": None, "pinned": "auto"}
    options = ToNumpyOptions.parse(out=out, **_complete("to_numpy", defaults, arguments))

    def plan_one(x: Any, destination: Any, in_nest: bool) -> Plan:
        prepared = prepare(take(x, move=False, read=False), options, destination, in_nest=in_nest)
        return _plan_prepared(prepared, options, destination)

    return plan_one


def _plan_prepared(prepared: Prepared, options: ToNumpyOptions, destination: Any) -> Plan:
    if prepared.decision is None:
        return plan_make.plan_of_array(prepared, options)
    if prepared.taken.on_device is not None:
        return plan_of_arrival(prepared.taken, prepared.decision, destination, options.pinned)
    return plan_make.plan_of(prepared.taken, prepared.decision, destination)


def planner_of_transfer(options: ToNumpyOptions, reception: Reception) -> Callable[[Prepared, Any], Plan]:
    """Return what plans each leaf of a call that does not wait."""

    def plan_one(prepared: Prepared, destination: Any) -> Plan:
        if prepared.decision is None or prepared.taken.on_device is None:
            return _plan_prepared(prepared, options, destination)
        if reception.graph is not None:
            return plan_of_capture(prepared.taken, prepared.decision, destination)
        return plan_of_arrival(
            prepared.taken,
            prepared.decision,
            destination,
            options.pinned,
            host_waits=reception.host_waits,
            snapshot=reception.snapshot,
        )

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
            return plan_make.plan_of_tensor(torch_make.adjusted(x, options))
        prepared = _from_numpy.prepare(x, options, in_nest=in_nest)
        torch_make.require_finishable(prepared.result_dtype, options)
        if prepared.alias is not None:
            made = plan_make.plan_of_alias(prepared.alias)
        else:
            assert prepared.decision is not None
            if prepared.taken.on_device is None:
                made = plan_make.plan_of(prepared.taken, prepared.decision, destination)
            else:
                made = plan_of_arrival(prepared.taken, prepared.decision, destination, "auto")
        return plan_make.moved_to(made, options.device, prepared.taken) if options.device is not None else made

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
