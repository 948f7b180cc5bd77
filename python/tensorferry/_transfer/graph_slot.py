"""The public class: copies that were captured into a CUDA graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tensorferry._device.capturing import refuse_in_capture
from tensorferry._device.streams import number_of
from tensorferry._errors import StreamError
from tensorferry._native import core
from tensorferry._plan.plan import Plan
from tensorferry._transfer.arrival import Arrival

if TYPE_CHECKING:
    from tensorferry._device.graph_copies import GraphCopies

__all__ = ["GraphSlot", "graph_slot"]

T = TypeVar("T")


class GraphSlot(Generic[T]):
    """Where a CUDA graph's replays put their values: what ``to_numpy_async(x, out=...)`` gives inside a capture.

    Each replay of the graph fills the destinations again, in its own order. What is read from them while a replay is
    writing is a *torn read*: some values of this replay and some of an earlier one. Nothing can tell it from good
    values, so read only between :meth:`wait` and the next launch, and copy what has to outlast that launch, or launch
    in turn two graphs that were captured with a destination each.

    The graph keeps the destinations and the tensor's storage alive until it is destroyed, with or without the slot. The
    slot keeps neither graph nor tensor. Any thread may use it.

    Attributes
    ----------
    out : ndarray or nest of them
        What was given as ``out=``.
    """

    __slots__ = ("__weakref__", "_asks", "_nbytes", "_plan", "out")

    def __init__(
        self, out: T, plan: Plan, nbytes: int, asks: Sequence[tuple[int, Callable[[], int | None] | None]]
    ) -> None:
        self.out = out
        self._plan = plan
        self._nbytes = nbytes
        self._asks = tuple(asks)

    @property
    def plan(self) -> Plan:
        """What each replay does, and how long what it touches is kept."""
        return self._plan

    def wait(self, stream: Any = None) -> T:
        """Wait, without the GIL, until all work that a stream has now is done, its replays too; return ``out``.

        Ctrl-C interrupts the wait and harms nothing.

        Parameters
        ----------
        stream : stream, optional
            In which the graph was launched. Without it, the current stream of the tensor's library, torch for example.

        Raises
        ------
        StreamError
            Where no stream is given and the tensor's library does not tell its own.
        DeviceError
            Inside a capture, and for what the device answers.
        """
        streams = self._streams(stream)
        for device, number in streams:
            refuse_in_capture("GraphSlot.wait()", device, number)
        arrivals = [Arrival(core.end_of_work(device, number)) for device, number in streams]
        for arrival in arrivals:
            arrival.wait(None)
            if arrival.error is not None:
                raise arrival.error
        core.reap()
        return self.out

    def __repr__(self) -> str:
        """Size; asks nobody."""
        return f"<GraphSlot of {self._nbytes:,} bytes for each replay>"

    def _streams(self, stream: Any) -> list[tuple[int, int]]:
        if stream is not None:
            return [(device, number_of(stream)) for device, _ in self._asks[:1]]
        known = [(device, None if ask is None else ask()) for device, ask in self._asks]
        named = [(device, number) for device, number in known if number is not None]
        if len(named) < len(known):
            raise StreamError(
                "GraphSlot.wait() without a stream",
                "the tensor's library does not tell in which stream it launches",
                "name the stream that the graph was launched in: wait(stream=...)",
            )
        return named


def graph_slot(copies: GraphCopies, out: T, plan: Plan) -> GraphSlot[T]:
    """Return the slot of copies that were captured."""
    held = "for good: this driver does not tell when a graph is gone" if copies.held_for_good else "by the graph"
    plan = dataclasses.replace(plan, steps=(*plan.steps, f"keep the tensor's and the destination's memory, {held}"))
    return GraphSlot(out, plan, copies.nbytes, copies.asks)
