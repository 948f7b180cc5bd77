"""Kills processes that save, at random moments, and reads what is there after each; run as a program of its own.

Arguments: where the saves go, by its end in which format, how many kills, seed. Prints JSON: how often there was no
file, a whole one, a broken one, how often a save had come to its end, and how often a temporary file had been begun.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time

import numpy as np
import safetensors.numpy

from helpers.moments import Moments
from tensorferry._io.save import save

_SIZES = (3, 4_000, 160_000)  # the last is written by a thread


def _values(version: int) -> dict[str, np.ndarray]:
    return {f"part{i}": np.full(size, version, np.int64) for i, size in enumerate(_SIZES)}


def _save_forever(path: str) -> None:
    version = os.getpid()
    while True:
        save(_values(version), path, overwrite=True, checksum="crc32c", durable=version % 16 == 0)
        version += 1


def _read(path: str) -> dict[str, np.ndarray]:
    if path.endswith(".safetensors"):
        return safetensors.numpy.load_file(path)
    if path.endswith(".npz"):
        with np.load(path) as archive:
            return {name: archive[name] for name in archive.files if name != "__metadata__"}
    return {name[:-4]: np.load(os.path.join(path, name)) for name in os.listdir(path) if name.endswith(".npy")}


def _state(path: str) -> str:
    """Read with the libraries of others, and compare every value."""
    if not os.path.lexists(path):
        return "absent"
    try:
        found = _read(path)
    except Exception:
        return "broken"
    versions = {int(value) for array in found.values() for value in np.unique(array)}
    sizes = tuple(found[name].size for name in sorted(found))
    return "whole" if len(versions) == 1 and sizes == _SIZES else "broken"


def _when_made(path: str) -> int | None:
    return os.stat(path).st_mtime_ns if os.path.lexists(path) else None


def _seconds_of_a_save(path: str) -> float:
    """Save twice beside; the first time everything is imported, so that no child spends its life with that."""
    end = "/" if path.endswith("/") else path[path.rindex(".") :]
    warm = os.path.join(os.path.dirname(path.rstrip("/")), f"warm{end}")
    save(_values(0), warm, checksum="crc32c")
    began = time.perf_counter()
    save(_values(1), warm, checksum="crc32c", overwrite=True)
    took = time.perf_counter() - began
    shutil.rmtree(warm) if end == "/" else os.unlink(warm)
    return took


def main() -> None:
    """Play."""
    path, kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    folder = os.path.dirname(path.rstrip("/"))
    counts = {"absent": 0, "whole": 0, "broken": 0, "replaced": 0, "interrupted": 0}
    moments = Moments(random.Random(seed), usual=2 * _seconds_of_a_save(path))
    for _ in range(kills):
        before = _when_made(path)
        pid = os.fork()
        if pid == 0:
            _save_forever(path)
        time.sleep(moments.next())
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        replaced = _when_made(path) != before
        moments.learn(replaced)
        counts["replaced"] += replaced
        counts[_state(path)] += 1
        counts["interrupted"] += any(name.endswith(".ferry-tmp") for name in os.listdir(folder))
    save(_values(0), path, overwrite=True)
    counts["left"] = sum(name.endswith(".ferry-tmp") for name in os.listdir(folder))
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
