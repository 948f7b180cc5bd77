"""The harness tells what is planted, while other programs take the cores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tensorferry.bench import Result, compare


@pytest.fixture(scope="module")
def busy_machine() -> Iterator[int]:
    """One program a core that does nothing but keep it busy."""
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    yield len(burning)
    for program in burning:
        program.kill()
        program.wait()


def summing(ours: int, peer: int, seed: int) -> Result:
    """Compare two sums of so many numbers each; the time of one grows with its count."""
    return compare(
        {"ours": "sum(ours)", "peer": "sum(peer)"},
        setup=lambda rng: {"ours": rng.integers(1, 9, ours).tolist(), "peer": rng.integers(1, 9, peer).tolist()},
        check=lambda result, inputs: None,
        seed=seed,
    )


@pytest.mark.usefixtures("busy_machine")
@pytest.mark.parametrize("seed", [1, 2])
def test_two_equal_candidates_make_no_difference(seed):
    ratio = summing(500, 500, seed).ratio("peer")
    assert ratio.verdict == "no difference", ratio
    assert ratio.median == pytest.approx(1, abs=0.05)


@pytest.mark.usefixtures("busy_machine")
@pytest.mark.parametrize(("ours", "peer", "verdict"), [(600, 500, "slower"), (500, 600, "faster")])
def test_a_gap_of_20_percent_is_found(ours, peer, verdict):
    ratio = summing(ours, peer, 1).ratio("peer")
    assert ratio.verdict == verdict, ratio
    assert ratio.median == pytest.approx(ours / peer, abs=0.06)
