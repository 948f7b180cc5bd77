"""The recipe of examples/ for files, run as its reader would, where Ray is installed; pyarrow reads what it wrote."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

pq = pytest.importorskip("pyarrow.parquet")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = [f"{number:06d}.parquet" for number in range(8)]

Done = subprocess.CompletedProcess[str]

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray not installed")

# Task 3 ends once amid its rows, and task 5 once when its file is complete: by a kill, or task 3 by an error.
TROUBLE = """
import os, sys, time, ray_rows
from pathlib import Path

folder, marks, how = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
marks.mkdir(exist_ok=True)

class Trouble(ray_rows.Rows):
    def write(self, blocks, ctx):
        rows = super().write(self.halves(blocks, ctx), ctx)
        if ctx.task_idx == 5 and how == "kill" and not (marks / "complete").exists():
            assert os.path.exists(f"{self.draft}/000005.parquet")
            (marks / "complete").touch()
            os._exit(1)
        return rows

    def halves(self, blocks, ctx):
        for block in blocks:
            yield block.slice(0, 50)
            if ctx.task_idx == 3 and not (marks / "amid").exists():
                while not any("000003.parquet" in name for name in os.listdir(self.draft)):
                    time.sleep(0.01)
                assert not os.path.exists(f"{self.draft}/000003.parquet")
                (marks / "amid").touch()
                if how == "kill":
                    os._exit(1)
                raise ValueError("no more rows")
            yield block.slice(50)

ray_rows.Rows = Trouble
ray_rows.main(str(folder))
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Done]]:
    # The paths of Ray's sockets have to be short.
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as short:
        env = {
            **os.environ,
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
            "HOME": str(tmp_path),
            "PYTHONPATH": str(EXAMPLES),
            "RAY_TMPDIR": short,
            "RAY_USAGE_STATS_ENABLED": "0",
        }

        def runs(*arguments: str) -> Done:
            command = [sys.executable, *arguments]
            return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)

        yield runs


def require_all_rows_once(folder: Path) -> None:
    assert sorted(os.listdir(folder)) == FILES
    table = pq.read_table(folder)
    ids = table["id"].to_numpy()
    assert sorted(ids.tolist()) == list(range(1000))
    found = table["embedding"].combine_chunks().flatten().to_numpy().reshape(1000, 16)
    assert found.dtype == np.float32
    torch.manual_seed(0)
    lines = torch.nn.Embedding(1000, 16).weight.detach().double().numpy()[ids]
    centred = lines - lines.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def output_of(done: Done) -> str:
    return f"{done.stdout[-4000:]}{done.stderr[-4000:]}"


@needs_ray
def test_rows_of_ray_data(tmp_path: Path, run: Callable[..., Done]) -> None:
    done = run(str(EXAMPLES / "ray_rows.py"), str(tmp_path / "rows"))
    assert done.returncode == 0, output_of(done)
    assert "(1000,) (1000, 16)" in done.stdout
    require_all_rows_once(tmp_path / "rows")
    assert not list(tmp_path.glob("rows.*"))


@needs_ray
def test_tasks_that_are_killed_and_run_again_write_each_row_once(tmp_path: Path, run: Callable[..., Done]) -> None:
    done = run("-c", TROUBLE, str(tmp_path / "rows"), str(tmp_path / "marks"), "kill")
    assert done.returncode == 0, output_of(done)
    assert sorted(os.listdir(tmp_path / "marks")) == ["amid", "complete"]
    require_all_rows_once(tmp_path / "rows")
    assert not list(tmp_path.glob("rows.*"))


@needs_ray
def test_a_task_that_fails_leaves_no_folder(tmp_path: Path, run: Callable[..., Done]) -> None:
    done = run("-c", TROUBLE, str(tmp_path / "rows"), str(tmp_path / "marks"), "raise")
    assert done.returncode != 0
    assert "no more rows" in done.stderr
    assert os.listdir(tmp_path / "marks") == ["amid"]
    assert not list(tmp_path.glob("rows*"))
