"""``kill -9`` at random moments: readers of others find the old file, the new one, or none, never a broken one."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.saved_trees import FORMATS

KILLS = int(os.environ.get("TENSORFERRY_KILLS", "100"))  # for each format


@pytest.mark.parametrize("end", FORMATS.values(), ids=FORMATS)
def test_no_kill_breaks_a_file(tmp_path: Path, end: str) -> None:
    seed = secrets.randbits(32)
    command = [sys.executable, "-m", "helpers.kill_roulette", f"{tmp_path}/x{end}", str(KILLS), str(seed)]
    tests = Path(__file__).parents[1]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=tests)
    print(f"seed {seed}")
    assert finished.returncode == 0, finished.stderr
    counts = json.loads(finished.stdout)
    assert counts["broken"] == 0
    assert counts["absent"] + counts["whole"] == KILLS
    assert counts["replaced"] > KILLS // 4
    assert counts["interrupted"] > 0
    assert counts["left"] == 0
