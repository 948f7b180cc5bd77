"""The plan of a copy from a CUDA device, by the choice that the copy itself is made by."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from tensorferry._convert.take import Taken
from tensorferry._device.route import choose_route
from tensorferry._dtypes import NATIVE
from tensorferry._native import core
from tensorferry._plan.plan import Plan

if TYPE_CHECKING:
    from tensorferry._device.route import Route

__all__ = ["after_enqueuing", "plan_of_arrival", "plan_of_capture"]

_SNAPSHOT_IF_ROOM = "take a snapshot on the device if there is room"

_ARRIVES = {
    "pinned": "copy over the link into pinned memory",
    "destination": "copy over the link into the destination",
    "ordinary": "copy over the link into ordinary memory, in pieces through pinned memory",
}


def plan_of_arrival(
    taken: Taken, decision: core.Decision, out: Any, pinned: Any, *, host_waits: bool = True, snapshot: str = "never"
) -> Plan:
    on_device, source = taken.on_device, taken.source
    assert on_device is not None
    assert source is not None
    fits = out is not None and not (decision.checks_values or source.conjugated or source.negated)
    route = choose_route(on_device, core.Source.from_array(out) if fits else None, pinned, host_waits=host_waits)
    may_snapshot = snapshot != "never" and not on_device.packs and route.arrives != "ordinary"
    copied_after = decision.path == "copy" and route.arrives != "destination"
    steps = [f"read {source.summary()} on {on_device.name}"]
    if on_device.packs:
        steps.append("pack it on the device, by its own library")
    if may_snapshot:
        steps.append(_SNAPSHOT_IF_ROOM)
    steps.append(_step_over_the_link(route))
    waits = host_waits or on_device.must_wait or route.through_ring
    steps.append(f"wait for {on_device.name}" if waits else f"let result() wait for {on_device.name}")
    if copied_after:
        steps.append(f"write {decision.value_dtype} to {'the destination' if out is not None else 'new memory'}")
        if decision.checks_values:
            steps.append("check that every value survived")
    over_the_link = 1 + int(on_device.packs) + int(route.through_ring)
    because = " and ".join(decision.causes)
    return Plan(
        path=("pack, " if on_device.packs else "") + ("ring" if route.through_ring else "dma"),
        reason=f"the tensor is on {on_device.name}" + (f"; {because}" if copied_after and because else ""),
        steps=tuple(steps),
        nbytes_moved=on_device.nbytes * over_the_link + decision.nbytes_moved * copied_after,
        copies=over_the_link + int(copied_after),
        waits=("the device",) if waits else (),
        shares_memory=False,
        writable=bool(decision.writable),
        dtype=decision.result_dtype,
        shape=tuple(decision.shape),
        strides=tuple(out.strides) if out is not None else tuple(decision.strides),
    )


def plan_of_capture(taken: Taken, decision: core.Decision, out: Any) -> Plan:
    """Return the plan of a copy that becomes part of a graph: what each replay does."""
    on_device, source = taken.on_device, taken.source
    assert on_device is not None
    assert source is not None
    return Plan(
        path="graph",
        reason=f"the stream of the tensor on {on_device.name} is being captured",
        steps=(
            f"read {source.summary()} on {on_device.name}, at each replay",
            "copy over the link into the destination, in the capturing stream",
        ),
        nbytes_moved=math.prod(decision.shape) * int(NATIVE[decision.result_dtype]["itemsize"]),
        copies=1,
        waits=(),
        shares_memory=False,
        writable=bool(decision.writable),
        dtype=decision.result_dtype,
        shape=tuple(decision.shape),
        strides=() if out is None else tuple(out.strides),
    )


def after_enqueuing(made: Plan, nbytes: int, *, snapshot: bool) -> Plan:
    """Return the plan as it turned out: was there room for the snapshot of so many bytes?"""
    if _SNAPSHOT_IF_ROOM not in made.steps:
        return made
    at = made.steps.index(_SNAPSHOT_IF_ROOM)
    taken = ("take a snapshot on the device",) if snapshot else ()
    return dataclasses.replace(
        made,
        steps=(*made.steps[:at], *taken, *made.steps[at + 1 :]),
        copies=made.copies + len(taken),
        nbytes_moved=made.nbytes_moved + nbytes * len(taken),
    )


def _step_over_the_link(route: Route) -> str:
    if route.arrives == "destination" and route.through_ring:
        return "copy over the link into the destination, in pieces through pinned memory"
    return _ARRIVES[route.arrives]
