"""What was logged in some consecutive steps and is delivered together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorferry._metrics.combining import Aggregations, combined, finished
from tensorferry._metrics.on_the_way import OnTheWay

__all__ = ["Window"]

_ELSEWHERE = object()  # keeps the place of a name whose total is kept on a device


class Window:
    """Values of one or more steps; those on their way have theirs at the places of their names.

    Not for two threads at once.

    Attributes
    ----------
    step : int
        The last step in it, under whose number it is delivered.
    steps : int
        How many different steps are in it.
    expected : bool
        Some values were on their way when they were logged.
    error : Exception or None
        Why values never came, as far as that is known.
    """

    __slots__ = (
        *("_aggregations", "_counts", "_never_combined", "_parts", "_values"),
        *("error", "expected", "step", "steps"),
    )

    def __init__(self, step: int, aggregations: Aggregations) -> None:
        self.step = step
        self.steps = 1
        self.error: Exception | None = None
        self.expected = False
        self._aggregations = aggregations
        self._values: dict[str, Any] = {}
        self._counts: dict[str, int] = {}
        self._never_combined: set[str] = set()
        self._parts: list[tuple[OnTheWay, int]] = []

    def next_step(self, step: int) -> None:
        """Go on to a larger step."""
        self.step = step
        self.steps += 1

    def add(self, values: dict[str, Any], parts: Sequence[OnTheWay] = ()) -> None:
        """Add the values of one call. The dict may be kept.

        Parameters
        ----------
        values : dict
            Numbers; for those on their way the part that brings them, and None where a device keeps the total.
        parts : sequence of OnTheWay
            All that are among the values.
        """
        self._note(parts, 1)
        if self._aggregations.keeps_last:
            if self._values:
                self._values.update(values)
            else:
                self._values = values
            return
        for name, value in values.items():
            if value is None:
                self._values.setdefault(name, _ELSEWHERE)
            elif isinstance(value, OnTheWay):
                self._expect_at(name, value)
            else:
                self._add(name, value, 1)

    def expect(self, part: OnTheWay, count: int = 1, *, are_numbers: bool = True) -> None:
        """Add values that come later: each the total of `count` values. Of what are no numbers the last one counts."""
        self._note([part], count)
        if not are_numbers:
            self._never_combined.update(part.names)
        for name in part.names:
            self._expect_at(name, part)

    @property
    def expects(self) -> bool:
        """Is there a device to wait for, perhaps?"""
        return any(part.pending is not None for part, _ in self._parts)

    def done(self) -> bool:
        """Is everything there? Never waits."""
        return all(part.done() for part, _ in self._parts)

    def wait(self, deadline: float | None) -> bool:
        """Wait for everything; False when the time is up."""
        return all(part.wait(deadline) for part, _ in self._parts)

    def values(self) -> dict[str, Any]:
        """Return the numbers, once everything is there. Values that a device failed to give are left out."""
        for part, count in self._parts:
            self._take(part, count)
        self._parts = []
        if self._aggregations.keeps_last:
            return self._values
        return {
            name: finished(self._kind(name), value, self._counts.get(name, 1))
            for name, value in self._values.items()
            if value is not _ELSEWHERE
        }

    def _note(self, parts: Sequence[OnTheWay], count: int) -> None:
        for part in parts:
            self._parts.append((part, count))
            self.expected = True

    def _kind(self, name: str) -> str:
        return "last" if name in self._never_combined else self._aggregations.of(name)

    def _expect_at(self, name: str, part: OnTheWay) -> None:
        if self._values.get(name, _ELSEWHERE) is _ELSEWHERE or self._kind(name) == "last":
            self._values[name] = part  # keeps the place, and tells the last one

    def _add(self, name: str, value: Any, count: int) -> None:
        kind = self._kind(name)
        known = self._values.get(name, _ELSEWHERE)
        if known is _ELSEWHERE or isinstance(known, OnTheWay) or kind == "last":
            # What is on its way is combined with it then, which all but "last" do in any order.
            self._values[name] = value
            self._counts[name] = count
        else:
            self._values[name] = combined(kind, known, value)
            self._counts[name] += count

    def _take(self, part: OnTheWay, count: int) -> None:
        try:
            arrived = part.read()
        except Exception as error:
            self.error = error
            for name in part.names:
                if self._values.get(name) is part:
                    del self._values[name]
            return
        for name, value in zip(part.names, arrived, strict=True):
            if self._values.get(name) is part:
                self._values[name] = value
                self._counts[name] = count
            elif self._kind(name) != "last":
                self._add(name, value, count)
