"""Checks results: against what is expected, by a function of the caller's, or candidates against each other."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tensorferry.bench._declare import Inputs
from tensorferry.bench._leaf import count_values
from tensorferry.bench._values import poison, same

__all__ = ["Checker", "in_a_line", "raised"]

_MISSING = object()
_LONGEST = 300


def raised(error: Exception) -> str:
    """Say in a line what was raised."""
    return f"raised {type(error).__name__}: {in_a_line(error)}"


def in_a_line(error: Exception) -> str:
    """Return the beginning of an error's message: some hold whole arrays."""
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


class Checker:
    """Says whether a candidate's result is right.

    Parameters
    ----------
    check, expected : callable, optional
        As :func:`tensorferry.bench.compare` takes them.
    destinations : tuple of str
        Names of inputs that are poisoned before each check.

    Attributes
    ----------
    checked_values : int
        How many values were compared so far.
    """

    def __init__(
        self,
        check: Callable[[Any, Any], object] | None,
        expected: Callable[[Inputs], object] | None,
        destinations: tuple[str, ...],
    ) -> None:
        self.checked_values = 0
        self._check = check
        self._expected = expected
        self._destinations = destinations
        self._inputs: Inputs = {}
        self._reference: Any = _MISSING
        self._against = ""

    def begin(self, inputs: Inputs) -> None:
        """Get ready for results made from these inputs."""
        self._inputs = inputs
        self._reference = self._expected(inputs) if self._expected else inputs if self._check else _MISSING

    def end(self) -> None:
        """Let go of the inputs and of what was expected."""
        self._inputs, self._reference = {}, _MISSING

    def verdict(self, label: str, call: Callable[[], object], when: str) -> str | None:
        """Make one call and return what is wrong with its result, or None."""
        for name in self._destinations:
            poison(self._inputs[name])
        try:
            result = call()
        except Exception as error:
            return raised(error)
        if self._reference is _MISSING:
            # A deep copy: the result may lie in a destination, which the next check poisons.
            self._reference, self._against = copy.deepcopy(result), f", held against what {label!r} gave"
            return None
        try:
            self.checked_values += self._compare(result)
        except AssertionError as error:
            return f"wrong value {when}{self._against}: {in_a_line(error)}"
        except Exception as error:
            return f"wrong value {when}{self._against}: the check {raised(error)}"
        return None

    def _compare(self, result: object) -> int:
        if self._check is None:
            return same(result, self._reference)
        counted = self._check(result, self._reference)
        if type(counted) is int:
            return counted
        return count_values(self._reference if self._expected else result)
