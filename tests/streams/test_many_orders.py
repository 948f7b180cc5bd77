"""Runs in many orders: what a test asks for, what a soak run makes of it, and what it says of failures."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import Driver
from helpers.orders import orders

TOOL = Path(__file__).resolve().parents[2] / "tools" / "soak.py"
SETTINGS = ("TENSORFERRY_SOAK_SEEDS", "TENSORFERRY_SOAK_FIRST", "TENSORFERRY_SOAK_SECONDS")


@pytest.fixture(autouse=True)
def usual_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a run of the tests, also within a soak run."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def soak() -> ModuleType:
    """The tool as a module."""
    spec = importlib.util.spec_from_file_location("soak", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["soak"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_every_schedule_has_its_turn(fake: FakeCuda):
    asked = Counter(order.split(",")[0] for order in orders(fake, 25))
    assert asked == {"lazy": 1, "eager": 1, "threaded": 10, "shuffled": 25}


def test_a_soak_run_asks_for_other_seeds(fake: FakeCuda, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TENSORFERRY_SOAK_SEEDS", "3")
    monkeypatch.setenv("TENSORFERRY_SOAK_FIRST", "70")
    shuffled = [order for order in orders(fake, 25) if order.startswith("shuffled")]
    assert shuffled == ["shuffled, seed 70", "shuffled, seed 71", "shuffled, seed 72"]


def test_no_seed_is_begun_when_the_time_is_up(fake: FakeCuda, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TENSORFERRY_SOAK_SECONDS", "-1")
    assert list(orders(fake, 25)) == []


def two_streams_at_work(fake: FakeCuda, driver: Driver) -> None:
    arrays = [DeviceArray(np.zeros(1, np.uint8), stream=driver.stream()) for _ in range(2)]
    for x in arrays * 2:
        x.write_later(1)
    del arrays, x
    fake.drain()


def test_orders_are_counted_from_the_start_of_each(fake: FakeCuda, driver: Driver, capsys: pytest.CaptureFixture[str]):
    for _ in orders(fake, 200):
        two_streams_at_work(fake, driver)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "lazy: 1 distinct orders from 1 seeds"
    name, distinct, seeds = lines[3].split()[0], int(lines[3].split()[1]), int(lines[3].split()[-2])
    assert (name, seeds) == ("shuffled:", 200)
    assert 10 < distinct <= 20  # two streams, each with two writes and the end of the memory: 6! / (3! * 3!)


def test_a_seed_gives_the_same_order_again(fake: FakeCuda, driver: Driver):
    seen = []
    for _ in range(2):
        fake.schedule("shuffled", 7)
        two_streams_at_work(fake, driver)
        seen.append(fake.order())
    assert seen[0] == seen[1] != 0


GOOD = "[ RUN      ] A.B\nshuffled: 40 distinct orders from 100 seeds\nshuffled: 2 distinct orders from 100 seeds\n"
BAD_NATIVE = GOOD + 'Which is: "x"\nshuffled seed 41\n[  FAILED  ] A.B (12 ms)\n[  FAILED  ] A.B\n'
BAD_PYTHON = ".lazy: 1 distinct orders from 1 seeds\nFAILED tests/a.py::b[c] - AssertionError: threaded, seed 3\n"


def test_seeds_and_orders_are_added_up(soak: Any):
    assert [line.split() for line in soak.Soaked("native", GOOD, 0, 1.0).lines()] == [
        ["native", "shuffled", "200", "42"]
    ]


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (BAD_NATIVE, "FAILED with exit code 1: A.B at shuffled seed 41"),
        (BAD_PYTHON, "tests/a.py::b[c] at threaded seed 3"),
    ],
    ids=["native", "package"],
)
def test_a_failure_is_told_with_its_seed(soak: Any, output: str, said: str):
    assert said in soak.Soaked("suite", output, 1, 1.0).lines()[-1]


def test_a_crash_is_a_failure_without_a_seed(soak: Any):
    assert "FAILED with exit code -11" in soak.Soaked("native", GOOD, -11, 1.0).lines()[-1]


def test_a_suite_is_told_seeds_and_its_share_of_the_time(soak: Any):
    code = f"import os; print([os.environ[name] for name in {SETTINGS!r}])"
    asked = argparse.Namespace(seeds=500, first=9, minutes=2)
    ran = soak.soak("suite", [sys.executable, "-c", code], 4, asked)
    assert (ran.code, ran.output.strip()) == (0, "['500', '9', '15.0']")


def test_the_files_that_run_in_many_orders_are_found(soak: Any):
    assert {"tests/device/test_order.py", "tests/device/field/test_async_races.py"} <= set(soak.device_tests())
