"""Runs Python code in an interpreter of its own: for code that may kill one, and for what happens at exit."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

__all__ = ["run_python", "stdout_of"]

_TESTS = Path(__file__).parents[1]


def run_python(code: str, *, timeout_s: float = 180) -> subprocess.CompletedProcess[str]:
    """Run `code` in a fresh interpreter with this one's environment.

    Parameters
    ----------
    code : str
        A program; common indentation is removed. It can import these helpers.
    timeout_s : float
        Seconds after which it is killed and ``subprocess.TimeoutExpired`` raised.

    Returns
    -------
    subprocess.CompletedProcess
        With ``stdout`` and ``stderr`` as text; a negative ``returncode`` is the number of the signal that killed it.
    """
    paths = [str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def stdout_of(code: str, *, timeout_s: float = 180) -> str:
    """Return what `code` prints, stripped; fail the test unless it exits with 0 and an empty stderr."""
    finished = run_python(code, timeout_s=timeout_s)
    assert finished.returncode == 0, f"exit code {finished.returncode}\n{finished.stdout}\n{finished.stderr}"
    assert finished.stderr == "", finished.stderr
    return finished.stdout.strip()
