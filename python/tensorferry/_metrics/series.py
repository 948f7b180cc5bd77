"""One captured call of ``log``: what its replays leave, as steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorferry._metrics.combining import Aggregations
from tensorferry._metrics.window import Window
from tensorferry._native import core

__all__ = ["Series"]


class Series:
    """Replays of one call, in order. Not for two threads at once.

    Parameters
    ----------
    replays : MetricReplays
        Where they leave their values.
    names : list of str
        Of these values.
    values : dict of str to number
        All names of the call in their order; those on the host with their numbers, which each replay has again.
    step : int
        Of the first replay.
    aggregations : Aggregations
        What becomes of the values of one step.
    every : int
        How many replays are one step.
    """

    def __init__(
        self,
        replays: core.MetricReplays,
        names: list[str],
        values: dict[str, Any],
        step: int,
        aggregations: Aggregations,
        every: int,
    ) -> None:
        self.replays = replays
        self._names, self._values = names, values
        self._first, self._aggregations, self._every = step, aggregations, every
        self._window: Window | None = None

    @property
    def gaps(self) -> int:
        """How many replays were overwritten before they were read; their numbers are left out."""
        return self.replays.gaps

    def is_graph_gone(self) -> bool:
        """Can no replay come any more?"""
        return self.replays.is_graph_gone()

    def take(self) -> Iterator[Window]:
        """Take what has come, and yield the steps that are complete."""
        while (taken := self.replays.take()) is not None:
            number, numbers = taken
            values = {**self._values, **dict(zip(self._names, numbers, strict=True))}
            step = self._first + number - 1
            if self._window is None:
                self._window = Window(step, self._aggregations)
                self._window.expected = True  # its values are checked when it is sent
            else:
                self._window.next_step(step)
            self._window.add(values)
            if self._window.steps >= self._every:
                yield from filter(None, [self.end()])

    def end(self) -> Window | None:
        """Return the step that is not complete, if there is one."""
        window, self._window = self._window, None
        return window
