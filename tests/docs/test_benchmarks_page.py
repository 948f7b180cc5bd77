"""The page on benchmarks: its commands are understood, its example is printed so, its table is what the file has."""

from __future__ import annotations

import io
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from helpers.bench_runs import made_up_run, private_copy, run_of
from helpers.console import run_here
from helpers.documentation import ROOT, blocks, use_tools
from tensorferry.bench import Run, show
from tensorferry.cli import _bench

use_tools()
import cost_table  # noqa: E402

PAGE = ROOT / "docs" / "benchmarks.md"
COMMANDS = [line for block in blocks(PAGE) if block.language == "bash" for line in block.text.splitlines()]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_is_understood(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("before", "after"):
        run_of([private_copy(1 << 20, "contiguous", 1e-4)]).save(tmp_path / folder / "results.json")
    monkeypatch.setattr(_bench.runner, "run", lambda cases, **options: run_of([]))
    program, *arguments = shlex.split(command)
    assert program == "tensorferry"
    assert run_here(capsys, *arguments).code == 0


def test_the_example_is_what_show_prints() -> None:
    result = private_copy(64 << 20, "contiguous", 5e-3)
    result = replace(result, title="A private copy of a contiguous float32 tensor", point={"nbytes": 64 << 20})
    file = io.StringIO()
    show(result, Console(file=file, width=100, no_color=True, markup=False, emoji=False, highlight=False))
    printed = [line.rstrip() for line in file.getvalue().splitlines()]
    example = next(block.text for block in blocks(PAGE) if block.language == "text").splitlines()
    assert printed[-len(example) :] == example


def test_the_table_names_a_file_of_the_tree_with_its_date_and_versions() -> None:
    table = cost_table.costs()
    (name,) = re.findall(r"from `(docs/measurements/[\w.-]+)`", table)
    document = json.loads((ROOT / name).read_text(encoding="utf-8"))
    assert document["started"] in table
    for package in ("tensorferry", "torch", "numpy"):
        assert f"{package} {document['environment'][package]}" in table


def test_every_time_of_the_table_is_a_median_of_the_file() -> None:
    table = cost_table.costs()
    (name,) = re.findall(r"from `(docs/measurements/[\w.-]+)`", table)
    results = json.loads((ROOT / name).read_text(encoding="utf-8"))["results"]
    medians = [np.median(result["measurements"][0]["samples_s"]) for result in results if result["plan"]]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| `")]
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    shown = [
        float(number) * units[unit] for row in rows for number, unit in re.findall(r"([\d.]+) ([num]?s)\b", row[2])
    ]
    assert len(shown) >= len(rows) > 0
    for seconds in shown:
        assert np.min(np.abs(np.array(medians) / seconds - 1)) < 0.006  # three digits


def test_a_row_has_call_path_times_ratios_and_shares(tmp_path: Path) -> None:
    lines = cost_table.table_of(tmp_path / "made-up.json", made_up_run()).splitlines()
    assert lines[2:4] == [
        "| `ferry.to_numpy(t, copy=True)` | copy: a private copy was asked for "
        "| contiguous: 1 MiB 100 us, 16 MiB 1.60 ms, 64 MiB 6.40 ms | 0.50 to 1.50 (6 points) | 80% |",
        "| `ferry.to_numpy(t)` | view: nothing about it has to change | 240 ns | 0.48 |  |",
    ]
    assert lines[-1] == (
        "Full run of 2026-01-02T03:04:05+00:00 on cpu; tensorferry 0.1.0, torch 2.13.0, numpy 2.4.6, processor "
        "a made-up one, threads 1 or 2. Up to 11 rounds, measured; from `docs/measurements/made-up.json`."
    )


def test_a_failed_candidate_has_no_row(tmp_path: Path) -> None:
    assert "cast" not in cost_table.table_of(tmp_path / "made-up.json", made_up_run())


def test_a_run_without_plans_is_not_taken(tmp_path: Path) -> None:
    planned = made_up_run()
    planned.save(tmp_path / "a.json")
    without = [replace(result, plan=None) for result in planned.results]
    replace(planned, results=without, started="2027-01-01T00:00:00+00:00").save(tmp_path / "b.json")
    found = cost_table.newest(tmp_path)
    assert found is not None
    assert found[0].name == "a.json"


def test_the_run_that_started_last_is_taken_whatever_its_name(tmp_path: Path) -> None:
    run_of([]).save(tmp_path / "z.json")
    replace(run_of([]), started="2027-01-01T00:00:00+00:00").save(tmp_path / "a.json")
    found = cost_table.newest(tmp_path)
    assert found is not None
    assert found[0].name == "a.json"
    assert isinstance(found[1], Run)


def test_without_a_file_there_are_no_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_table, "MEASUREMENTS", tmp_path)
    assert re.findall(r"\d", cost_table.costs()) == []


@pytest.mark.parametrize(
    ("plan", "path", "reason"),
    [
        (
            "view: float32 (8, 8), nothing moved: nothing about it has to change",
            "view",
            "nothing about it has to change",
        ),
        ("copy: int8 (2,), 1 copy, 2 bytes moved: the dtype changes", "copy", "the dtype changes"),
        ("fallback: int8 (2,), 2 copies, 4 bytes moved, waits for the device: why", "fallback, 2 copies", "why"),
        ("nest: of 9 leaves, nothing moved: 9 distinct tensors, each by its own plan", "nest", "each by its own plan"),
    ],
)
def test_of_a_plan_the_path_and_the_reason_are_shown(plan: str, path: str, reason: str) -> None:
    assert cost_table.path_and_reason(plan) == (path, reason)
