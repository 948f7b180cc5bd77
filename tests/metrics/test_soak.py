"""Memory stays flat however many steps are logged; tools/soak_metrics.py runs a million."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_memory_does_not_grow_with_the_steps():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "soak_metrics.py"), "--steps", "20000", "--metrics", "5"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "22,000 of 22,000 steps" in done.stdout
