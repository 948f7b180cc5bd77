"""The plan of a copy from a CUDA device, by the choice that the copy itself is made by."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from tensorferry._convert.take import Taken
from tensorferry._device.link import figures_in_use
from tensorferry._device.route import choose_route
from tensorferry._dtypes import NATIVE
from tensorferry._native import core
from tensorferry._plan.plan import Plan

if TYPE_CHECKING:
    from tensorferry._device.on_device import OnDevice
    from tensorferry._device.route import Route

__all__ = ["after_enqueuing", "gathered", "plan_of_arrival", "plan_of_capture"]

_SNAPSHOT_IF_ROOM = "take a snapshot on the device if there is room"

_BY_COPIES_ALONE = ("block", "rows", "pieces")

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
    destination = core.Source.from_array(out) if fits else None
    route = choose_route(on_device, destination, pinned, host_waits=host_waits)
    directly = destination if route.arrives == "destination" else None
    way, launches = on_device.way(directly, ring=route.through_ring, snapshot=snapshot)
    there = _Way(on_device, decision, route, way, launches)
    may_snapshot = snapshot != "never" and way in _BY_COPIES_ALONE and route.arrives != "ordinary"
    made = _plan(taken, decision, out, there, host_waits=host_waits, may_snapshot=may_snapshot)
    if route.arrives == "pinned" and on_device.may_be_gathered:
        gathered = _plan(
            taken, decision, out, dataclasses.replace(there, way="gather", launches=0), host_waits=host_waits
        )
        made = dataclasses.replace(made, _gathered=(on_device.name, gathered))
    return made


@dataclasses.dataclass(frozen=True)
class _Way:
    """How one tensor gets to the host: the way is the native layer's name for it."""

    on_device: OnDevice
    decision: core.Decision
    route: Route
    way: str
    launches: int

    @property
    def steps(self) -> list[str]:
        """What happens on the device, and over the link."""
        if self.way == "store":
            what = self.verbs or "copy it"
            return [f"{what} over the link into {self.place}, by stores of a kernel"]
        steps = []
        if self.on_device.packs:
            steps.append("pack it on the device, by its own library")
        elif self.way == "gather":
            steps.append("gather it with other small tensors on the device, by one kernel")
        elif self.launches:
            parts = f", in {self.launches} parts" if self.launches > 1 else ""
            steps.append(f"{self.verbs or 'pack it'} on the device, by a kernel{parts}")
        return [*steps, "copy over the link in one block" if self.way == "gather" else _step_over_the_link(self.route)]

    @property
    def verbs(self) -> str:
        """What a kernel does to the values."""
        made, lying = self.on_device.arrival, self.on_device.lying
        casts = made.dtype if made.dtype != lying.dtype else ""
        if self.route.through_ring and self.route.arrives == "destination":
            narrows = NATIVE[self.decision.value_dtype]["itemsize"] <= NATIVE[lying.dtype]["itemsize"]
            casts = self.decision.value_dtype if narrows and self.decision.value_dtype != lying.dtype else ""
        packs = "" if self.on_device.is_dense else "pack it"
        return " and ".join(verb for verb in (packs, casts and f"cast it to {casts}") if verb)

    @property
    def place(self) -> str:
        """Where the values arrive."""
        return "the destination" if self.route.arrives == "destination" else "pinned memory"

    @property
    def packs(self) -> bool:
        """Do the values lie in device memory once more before they go over the link?"""
        return self.on_device.packs or self.way == "gather" or (self.way != "store" and self.launches > 0)

    @property
    def path(self) -> str:
        """As plans name it."""
        if self.way in ("store", "gather"):
            return self.way
        return ("pack, " if self.packs else "") + ("ring" if self.route.through_ring else "dma")


def _plan(
    taken: Taken, decision: core.Decision, out: Any, there: _Way, *, host_waits: bool, may_snapshot: bool = False
) -> Plan:
    on_device, route = there.on_device, there.route
    copied_after = decision.path == "copy" and route.arrives != "destination"
    steps = [f"read {on_device.lying.summary()} on {on_device.name}"]
    if may_snapshot:
        steps.append(_SNAPSHOT_IF_ROOM)
    steps += there.steps
    waits = host_waits or on_device.must_wait or route.through_ring
    steps.append(f"wait for {on_device.name}" if waits else f"let result() wait for {on_device.name}")
    if copied_after:
        steps.append(f"write {decision.value_dtype} to {'the destination' if out is not None else 'new memory'}")
        if decision.checks_values:
            steps.append("check that every value survived")
    copies = 1 + int(there.packs) + int(route.through_ring)
    because = " and ".join(decision.causes)
    return Plan(
        path=there.path,
        reason=f"the tensor is on {on_device.name}" + (f"; {because}" if copied_after and because else ""),
        steps=tuple(steps),
        nbytes_moved=on_device.nbytes * copies + decision.nbytes_moved * copied_after,
        copies=copies + int(copied_after),
        waits=("the device",) if waits else (),
        shares_memory=False,
        writable=bool(decision.writable),
        dtype=decision.result_dtype,
        shape=tuple(decision.shape),
        strides=tuple(out.strides) if out is not None else tuple(decision.strides),
        launches=there.launches,
        link=figures_in_use(on_device.device),
    )


def gathered(planned: list[tuple[str, Plan | None]]) -> tuple[list[tuple[str, Plan | None]], int]:
    """Return the plans of a nest's leaves where small tensors go together, and how many kernels gather them."""
    small = {id(made): made for _, made in planned if made is not None and made._gathered is not None}
    if len(small) < 2:
        return planned, 0
    together: dict[str, list[Plan]] = {}
    for made in small.values():
        assert made._gathered is not None
        together.setdefault(made._gathered[0], []).append(made)
    groups = [group for group in together.values() if len(group) > 1]
    instead = {id(made): made._gathered[1] for group in groups for made in group if made._gathered is not None}
    return [(place, made and instead.get(id(made), made)) for place, made in planned], len(groups)


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
