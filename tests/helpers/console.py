"""Runs the console command, in this process or in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tensorferry.cli import main


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """The JSON on stdout."""
        return json.loads(self.stdout)


def run_here(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Ran:
    """Run the command in this process, in a terminal of 110 columns."""
    capsys.readouterr()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "110"
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    captured = capsys.readouterr()
    return Ran(code, captured.out, captured.err)


def run_outside(*arguments: str, without: tuple[str, ...] = (), columns: int = 110, **environment: str) -> Ran:
    """Run the command in a new interpreter, in which the modules `without` cannot be imported."""
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({without!r})); "
        f"from tensorferry.cli import main; sys.exit(main({list(arguments)!r}))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
        env={**os.environ, "COLUMNS": str(columns), **environment},
    )
    return Ran(finished.returncode, finished.stdout, finished.stderr)
