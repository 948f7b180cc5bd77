"""Brings what lies on devices to host memory: everything is enqueued, then waited for once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorferry._device.capturing import captures
from tensorferry._device.graph_copies import GraphCopies, mixture_refused, wait_refused
from tensorferry._device.route import choose_route
from tensorferry._device.torch_memory import note_torch
from tensorferry._errors import DeviceError
from tensorferry._native import core

if TYPE_CHECKING:
    from tensorferry._device.on_device import OnDevice

__all__ = ["Reception", "received"]


class Reception:
    """Values on their way, for one call.

    Parameters
    ----------
    stream : stream or None
        That the values are ordered in; None asks each producer.
    pinned : {"auto", True, False}
        Must, may or shall not the values arrive in pinned memory?
    snapshot : {"automatic", "always", "never"}
        May the copies be made from a snapshot, so that the producer's stream goes on?
    host_waits : bool
        Will the caller wait at once?

    Attributes
    ----------
    graph : GraphCopies or None
        Where the copies go instead when their streams are being captured; known after :meth:`look_for_captures`.
    must_wait : bool
        Some producer's later work is not ordered after these copies: the call has to wait for them.
    """

    def __init__(self, stream: Any, pinned: Any, *, snapshot: str = "never", host_waits: bool = True) -> None:
        self._stream = stream
        self._pinned = pinned
        self.snapshot = snapshot
        self.host_waits = host_waits
        self._fetch: core.Fetch | None = None
        self._small: list[int] = []  # sizes of what may be gathered
        self.must_wait = False
        self.graph: GraphCopies | None = None
        self._looked = False

    def look_for_captures(self, leaves: Sequence[OnDevice | None]) -> None:
        """Find out, before anything is enqueued, whether the copies would be captured into a graph.

        Parameters
        ----------
        leaves : sequence of OnDevice or None
            All tensors of the call; None for what lies elsewhere.

        Raises
        ------
        DeviceError, BufferMismatchError
            In a capture, for calls that wait, and for what cannot become part of a graph as a whole.
        """
        self._looked = True
        known: dict[tuple[int, int], str] = {}
        inside = [leaf is not None and captures(leaf, self._stream, known) for leaf in leaves]
        if not any(inside):
            self._small = [leaf.nbytes for leaf in leaves if leaf is not None and leaf.may_be_gathered]
            return
        first = leaves[inside.index(True)]
        assert first is not None
        if self.host_waits:
            raise wait_refused(first.name)
        if not all(inside):
            raise mixture_refused(first.name)
        if self.snapshot == "always":
            raise DeviceError(
                f"a tensor on {first.name} with snapshot=True, inside a capture",
                "a graph's copies are made in its own order, so that no snapshot is needed or taken",
                "leave snapshot out",
            )
        self.graph = GraphCopies(self._stream)

    def enqueue(self, on_device: OnDevice, destination: core.Source | None = None) -> core.Source | None:
        """Enqueue the copy of one tensor, by the route that :func:`choose_route` finds.

        Returns
        -------
        _core.Source or None
            Where the values will be once they were waited for; None when that is the destination.
        """
        note_torch()
        if destination is not None:
            core.pin_on_first_use(destination, on_device.device)
        assert self._looked  # else packing may be captured before the copy is refused
        on_device.load_kernels()
        route = choose_route(on_device, destination, self._pinned, host_waits=self.host_waits)
        source = on_device.handed_over(self._stream)
        self.must_wait |= on_device.must_wait
        if route.arrives == "destination":
            assert destination is not None
            if route.through_ring:
                core.fetch_into(source, on_device.lying.dtype, destination)
            else:
                self._fetching().add_into(source, destination, on_device.arrival)
            return None
        if route.arrives == "pinned":
            arrived = self._fetching().add(source, route.described, on_device.arrival)
            if arrived is not None:
                return arrived
            if self._pinned is True:
                raise DeviceError(
                    f"a tensor on {on_device.name}, pinned=True",
                    f"no pinned memory of {on_device.nbytes:,} bytes is to be had",
                    'raise options(pinned_nbytes=...), drop arrays that hold some, or pass pinned="auto"',
                )
        return core.fetch_new(source, route.described, on_device.arrival)

    def _fetching(self) -> core.Fetch:
        if self._fetch is None:
            self._fetch = core.Fetch(snapshot=self.snapshot, back_pressure="wait")
            self._fetch.expect(self._small)
        return self._fetch

    @property
    def nbytes(self) -> int:
        """Bytes that are on their way."""
        return 0 if self._fetch is None else self._fetch.nbytes

    @property
    def driver_copies(self) -> int:
        """How many copies the driver was given."""
        return 0 if self._fetch is None else self._fetch.driver_copies

    @property
    def launches(self) -> int:
        """How many of our kernels were launched."""
        return 0 if self._fetch is None else self._fetch.launches

    @property
    def snapshots(self) -> int:
        """Of how many tensors a snapshot was taken."""
        return 0 if self._fetch is None else self._fetch.snapshots

    @property
    def all_are_snapshots(self) -> bool:
        """Were all values first copied on their devices?"""
        return self._fetch is not None and 0 < self._fetch.tensors == self._fetch.snapshots

    def close(self) -> core.Pending | None:
        """Return what to wait for; None when nothing is on its way."""
        return None if self._fetch is None else self._fetch.close()

    def wait(self) -> None:
        """Wait for everything, without the GIL."""
        pending = self.close()
        if pending is not None:
            pending.wait(None)
            core.reap()


def received(on_device: OnDevice, stream: Any = None, pinned: Any = "auto") -> core.Source:
    """Bring one tensor to host memory; blocks until its values are there."""
    reception = Reception(stream, pinned)
    on_device.described(host_waits=True)
    reception.look_for_captures([on_device])
    arrived = reception.enqueue(on_device)
    assert arrived is not None
    reception.wait()
    return arrived
