"""What importing the package costs a process that has imported torch and NumPy.

A server that has both forks a child for every call; the child imports one thing and ends. Forking takes milliseconds
and varies, so the goal of 30 ms is a candidate as well: a child that sleeps for as long.
"""

from __future__ import annotations

import subprocess
import sys
from typing import IO

import numpy as np

from tensorferry.bench import Case, Inputs, at_most, best, ours

__all__ = ["CASES"]

_SERVER = """
import os, sys, time, traceback
import numpy, torch
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            exec(line)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class _Forks:
    """A process with torch and NumPy, and children of it on demand. It ends when this object dies."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answer()

    def run(self, line: str) -> int:
        """Run one line of Python in a child, wait for its end, and return its exit code."""
        requests = self._pipe(self._process.stdin)
        requests.write(line + "\n")
        requests.flush()
        return int(self._answer())

    def _answer(self) -> str:
        answer = self._pipe(self._process.stdout).readline().strip()
        if not answer:
            raise RuntimeError("the process that forks children has ended")
        return answer

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe

    def __del__(self) -> None:
        process = getattr(self, "_process", None)
        if process is not None:
            process.communicate()  # closes its input, at which it ends


def _setup(rng: np.random.Generator) -> Inputs:
    return {"forks": _Forks()}


_BUDGET = "a sleep of 30 ms"

CASES = (
    Case(
        name="import_time.package",
        title="Importing the package after torch and NumPy, in a forked child, files in the cache",
        setup=_setup,
        candidates=(
            ours("import tensorferry", 'forks.run("import tensorferry")'),
            best(_BUDGET, 'forks.run("time.sleep(0.030)")'),
            best("import safetensors.torch", 'forks.run("import safetensors.torch")', needs=("safetensors",)),
        ),
        expected=lambda inputs: 0,
        goals=(at_most(1.0, _BUDGET),),
    ),
)
