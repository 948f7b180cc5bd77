"""The recipes of examples/, each run as its reader would, where the package that it is for is installed."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def needs(*packages: str) -> pytest.MarkDecorator:
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")


def run(name: str, *arguments: str, launcher: tuple[str, ...] = (), **variables: str) -> None:
    done = subprocess.run(
        [sys.executable, *launcher, str(EXAMPLES / name), *arguments],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def scalars_of(directory: Path) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(directory))
    read.Reload()
    return {tag: [(event.step, event.value) for event in read.Scalars(tag)] for tag in read.Tags()["scalars"]}


HALVES = [(step, 0.5 ** (step + 1)) for step in range(10)]

RECIPE = """
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""

# What every recipe does with metrics of a device, or beside a slow sink: all steps but the first come from a thread.
BY_THE_THREAD = (
    "-c",
    """
import functools, runpy, sys, time, tensorferry as ferry
ferry.MetricLog = functools.partial(ferry.MetricLog, lambda step, values: time.sleep(0.0 if step else 0.03))
"""
    + RECIPE,
)

WITHOUT_NETWORK = """
import os, runpy, sys
sys.addaudithook(lambda event, _: event in ("socket.connect", "socket.getaddrinfo", "socket.sendto") and os._exit(86))
"""

either_way = pytest.mark.parametrize(
    "launcher", [(), BY_THE_THREAD], ids=["from the caller of log", "from the thread of the log"]
)


@needs("tensorboard")
def test_tensorboard(tmp_path: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run("tensorboard_writer.py", str(tmp_path))
    scalars = scalars_of(tmp_path)
    assert set(scalars) == {"loss", "weight"}
    assert [step for step, _ in scalars["loss"]] == list(range(20))
    assert scalars["loss"][-1][1] < 0.1 * scalars["loss"][0][1]
    read = EventAccumulator(str(tmp_path), size_guidance={"histograms": 0})
    read.Reload()
    shown = read.Histograms("error")
    assert [event.step for event in shown] == list(range(20))
    assert {event.histogram_value.num for event in shown} == {64}


@needs("wandb")
@either_way
def test_wandb_offline(tmp_path: Path, launcher: tuple[str, ...]):
    variables = {"WANDB_SILENT": "true", "WANDB_MODE": "offline", "HOME": str(tmp_path)}
    run("wandb_offline.py", str(tmp_path), launcher=launcher, **variables)
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert _wandb_history(file, "loss") == HALVES


def _wandb_history(file: Path, name: str) -> list[tuple[int, float]]:
    from wandb.proto import wandb_internal_pb2

    found = []
    for data in _records_of_leveldb(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        items: dict[str, Any] = {
            item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item
        }
        if name in items:
            found.append((items.get("_step", record.history.step.num), items[name]))
    return found


def _records_of_leveldb(log: bytes) -> Iterator[bytes]:
    """W&B's files: a head of 7 bytes, then blocks of 32 KiB of pieces with checksum, length and kind."""
    at, whole = 7, b""
    while at + 7 <= len(log):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        length, kind = struct.unpack_from("<HB", log, at + 4)
        whole += log[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # all of it, or its last piece
            yield whole
            whole = b""


@needs("mlflow")
@either_way
def test_mlflow_on_local_files(tmp_path: Path, launcher: tuple[str, ...]):
    run("mlflow_files.py", str(tmp_path), launcher=launcher, MLFLOW_ALLOW_FILE_STORE="true")
    (file,) = (file for file in tmp_path.glob("*/*/metrics/train/loss") if "models" not in file.parts)
    rows = [line.split() for line in file.read_text().splitlines()]
    assert [(int(row[2]), float(row[1])) for row in rows] == HALVES


@needs("trackio")
@either_way
def test_trackio_on_local_files(tmp_path: Path, launcher: tuple[str, ...], monkeypatch: pytest.MonkeyPatch):
    for name in ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)
    offline = {"HF_HUB_OFFLINE": "1", "HF_TOKEN": "hf_of_nobody"}  # who is logged in would be asked for a name
    places = dict.fromkeys(("TRACKIO_DIR", "HF_HOME", "HOME"), str(tmp_path))
    code = WITHOUT_NETWORK + (launcher[1] if launcher else RECIPE)
    run("trackio_local.py", "ferrytest", launcher=("-c", code), **offline, **places)
    with sqlite3.connect(tmp_path / "ferrytest.db") as database:
        rows = database.execute("select step, metrics from metrics order by step").fetchall()
    logged = [(step, json.loads(metrics)) for step, metrics in rows]
    assert [(step, metrics["loss"]) for step, metrics in logged] == HALVES
    for (_, metrics), (_, loss) in zip(logged, HALVES, strict=True):
        bins = metrics["values"].pop("bins")
        assert metrics["values"] == {"_type": "trackio.histogram", "values": [2] * 5}
        assert bins == pytest.approx([9 * loss * edge / 5 for edge in range(6)])


@needs("pytorch_lightning")
def test_lightning(tmp_path: Path):
    run("lightning_logger.py", str(tmp_path))
    with (tmp_path / "line" / "version_0" / "metrics.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["train/loss"]]
    assert [int(row["step"]) for row in rows] == list(range(16))
    assert float(rows[-1]["train/loss"]) < float(rows[0]["train/loss"])


@needs("transformers", "accelerate")
def test_hugging_face_trainer(tmp_path: Path):
    run("hugging_face_trainer.py", str(tmp_path), HF_HOME=str(tmp_path))
    records = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert len([record for record in records if "error/mean" in record]) == 8
    assert [record["trainer/loss"] for record in records if "trainer/loss" in record] != []


@needs("accelerate", "tensorboard")
def test_accelerate(tmp_path: Path):
    run("accelerate_tracker.py", str(tmp_path))
    assert scalars_of(tmp_path / "line")["loss"] == HALVES


@needs("accelerate", "mlflow")
def test_the_tracker_of_accelerate_for_mlflow_keeps_one_run(tmp_path: Path):
    code = """
import time, tensorferry as ferry
from accelerate import Accelerator

accelerator = Accelerator(log_with="mlflow")
accelerator.init_trackers("line")
slow = lambda step, values: time.sleep(0.0 if step else 0.03)  # what comes after is logged from a thread
with ferry.MetricLog(slow, accelerator.get_tracker("mlflow")) as log:
    for step in range(10):
        log.log({"loss": 0.5 ** (step + 1)}, step=step)
accelerator.end_training()
"""
    script = tmp_path / "tracked.py"
    script.write_text(code)
    run(str(script), MLFLOW_ALLOW_FILE_STORE="true", MLFLOW_TRACKING_URI=(tmp_path / "runs").as_uri())
    (file,) = tmp_path.glob("runs/*/*/metrics/loss")
    rows = [line.split() for line in file.read_text().splitlines()]
    assert [(int(row[2]), float(row[1])) for row in rows] == HALVES


TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def test_means_over_two_gloo_processes(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    run("reduce_over_ranks.py", str(path), launcher=TORCHRUN)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert records == [{"step": step, "loss": step + 5.0, "double": 2 * step + 10.0} for step in range(10)]
    assert os.listdir(tmp_path) == ["metrics.jsonl"]


@needs("torchmetrics")
def test_torchmetrics_over_two_gloo_processes(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    run("torchmetrics_over_ranks.py", str(path), launcher=TORCHRUN)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert records == [{"step": step, "mean": step / 2 + 5.0} for step in range(5)]


def test_each_rank_of_two_logs_into_a_file_of_its_own(tmp_path: Path):
    code = """
import sys, torch, torch.distributed as dist, tensorferry as ferry
dist.init_process_group("gloo")
with ferry.MetricLog(sys.argv[1]) as log:
    log.log({"rank": dist.get_rank()})
dist.destroy_process_group()
"""
    script = tmp_path / "each.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, *TORCHRUN, str(script), str(tmp_path / "m.jsonl")],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    for rank in range(2):
        assert json.loads((tmp_path / f"m.rank{rank}.jsonl").read_text()) == {"step": 0, "rank": rank}
