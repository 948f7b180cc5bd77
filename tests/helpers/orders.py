"""Runs of one test in many orders of the device's work. ``tools/soak.py`` asks for more of them by the environment."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from helpers.fake_cuda import FakeCuda

__all__ = ["orders"]

_OTHERS = {"lazy": 1, "eager": 1, "threaded": 10}


def orders(fake: FakeCuda, seeds: int = 1000) -> Iterator[str]:
    """Switch the fake through every schedule, and through many seeds of the shuffled one.

    Parameters
    ----------
    fake : FakeCuda
        Its schedule is set; it is not reset.
    seeds : int
        Of the shuffled schedule. ``TENSORFERRY_SOAK_SEEDS`` stands for another number, ``TENSORFERRY_SOAK_FIRST`` for
        the first of them, ``TENSORFERRY_SOAK_SECONDS`` for a time after which no more are begun.

    Yields
    ------
    str
        The schedule and the seed, for messages.
    """
    first = int(os.environ.get("TENSORFERRY_SOAK_FIRST", "0"))
    seeds = int(os.environ.get("TENSORFERRY_SOAK_SEEDS", seeds))
    end = time.monotonic() + float(os.environ.get("TENSORFERRY_SOAK_SECONDS", "inf"))
    for name, count in (*_OTHERS.items(), ("shuffled", seeds)):
        told, distinct = 0, set()
        try:
            for seed in range(first, first + count):
                if time.monotonic() > end:
                    break
                fake.schedule(name, seed)
                told += 1
                yield f"{name}, seed {seed}"
                distinct.add(fake.order())
        finally:
            print(f"{name}: {len(distinct)} distinct orders from {told} seeds")
