"""Runs accidents of torch and NumPy beside tensorferry; those that may kill the interpreter run in another one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from tensorferry import _torch

__all__ = ["TRAPS", "Observation", "Trap", "document", "run"]

_PROBE_TIMEOUT_S = 120


@dataclass(frozen=True)
class Story:
    """An accident: what it is called, the code on both sides, and whether it needs a process of its own.

    It does when it may kill the process, or when a warning that counts is given once per process.
    """

    name: str
    title: str
    usual: str
    ours: str
    alone: bool = False


TRAPS = (
    Story(
        "gradient",
        "A write through .numpy() destroys a gradient",
        "y = t.exp(); y.detach().numpy()[:] = 0; y.sum().backward()",
        "to_numpy(y)[:] = 0, and with writable(y) as a: a[:] = 0",
    ),
    Story(
        "negative",
        "A negative view changes its sign",
        "np.from_dlpack(torch.tensor([1 + 2j]).conj().imag)",
        'to_numpy(...) and from_dlpack(..., to="numpy", copy=None)',
    ),
    Story(
        "strides",
        "A reversed array kills the process",
        "torch.from_dlpack(np.arange(4.0)[::-1])",
        "from_numpy(np.arange(4.0)[::-1]) and from_dlpack(...)",
        alone=True,
    ),
    Story(
        "mean",
        "The mean of 1,000 ones is not 1",
        "ones.view(torch.uint16).numpy().view(ml_dtypes.bfloat16).mean()",
        'to_numpy(ones), and to_numpy(ones, dtype="numpy").mean()',
        alone=True,
    ),
    Story(
        "readonly",
        "A read-only array is overwritten",
        "torch.from_numpy(read_only)[0] = 9",
        "from_numpy(read_only)[0] = 9",
    ),
    Story(
        "mapped",
        "A write to a read-only memory map kills the process",
        'torch.from_numpy(np.load(path, mmap_mode="r"))[0] = 9',
        'from_numpy(np.load(path, mmap_mode="r"))[0] = 9',
        alone=True,
    ),
)


@dataclass(frozen=True)
class Observation:
    """What one side did when it was run just now.

    Attributes
    ----------
    code : str
        The code that was run.
    right : bool
        Was the result right, or the mistake refused by an error? False when the process died.
    seen : str
        What happened.
    signal : str
        Name of the signal that ended the process; "" when none did.
    """

    code: str
    right: bool
    seen: str
    signal: str = ""


@dataclass(frozen=True)
class Trap:
    """An accident with both sides' outcome; `usual` is right where this version no longer has it."""

    name: str
    title: str
    usual: Observation
    ours: Observation


def run(progress: Callable[[str], None]) -> list[Trap]:
    """Run every accident, on both sides; about ten seconds.

    Raises
    ------
    MissingDependencyError
        Without torch.
    """
    _torch.require("tensorferry demo traps")
    found = []
    for story in TRAPS:
        where = "in a process of its own" if story.alone else "here"
        progress(f"{story.title}: running {where} ...")
        observe = _observe_outside if story.alone else _observe_here
        usual = observe(f"{story.name}_usual", story.usual)
        ours = observe(f"{story.name}_ours", story.ours)
        found.append(Trap(story.name, story.title, usual, ours))
    return found


def document(traps: list[Trap]) -> dict[str, Any]:
    """Return plain values for JSON."""
    return {"ok": all(trap.ours.right for trap in traps), "traps": [asdict(trap) for trap in traps]}


def _observe_here(probe: str, code: str) -> Observation:
    from tensorferry._demo._probes import PROBES

    try:
        outcome = PROBES[probe]()
    except Exception as error:  # an accident that became an error is an outcome like any other
        return Observation(code, False, f"{type(error).__name__}: {error}")
    return Observation(code, outcome.right, outcome.seen)


def _observe_outside(probe: str, code: str) -> Observation:
    command = [sys.executable, "-m", "tensorferry._demo._probes", probe]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return Observation(code, False, f"no answer within {_PROBE_TIMEOUT_S} s")
    if finished.returncode == 0:
        outcome = json.loads(finished.stdout)
        return Observation(code, bool(outcome["right"]), str(outcome["seen"]))
    if finished.returncode < 0:
        name = signal.Signals(-finished.returncode).name
        return Observation(code, False, f"the process died of {name}", name)
    last_line = finished.stderr.strip().rpartition("\n")[2]
    return Observation(code, False, f"exit code {finished.returncode}: {last_line}")
