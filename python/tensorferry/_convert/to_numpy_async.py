"""Conversions to NumPy that go on while the caller does something else."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from tensorferry._convert.options import ToNumpyOptions, choose_snapshot
from tensorferry._convert.to_numpy import begin
from tensorferry._device.reception import Reception
from tensorferry._nest import is_nest
from tensorferry._plan.planning import planner_of_transfer, sum_up
from tensorferry._transfer.background import background
from tensorferry._transfer.graph_slot import GraphSlot, graph_slot
from tensorferry._transfer.stats import TransferStats
from tensorferry._transfer.transfer import Transfer

__all__ = ["to_numpy_async"]


def to_numpy_async(
    x: Any,
    /,
    *,
    out: Any = None,
    dtype: Any = None,
    casting: Any = "same_kind",
    order: Any = "K",
    stream: Any = None,
    pinned: Any = "auto",
    snapshot: Any = "auto",
) -> Transfer[Any] | GraphSlot[Any]:
    """See :func:`tensorferry.to_numpy_async`."""
    # Values of now: what is in host memory is snapshotted at once, and costs nothing until somebody writes to it.
    copy = None if out is not None else "lazy"
    options = ToNumpyOptions.parse(copy, dtype, casting, order, out, stream, pinned)
    reception = Reception(stream, options.pinned, snapshot=choose_snapshot(snapshot), host_waits=False)
    planner = planner_of_transfer(options, reception)
    enqueued_at = time.monotonic()
    begun = begin(x, options, out, reception, planner)
    if reception.graph is not None:
        reception.graph.enqueue()
        return graph_slot(reception.graph, begun.finish(), sum_up(begun.planned, is_nest(x)))
    pending = reception.close()
    stats = TransferStats(reception.nbytes, reception.driver_copies, reception.all_are_snapshots, enqueued_at)
    stats = dataclasses.replace(stats, launches=reception.launches)
    made = sum_up(begun.planned, is_nest(x))
    if pending is None:
        return Transfer.completed(begun.finish(), made, stats)
    background.begin_transfer()
    if reception.must_wait:
        pending.wait(None)
    return Transfer(pending, begun.finish, made, stats)
