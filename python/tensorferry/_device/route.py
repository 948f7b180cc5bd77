"""Where values from a device arrive: the choice that both a plan and the copy itself are made by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tensorferry._native import core

if TYPE_CHECKING:
    from tensorferry._device.on_device import OnDevice

__all__ = ["Route", "choose_route"]

# From here on copies of pieces into an ordinary destination overlap with the pieces' way over the link.
_WORTH_A_RING_NBYTES = 8 << 20


@dataclass(frozen=True)
class Route:
    """How one tensor comes to host memory.

    Attributes
    ----------
    described : _core.Source
        How it will lie there.
    arrives : {"pinned", "destination", "ordinary"}
        In new pinned memory, in the destination itself, or in new ordinary memory.
    through_ring : bool
        In pieces through pinned memory of ours, while the call waits.
    """

    described: core.Source
    arrives: Literal["pinned", "destination", "ordinary"]
    through_ring: bool


def choose_route(on_device: OnDevice, destination: core.Source | None, pinned: Any, *, host_waits: bool) -> Route:
    """Choose; enqueues nothing and takes no memory.

    Parameters
    ----------
    on_device : OnDevice
        The tensor.
    destination : _core.Source, optional
        Where the values, cast at most, are wanted. Pinned memory is filled directly, large ordinary memory in pieces;
        for small memory it pays more to let the values arrive elsewhere first.
    pinned : {"auto", True, False}
        May, must or shall they not arrive in pinned memory?
    host_waits : bool
        Does the caller wait at once?
    """
    described = on_device.described(host_waits=host_waits)
    if destination is not None:
        if core.goes_directly(described, destination, on_device.device):
            return Route(described, "destination", through_ring=False)
        if host_waits and (pinned is False or on_device.nbytes >= _WORTH_A_RING_NBYTES):
            return Route(described, "destination", through_ring=True)
    if pinned is True or (pinned == "auto" and _has_room(on_device.nbytes)):
        return Route(described, "pinned", through_ring=False)
    return Route(described, "ordinary", through_ring=True)


def _has_room(nbytes: int) -> bool:
    stats = core.pinned_stats()
    if stats is None:
        return nbytes <= int(core.transfer_limits()["results_nbytes"])
    return nbytes <= int(stats["limit_nbytes"]) - int(stats["in_use_nbytes"]) - int(stats["retired_nbytes"])
