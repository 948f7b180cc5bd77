"""Runs the checks of ordering with many seeds, and prints how many orders of the device's work they saw.

Everything runs on the double of the NVIDIA driver. The native checks run pieces of transfers at random; those in Python
run the package. Exit code 1 when one failed; its schedule and seed are printed.

    python tools/soak.py [--seeds 100000] [--minutes 30] [--first 0] [--build build/release]
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NATIVE = Path("tests", "native", "transfer", "ferry_transfer_tests")
NATIVE_CHECKS = 4  # one for each schedule
DEVICE_TESTS = ROOT / "tests" / "device"
ORDERS = re.compile(r"^.*?(lazy|eager|shuffled|threaded): (\d+) distinct orders from (\d+) seeds", re.MULTILINE)
FAILED = re.compile(r"^(?:\[  FAILED  \] (\S+) \(|(?:FAILED|ERROR) (\S+))", re.MULTILINE)
AT_SEED = re.compile(r"(lazy|eager|shuffled|threaded),? seed (\d+)")


@dataclass(frozen=True)
class Soaked:
    """What came of one suite."""

    name: str
    output: str
    code: int
    seconds: float

    def lines(self) -> list[str]:
        """One for each schedule, and one for each failure."""
        seeds: dict[str, int] = {}
        distinct: dict[str, int] = {}
        for schedule, orders, told in ORDERS.findall(self.output):
            seeds[schedule] = seeds.get(schedule, 0) + int(told)
            distinct[schedule] = distinct.get(schedule, 0) + int(orders)
        found = [f"{self.name:9}{kind:10}{seeds[kind]:>12,}{distinct[kind]:>18,}" for kind in seeds]
        if self.code == 0:
            return found
        failed = sorted({native or python for native, python in FAILED.findall(self.output)})
        at = ", ".join(sorted({f"{kind} seed {seed}" for kind, seed in AT_SEED.findall(self.output)}))
        return [*found, f"{self.name:9}FAILED with exit code {self.code}: {' '.join(failed)} at {at or 'no seed'}"]


def soak(name: str, command: list[str], tests: int, asked: argparse.Namespace) -> Soaked:
    """Run a suite; each of its tests gets at most an equal part of half of the time."""
    environment = {
        **os.environ,
        "TENSORFERRY_SOAK_SEEDS": str(asked.seeds),
        "TENSORFERRY_SOAK_FIRST": str(asked.first),
        "TENSORFERRY_SOAK_SECONDS": str(asked.minutes * 30 / tests if asked.minutes else 10**6),
    }
    print(f"{name}: {' '.join(command)}", file=sys.stderr, flush=True)
    started = time.monotonic()
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return Soaked(name, ran.stdout, ran.returncode, time.monotonic() - started)


def device_tests() -> list[str]:
    """The files whose tests run in many orders; the others in them run once."""
    files = sorted(path for path in DEVICE_TESTS.rglob("test_*.py") if " in orders(" in path.read_text())
    return [str(path.relative_to(ROOT)) for path in files]


def count(pytest: list[str]) -> int:
    """How many tests a run of pytest has, to share the time."""
    listed = subprocess.run([*pytest, "--collect-only"], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.count("::")


def main() -> int:
    """Run both suites and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--seeds", type=int, default=100_000, help="of each schedule natively, of the shuffled one in Python"
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed: to see one failure again")
    parser.add_argument("--minutes", type=float, help="stop then, however many seeds are left")
    parser.add_argument(
        "--build", type=Path, default=ROOT / "build" / "release", help="where cmake built the native tests"
    )
    asked = parser.parse_args()
    native = asked.build / NATIVE
    if not native.is_file():
        parser.error(f"{native} is missing: cmake --preset release && cmake --build --preset release")
    in_python = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *device_tests()]
    ran = [
        soak("native", [str(native), "--gtest_filter=RandomTransfers.*"], NATIVE_CHECKS, asked),
        soak("package", in_python, count(in_python), asked),
    ]
    print(f"{'suite':9}{'schedule':10}{'seeds':>12}{'distinct orders':>18}   (all of it simulated)")
    for suite in ran:
        print("\n".join(suite.lines()))
    took = ", ".join(f"{suite.name} {suite.seconds:.0f} s" for suite in ran)
    good = all(suite.code == 0 for suite in ran)
    print(f"{'no check failed' if good else 'FAILED'}; {took}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
