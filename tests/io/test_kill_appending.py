"""``kill -9`` of processes that append rows: NumPy reads whole rows after each, and the next process goes on."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = int(os.environ.get("TENSORFERRY_KILLS", "100"))


@pytest.mark.parametrize("name", ["x.npy", "x/", "x.zarr"], ids=["one file", "a folder", "a Zarr group"])
def test_no_kill_breaks_or_loses_rows(tmp_path: Path, name: str) -> None:
    seed = secrets.randbits(32)
    command = [sys.executable, "-m", "helpers.append_roulette", f"{tmp_path}/{name}", str(KILLS), str(seed)]
    tests = Path(__file__).parents[1]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=tests)
    print(f"seed {seed}")
    assert finished.returncode == 0, finished.stderr
    counts = json.loads(finished.stdout)
    print(counts)
    assert counts["broken"] == counts["lost"] == 0
    assert counts["grew"] > KILLS // 4
