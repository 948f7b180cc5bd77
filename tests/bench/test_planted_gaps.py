"""The harness tells what is planted, while other programs take the cores.

On a made-up machine, whose clock and interruptions are drawn from a seed, and on this one, however busy it is.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tensorferry.bench import Ratio, compare
from tensorferry.bench import _clock as clock

ATTEMPTS = 5  # of a real run: other programs may come and go in the midst of it


class BusyMachine:
    """Calls take their planted time, some noise, and now and then the turn of another program."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._now = self._cpu = 0.0

    def perf_counter(self) -> float:
        return self._now

    def thread_time(self) -> float:
        return self._cpu

    def work(self, seconds: float) -> None:
        taken = seconds * (1 + self._chance.expovariate(50))
        self._cpu += taken
        self._now += taken
        if self._chance.random() < taken / 4e-3:  # the others' turns come every 4 ms
            self._now += self._chance.choice([4e-3, 8e-3])


def on_a_made_up_machine(monkeypatch: pytest.MonkeyPatch, ours_s: float, peer_s: float, seed: int) -> Ratio:
    machine = BusyMachine(seed)
    monkeypatch.setattr(clock, "time", machine)
    return compare(
        {"ours": lambda inputs: machine.work(ours_s), "peer": lambda inputs: machine.work(peer_s)},
        setup=lambda rng: {"x": rng.random()},
        check=lambda result, inputs: None,
        seed=seed,
    ).ratio("peer")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [2e-6, 8e-6], ids=["2 us", "8 us"])
@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(1.0, "no difference"), (1.2, "slower"), (1 / 1.2, "faster")],
    ids=["equal", "slower by 20 %", "faster by 20 %"],
)
def test_what_is_planted_on_a_busy_machine_is_found(
    monkeypatch: pytest.MonkeyPatch, ours: float, verdict: str, scale: float, seed: int
):
    ratio = on_a_made_up_machine(monkeypatch, ours * scale, scale, seed)
    assert ratio.verdict == verdict, ratio
    assert ratio.median == pytest.approx(ours, abs=0.05)


@pytest.fixture(scope="module")
def busy_cores() -> Iterator[int]:
    """One program a core that does nothing but keep it busy."""
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    yield len(burning)
    for program in burning:
        program.kill()
        program.wait()


def summing(ours: int, peer: int, seed: int) -> Ratio:
    """Compare two sums of so many numbers each; the time of one grows with its count."""
    return compare(
        {"ours": "sum(ours)", "peer": "sum(peer)"},
        setup=lambda rng: {"ours": rng.integers(1, 9, ours).tolist(), "peer": rng.integers(1, 9, peer).tolist()},
        check=lambda result, inputs: None,
        seed=seed,
    ).ratio("peer")


def found_in_some_run(measure: Callable[[int], Ratio], verdict: str, median: float) -> list[Ratio]:
    """Return what was measured instead, run by run; nothing as soon as one run finds it."""
    others = []
    for seed in range(ATTEMPTS):
        ratio = measure(seed)
        if ratio.verdict == verdict and ratio.median == pytest.approx(median, abs=0.06):
            return []
        others.append(ratio)
    return others


@pytest.mark.usefixtures("busy_cores")
@pytest.mark.parametrize(
    ("ours", "peer", "verdict"), [(500, 500, "no difference"), (600, 500, "slower"), (500, 600, "faster")]
)
def test_what_is_planted_is_found_on_this_machine_too(ours: int, peer: int, verdict: str):
    assert found_in_some_run(lambda seed: summing(ours, peer, seed), verdict, ours / peer) == []
