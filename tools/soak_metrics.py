"""Logs many steps, and fails when the process's memory grows.

    python tools/soak_metrics.py [--steps 1000000] [--metrics 20]

Prints how much resident memory grew after a warm-up. Exit code 1 when that is more than a few MiB, or when a step is
missing.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import tensorferry as ferry

__all__ = ["Soaked", "soak"]

ALLOWED_GROWTH_NBYTES = 8 << 20


@dataclass(frozen=True)
class Soaked:
    """What a run has shown.

    Attributes
    ----------
    grown_nbytes : int
        Resident memory at the end, less that after the warm-up.
    delivered, expected : int
        Steps that the sink saw in order, and steps that were logged.
    """

    grown_nbytes: int
    delivered: int
    expected: int

    @property
    def is_good(self) -> bool:
        """Is memory flat, and every step there?"""
        return self.grown_nbytes <= ALLOWED_GROWTH_NBYTES and self.delivered == self.expected


def resident_nbytes() -> int:
    """Return how much memory of this process is in RAM."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def soak(steps: int, metrics: int) -> Soaked:
    """Log so many steps after a warm-up of a tenth, with fresh tensors and fresh names in each."""
    seen = [0]

    def sink(step: int, values: dict[str, Any]) -> None:
        seen[0] += step == seen[0] and len(values) == metrics

    warm_up = max(1000, steps // 10)
    with tempfile.TemporaryDirectory() as directory:
        log = ferry.MetricLog(sink, Path(directory) / "metrics.jsonl") if steps <= 100_000 else ferry.MetricLog(sink)
        base = torch.arange(float(metrics))
        before = 0
        for step in range(warm_up + steps):
            log.log({f"group/metric {i}": value + step for i, value in enumerate(base)})
            if step == warm_up:
                before = resident_nbytes()
        log.close()
    return Soaked(resident_nbytes() - before, seen[0], warm_up + steps)


def main() -> int:
    """Run it as the arguments ask."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--metrics", type=int, default=20)
    asked = parser.parse_args()
    soaked = soak(asked.steps, asked.metrics)
    print(f"{soaked.delivered:,} of {soaked.expected:,} steps; memory grew by {soaked.grown_nbytes / 2**20:.1f} MiB")
    return 0 if soaked.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
