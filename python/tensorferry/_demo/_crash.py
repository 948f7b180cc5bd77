"""Kills processes in the middle of a save, at random moments, and counts the files that nobody can read any more."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from tensorferry import _torch
from tensorferry._demo import _crash_child
from tensorferry._errors import FerryError

__all__ = ["Report", "Side", "document", "run"]

_TENSORS = 64


@dataclass(frozen=True)
class Side:
    """One way to save, killed again and again.

    Attributes
    ----------
    code : str
        How was saved.
    is_ours : bool
        Is it tensorferry's?
    kills : int
        How often its process was killed.
    whole : int
        How often the file was one version of the state, all of it.
    unreadable : int
        How often no reader could read it: the version before is lost as well.
    mixed : int
        How often it was readable, and wrong.
    left_nbytes : int
        Bytes of temporary files that lay there in the end, after one more save.
    save_s : float
        Seconds of a save without a kill.
    """

    code: str
    is_ours: bool
    kills: int
    whole: int
    unreadable: int
    mixed: int
    left_nbytes: int
    save_s: float

    @property
    def harmless(self) -> bool:
        """Was every file whole?"""
        return self.whole == self.kills


@dataclass(frozen=True)
class Report:
    """All sides, with how much each save wrote, and the seed of the moments."""

    sides: list[Side]
    nbytes: int
    seed: int
    seconds: float

    @property
    def ok(self) -> bool:
        """Was every file of ours whole, and nothing left beside them?"""
        return all(side.harmless and not side.left_nbytes for side in self.sides if side.is_ours)


@dataclass(frozen=True)
class _Way:
    kind: str
    code: str
    file: str
    read: Callable[[str], dict[str, Any]]


def run(progress: Callable[[str], None], kills: int = 40, nbytes: int = 16 << 20, seed: int | None = None) -> Report:
    """Kill each way of saving `kills` times; some seconds for each.

    Parameters
    ----------
    progress : callable
        Takes a line of text that says what begins.
    kills : int
        How often each.
    nbytes : int
        How much a save writes.
    seed : int, optional
        Of the moments; a random one if left out.

    Raises
    ------
    MissingDependencyError
        When torch is not installed.
    FerryError
        When the system cannot fork, or the process that saves cannot be started.
    """
    _torch.require("tensorferry demo crash")
    if not hasattr(os, "fork"):
        raise FerryError("tensorferry demo crash", "this system cannot fork processes", "run it on Linux or macOS")
    began = time.perf_counter()
    seed = random.SystemRandom().randrange(1 << 31) if seed is None else seed
    moments = random.Random(seed)
    sides = []
    with _child(nbytes) as ask, tempfile.TemporaryDirectory(prefix="tensorferry-crash-") as folder:
        for way in _ways():
            progress(f"killing {way.code} {kills:,} times ...")
            sides.append(_tried(way, ask, Path(folder, way.kind), kills, moments))
    return Report(sides, nbytes, seed, time.perf_counter() - began)


def document(report: Report) -> dict[str, Any]:
    """Return plain values for JSON."""
    return {"ok": report.ok, **asdict(report)}


def _ways() -> Iterator[_Way]:
    yield _Way("torch", "torch.save(state, path)", "model.pt", _with_torch)
    if importlib.util.find_spec("safetensors") is not None:
        yield _Way("safetensors", "safetensors.torch.save_file(state, path)", "model.safetensors", _with_safetensors)
    yield _Way("torch-renamed", "torch.save(state, temporary); os.replace(temporary, path)", "model.pt", _with_torch)
    yield _Way("ours", 'ferry.save(state, "model.safetensors", overwrite=True)', "model.safetensors", _with_us)
    yield _Way("ours-folder", 'ferry.save(state, "model/", overwrite=True)', "model/", _with_us)


def _with_torch(path: str) -> dict[str, Any]:
    import torch

    state: dict[str, Any] = torch.load(path, weights_only=True)
    return state


def _with_safetensors(path: str) -> dict[str, Any]:
    from safetensors.torch import load_file

    state: dict[str, Any] = load_file(path)
    return state


def _with_us(path: str) -> dict[str, Any]:
    import tensorferry

    state: dict[str, Any] = tensorferry.load(path, to="torch")
    return state


def _tried(way: _Way, ask: Callable[[str], Iterator[str]], folder: Path, kills: int, moments: random.Random) -> Side:
    folder.mkdir()
    path = f"{folder}/{way.file}"
    save_s = min(float(next(ask(f"time {way.kind} {path}")).split()[1]) for _ in range(3))
    found = {"whole": 0, "unreadable": 0, "mixed": 0}
    for _ in range(kills):
        answers = ask(f"{way.kind} {path}")
        child = int(next(answers).split()[1])
        time.sleep(moments.uniform(0, 2.5 * save_s))
        os.kill(child, signal.SIGKILL)
        next(answers)
        found[_state_of(way, path)] += 1
        if found["unreadable"]:
            shutil.rmtree(path) if os.path.isdir(path) else Path(path).unlink(missing_ok=True)
            next(ask(f"time {way.kind} {path}"))  # so that each kill meets a whole file
    next(ask(f"time {way.kind} {path}"))
    kept = Path(path)
    left = sum(
        file.stat().st_size for file in folder.rglob("*") if file.is_file() and kept not in (file, *file.parents)
    )
    return Side(way.code, way.kind.startswith("ours"), kills, **found, left_nbytes=left, save_s=save_s)


def _state_of(way: _Way, path: str) -> str:
    try:
        version = _crash_child.version_of(way.read(path), _TENSORS)
    except Exception:  # the readers raise whatever a torn file leads them to
        return "unreadable"
    return "mixed" if version is None else "whole"


@contextmanager
def _child(nbytes: int) -> Iterator[Callable[[str], Iterator[str]]]:
    command = [sys.executable, "-m", "tensorferry._demo._crash_child", str(nbytes), str(_TENSORS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        requests, answers = _pipe(process.stdin), _pipe(process.stdout)

        def ask(line: str) -> Iterator[str]:
            requests.write(f"{line}\n")
            requests.flush()
            while True:
                answer = answers.readline()
                if not answer:
                    raise FerryError("tensorferry demo crash", "the process that saves has ended", "see what it said")
                yield answer

        try:
            yield ask
        finally:
            requests.close()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
