"""Run the benchmark's cases for a device, quickly, and print one line for each candidate; needs neither rich nor typer.

Run on a machine with a GPU: ``python tools/gpu_bench.py``. Cases for which no time is left are named and left out.
``--json FILE`` keeps the results of all points, as ``tensorferry bench --out`` does.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tensorferry.bench import LIMIT, Case, Result, Run, load_cases, run, select

CASES = ("d2h", "gather", "interference", "image.to_device")


def measure(cases: Sequence[Case], seconds: float) -> tuple[Run, list[str]]:
    """Run the cases in turn until the time is over; return what was measured, and the names of those left out."""
    end = time.monotonic() + seconds
    made: Run | None = None
    left_out: list[str] = []
    for case in cases:
        if made is not None and time.monotonic() > end:
            left_out.append(case.name)
            continue
        one = run([case], quick=True, device="cuda")
        made = one if made is None else replace(made, results=(*made.results, *one.results))
    assert made is not None, "no case was named"
    return made, left_out


def lines(results: Sequence[Result]) -> list[str]:
    """Say for each point how long every candidate took, ours over it, and whether the goals against it were met."""
    said = []
    for result in results:
        point = ", ".join(f"{key} {value}" for key, value in result.point.items() if key != "device")
        said.append(f"{result.case} ({point}), {result.origin}, {result.checked_values:,} values compared")
        for one in (*result.measurements, *([result.limit] if result.limit else [])):
            if one.error:
                said.append(f"  {one.label[:64]:64} {one.error[:100]}")
                continue
            rate = f"{one.bytes_per_s(result.nbytes) / 1e9:7.2f} GB/s" if result.nbytes else " " * 12
            ratio = result.ratio(LIMIT if one is result.limit else one.label)
            ours = "" if ratio is None or one is result.ours else f"ours/it {ratio.median:.3f}"
            said.append(f"  {one.label[:64]:64} {one.median_s * 1e6:11.1f} us {rate}  {ours}")
        said += [
            f"  goal: {goal.text}: {'not measured' if goal.met is None else 'met' if goal.met else 'NOT MET'}"
            + ("" if goal.met is None else f" ({goal.reached:.3f})")
            for goal in result.goals
        ]
    return said


def failures(results: Sequence[Result]) -> list[str]:
    """Name our candidates that raised or gave a wrong value."""
    return [f"{result.case}: {result.ours.error}" for result in results if not result.ours.samples_s]


def main() -> int:
    """Measure and print; a wrong value is a failure, a goal that is not met is none."""
    import torch

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no case after so long")
    parser.add_argument("--json", type=Path, help="a file to write the results to")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print(f"no GPU: torch {torch.__version__} finds none here, and these cases are about copies from one")
        return 1
    made, left_out = measure(select(load_cases(), CASES), arguments.seconds)
    if arguments.json:
        made.save(arguments.json)
    print("\n".join(lines(made.results)))
    wrong = failures(made.results)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    goals = [goal for result in made.results for goal in result.goals if goal.met is not None]
    late = f"; left out for want of time: {', '.join(left_out)}" if left_out else ""
    print(f"{len(made.results)} points, {sum(map(bool, (g.met for g in goals)))} of {len(goals)} goals met{late}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
