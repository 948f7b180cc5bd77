"""Runs races on the double of the NVIDIA driver, in a process of its own, and judges what came of them.

The double is part of the project's tests: five thousand lines of C++ that an installed package has no other use for. So
it is not shipped, but built from a checkout, once, and kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tensorferry._errors import FerryError, MissingDependencyError

__all__ = ["Nest", "Race", "Report", "document", "is_checkout", "run"]

_PROGRAM = Path("tools", "race.py")
_TIMEOUT_S = 600  # a first run compiles the double
_ENQUEUES = ("cuMemcpy", "cuEventRecord", "cuCtxRecordEvent", "cuStreamWaitEvent", "cuLaunch")
_WAITS = ("cuEventQuery", "cuEventSynchronize", "cuStreamQuery", "cuStreamSynchronize", "cuCtxSynchronize")
_KEPT_SETTINGS = ("TENSORFERRY_FAKE_CUDA", "TENSORFERRY_TEST_CACHE")


@dataclass(frozen=True)
class Race:
    """One way to read, tried once for each seed.

    Attributes
    ----------
    code : str
        How was read.
    rule : str
        The rule that was switched off; "" when none was.
    schedule : str
        "lazy" runs the device's work as late as it may, "shuffled" in a random order that is allowed.
    seeds : int
        How often.
    wrong : int
        How often something else was read than the device had written.
    poisoned : int
        How often that was what the double fills the destination with while a copy is in flight.
    first_wrong_seed : int or None
        The first seed with a wrong value.
    orders : int
        Distinct orders in which the device's work ran.
    violations : list of str
        What the documentation of the driver forbids and was done nevertheless.
    """

    code: str
    rule: str
    schedule: str
    seeds: int
    wrong: int
    poisoned: int
    first_wrong_seed: int | None
    orders: int
    violations: list[str]


@dataclass(frozen=True)
class Nest:
    """Many tensors in one call: how many, how many of them came out wrong, and all calls of the driver, in order."""

    code: str
    tensors: int
    wrong: int
    trace: list[str]
    violations: list[str]

    @property
    def work(self) -> list[str]:
        """The calls that enqueue, record or wait; the others ask about contexts and captures."""
        return [line for line in self.trace if line.startswith((*_ENQUEUES, *_WAITS))]

    @property
    def copies(self) -> int:
        """Copies from the device."""
        return sum(line.startswith("cuMemcpy") for line in self.trace)

    @property
    def events(self) -> int:
        """Records of events."""
        return sum(line.startswith(("cuEventRecord", "cuCtxRecordEvent")) for line in self.trace)

    @property
    def waits(self) -> int:
        """Times that the host waited; asking an event again and again is one."""
        waiting = [line.startswith(_WAITS) for line in self.work]
        return sum(now and not before for before, now in zip([False, *waiting], waiting, strict=False))

    @property
    def is_one_batch(self) -> bool:
        """Was everything enqueued, and then waited for once?"""
        return (self.copies, self.events, self.waits) == (self.tensors, 1, 1)


@dataclass(frozen=True)
class Report:
    """All of it: the usual way, ours, ours with one rule switched off, and a nest."""

    usual: list[Race]
    ours: list[Race]
    switched_off: list[Race]
    nest: Nest
    seconds: float

    def complaints(self) -> list[str]:
        """Tell what did not come out as it must."""
        found = [f"{race.code}: {race.wrong:,} of {race.seeds:,} wrong" for race in self.ours if race.wrong]
        if self.nest.wrong:
            found.append(f"{self.nest.code}: {self.nest.wrong:,} of {self.nest.tensors:,} tensors wrong")
        if not self.nest.is_one_batch:
            found.append(f"{self.nest.code}: not one event and one wait, but {self.nest.events} and {self.nest.waits}")
        clean: list[Race | Nest] = [*self.ours, self.nest]
        found += [f"{each.code}: {each.violations[0]}" for each in clean if each.violations]
        lazy = [race for race in self.usual if race.schedule == "lazy" and race.poisoned != race.seeds]
        found += [f"the usual way was right {race.seeds - race.poisoned:,} times: no race was shown" for race in lazy]
        missed = {race.rule for race in self.switched_off} - {race.rule for race in self.switched_off if race.wrong}
        return found + [f'the check did not notice that "{rule}" was switched off' for rule in sorted(missed)]


def is_checkout(directory: Path) -> bool:
    """Is this the root of a checkout of the project?"""
    return (directory / _PROGRAM).is_file() and (directory / "tests" / "fake_cuda").is_dir()


def run(progress: Callable[[str], None], checkout: Path | None = None, seeds: int = 1000) -> Report:
    """Run all races; some seconds, and up to a minute more when the double has to be built.

    Parameters
    ----------
    progress : callable
        Takes a line of text that says what begins.
    checkout : path, optional
        Where the project is checked out. Left out, the place this package was installed from in editable mode, or a
        directory above the current one.
    seeds : int
        How many orders to try for each race.

    Raises
    ------
    MissingDependencyError
        When there is no checkout.
    FerryError
        When the program did not end well: no compiler, for example.
    """
    program = (checkout or _find_checkout()) / _PROGRAM
    progress("racing on a simulated device; the first run compiles it ...")
    started = time.perf_counter()
    found = _output_of([sys.executable, str(program), "--seeds", str(seeds)])
    races = {name: [Race(**race) for race in found[name]] for name in ("usual", "ours", "switched_off")}
    return Report(**races, nest=Nest(**found["nest"]), seconds=time.perf_counter() - started)


def document(report: Report) -> dict[str, Any]:
    """Return plain values for JSON."""
    complaints = report.complaints()
    return {"ok": not complaints, "simulated": True, "complaints": complaints, **asdict(report)}


def _find_checkout() -> Path:
    here = Path.cwd()
    for directory in (*Path(__file__).resolve().parents, here, *here.parents):
        if is_checkout(directory):
            return directory
    raise MissingDependencyError(
        "tensorferry demo race",
        "it runs on a double of the NVIDIA driver, which is part of the project's sources and not of the package",
        "check the project out, and run it there or with --checkout DIRECTORY; a C++20 compiler is needed, too",
    )


def _output_of(command: list[str]) -> dict[str, Any]:
    # What the caller has set for the product would change what is shown.
    ours = {name: value for name, value in os.environ.items() if not name.startswith("TENSORFERRY_")}
    ours.update({name: os.environ[name] for name in _KEPT_SETTINGS if name in os.environ})
    try:
        ended = subprocess.run(command, env=ours, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise _failed(command, f"no answer within {_TIMEOUT_S} s") from None
    if ended.returncode != 0:
        raise _failed(command, ended.stderr.strip().rpartition("\n")[2] or f"exit code {ended.returncode}")
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def _failed(command: list[str], why: str) -> FerryError:
    return FerryError("tensorferry demo race", why, f"run it by itself to see all it says: {' '.join(command)}")
