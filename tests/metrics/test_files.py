"""Files of metrics survive whatever ends the process that writes them."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tensorferry as ferry

WRITER = """
import sys, tensorferry as ferry
log = ferry.MetricLog(sys.argv[1])
step = 0
while True:
    log.log({"step twice": 2 * step, **{f"metric {i}": step + i for i in range(int(sys.argv[2]))}})
    step += 1
    print(step, flush=True)
"""


def killed_while_writing(path: Path, metrics: int, seconds: float) -> int:
    """How many steps the writer said it has logged."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(metrics)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(seconds)
        writer.send_signal(signal.SIGKILL)
        return len(writer.stdout.read().splitlines())


@pytest.mark.parametrize("metrics", [3, 2000], ids=["short lines", "lines of many pages"])
def test_a_kill_at_any_time_loses_no_line_that_was_delivered(tmp_path: Path, metrics: int):
    path = tmp_path / "metrics.jsonl"
    seed = random.randrange(10**6)
    print("seed", seed)
    logged = killed_while_writing(path, metrics, random.Random(seed).uniform(0.05, 0.3))
    whole = path.read_text().rpartition("\n")[0].splitlines()
    records = [json.loads(line) for line in whole]
    assert [record["step"] for record in records] == list(range(len(records)))
    assert all(record["step twice"] == 2 * record["step"] and len(record) == metrics + 2 for record in records)
    assert len(records) >= logged - 10  # the open step, and what may wait for a thread when the disk is slow


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
@pytest.mark.parametrize("torn", [b'{"step":2,"a":', b"2,", b""], ids=["half a line", "half a row", "nothing"])
def test_a_torn_last_line_is_cut_off_when_the_file_is_opened_again(tmp_path: Path, ending: str, torn: bytes):
    path = tmp_path / f"metrics.{ending}"
    for start in (0, 2):
        with ferry.MetricLog(path) as log:
            log.log({"a": 1.5, "b": True}, step=start)
            log.log({"a": 2.5, "b": False}, step=start + 1)
        if start == 0:
            with path.open("ab") as file:
                file.write(torn)
    assert _steps(path) == [0, 1, 2, 3]


def _steps(path: Path) -> list[int]:
    with path.open(newline="") as file:
        if path.suffix == ".csv":
            return [int(row["step"]) for row in csv.DictReader(file)]
        return [json.loads(line)["step"] for line in file]


def test_a_new_column_fills_the_rows_above_with_nothing(tmp_path: Path):
    path = tmp_path / "metrics.csv"
    with ferry.MetricLog(path) as log:
        log.log({"a": 1})
        log.log({"a": 2, "b": "x" and 3.5})
        log.log({"b": 4.5})
    assert path.read_text() == "step,a,b\n0,1,\n1,2,3.5\n2,,4.5\n"
    assert os.listdir(tmp_path) == ["metrics.csv"]


def test_columns_of_an_older_file_stay_where_they_are(tmp_path: Path):
    path = tmp_path / "metrics.csv"
    for metrics in ({"b": 1, "a": 2}, {"a": 3, "c": 4}):
        with ferry.MetricLog(path) as log:
            log.log(metrics)
    assert path.read_text() == "step,b,a,c\n0,1,2,\n0,,3,4\n"


def test_a_metric_that_is_called_step_does_not_hide_the_steps_number(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    with ferry.MetricLog(path) as log:
        log.log({"step": 5}, step=9)
    assert json.loads(path.read_text()) == {"step": 9, "metrics/step": 5}


def test_a_full_disk_leaves_no_half_line_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "metrics.jsonl"
    real = os.write
    log = ferry.MetricLog(path)
    log.log({"a": 1})
    log.flush()
    monkeypatch.setattr(os, "write", lambda descriptor, line: real(descriptor, line[: len(line) // 2]))
    log.log({"a": 2})
    with pytest.raises(ferry.SinkError, match="no room"):
        log.flush()
    monkeypatch.undo()
    log.log({"a": 3})
    log.close()
    assert _steps(path) == [0, 2]


def test_histograms_and_arrays_are_in_json_lines_and_leave_csv_alone(tmp_path: Path):
    import torch

    paths: list[Any] = [tmp_path / "metrics.jsonl", tmp_path / "metrics.csv"]
    with ferry.MetricLog(*paths) as log:
        log.log({"a": 1}, step=0)
        log.log_histogram("h", torch.tensor([0.0, 1.0, 1.0, float("nan")]), bins=2, step=0)
        log.log_array("x", torch.tensor([[1.5, float("inf")]], dtype=torch.bfloat16), step=0)
    assert json.loads(paths[0].read_text()) == {
        "step": 0,
        "a": 1,
        "h": {"counts": [1, 2], "edges": [0.0, 0.5, 1.0], "nan": 1, "infinite": 0},
        "x": [[1.5, "Infinity"]],
    }
    assert paths[1].read_text() == "step,a\n0,1\n"


def test_a_file_that_cannot_be_opened_is_told_and_others_go_on(tmp_path: Path):
    steps: list[int] = []
    log = ferry.MetricLog(tmp_path / "missing" / "metrics.jsonl", lambda step, values: steps.append(step))
    log.log({"a": 1})
    with pytest.raises(ferry.SinkError, match="FileNotFoundError"):
        log.close()
    assert steps == [0]
