"""For directories of tests that change the process for good, and so run in one of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["is_alone", "require_collected_alone", "require_passed", "run_suite"]

_ROOT = Path(__file__).parents[2]


def is_alone(config: pytest.Config, directory: Path) -> bool:
    """Was pytest asked for tests of `directory` only?"""
    started_in = config.invocation_params.dir
    asked = [(started_in / argument.split("::")[0]).resolve() for argument in config.args]
    return bool(asked) and all(path == directory or directory in path.parents for path in asked)


def run_suite(tests: Path, *, timeout_s: float = 900) -> str:
    """Run a file or directory of tests in a process of its own; return pytest's last line, or fail with all it said."""
    finished = _pytest(str(tests), timeout_s=timeout_s)
    assert finished.returncode == 0, f"exit code {finished.returncode}\n{finished.stdout[-20000:]}\n{finished.stderr}"
    return finished.stdout.strip().splitlines()[-1]


def require_passed(tests: Path, at_least: int, *, timeout_s: float = 900) -> None:
    """Run them in a process of their own, and fail unless so many pass and none does anything else."""
    last_line = run_suite(tests, timeout_s=timeout_s)
    counts = {word.rstrip("s"): int(number) for number, word in re.findall(r"(\d+) (\w+)", last_line)}
    assert counts.get("passed", 0) >= at_least, last_line
    assert not {"skipped", "failed", "error", "xfailed", "xpassed", "deselected"} & set(counts), last_line


def require_collected_alone(tests: Path, beside: str) -> None:
    """Fail if pytest collects anything of `tests` when it is asked for the file `beside`, too."""
    finished = _pytest("--collect-only", str(tests), beside, timeout_s=120)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert Path(beside).name in finished.stdout
    assert f"{tests.name}/test_" not in finished.stdout


def _pytest(*arguments: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
