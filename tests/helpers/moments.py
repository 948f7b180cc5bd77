"""Random moments at which to kill a process, sooner or later with how far the ones before had come by then."""

from __future__ import annotations

import random

_LONGEST = 2.0  # seconds


class Moments:
    """So that about every second kill meets work that has had an effect, on a machine as fast or busy as it may be."""

    def __init__(self, chance: random.Random, usual: float) -> None:
        self._chance = chance
        self._usual = usual

    def next(self) -> float:
        """How many seconds to wait before the next kill."""
        return self._chance.uniform(0, 2 * self._usual)

    def learn(self, had_effect: bool) -> None:
        """Wait less if the process that was killed had already had an effect, longer if it had not."""
        self._usual = min(self._usual * (0.8 if had_effect else 1.25), _LONGEST / 2)
