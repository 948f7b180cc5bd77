"""Readers while files are replaced; and what the process holds while it writes, whatever the size of the tree."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import tensorferry as ferry

VERSIONS = 150


def _of_safetensors(path: str) -> dict[str, Any]:
    return safetensors.numpy.load_file(path)


def _of_numpy(path: str) -> dict[str, Any]:
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def _of_us(path: str) -> dict[str, Any]:
    return {name: np.array(array) for name, array in ferry.load(path).items()}


READERS = {
    "the safetensors library": (".safetensors", _of_safetensors),
    "NumPy": (".npz", _of_numpy),
    "tensorferry, a file": (".safetensors", _of_us),
    "tensorferry, a folder": ("/", _of_us),
    "tensorferry, shards": (".safetensors", _of_us),
}


def _tree(version: int) -> dict[str, np.ndarray]:
    """Values and sizes that tell the version."""
    return {f"w{i}": np.full(1000 + 8 * version + i, version, np.int64) for i in range(8)}


@pytest.mark.parametrize(("end", "read"), READERS.values(), ids=READERS)
def test_a_reader_sees_whole_versions(tmp_path: Path, request: Any, end: str, read: Any) -> None:
    path = f"{tmp_path}/x{end}"
    shards = {"max_shard_size": "40kB"} if "shards" in request.node.name else {}
    ferry.save(_tree(0), path, **shards)
    seen: list[int] = []
    wrong: list[object] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set() or not seen:
            try:
                found = read(path).values()
                values = {
                    int(value) for array in found for value in (array.min(), array.max(), (array.size - 1000) // 8)
                }
            except Exception as error:
                wrong.append(error)
                return
            if len(values) != 1:
                wrong.append(values)
                return
            seen.append(values.pop())

    readers = [threading.Thread(target=watch) for _ in range(2)]
    for reader in readers:
        reader.start()
    for version in range(1, VERSIONS + 1):
        ferry.save(_tree(version), path, overwrite=True, **shards)
    over.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert len(set(seen)) > 1
    assert set(seen) <= set(range(VERSIONS + 1))
    assert int(read(path)["w0"][0]) == VERSIONS


# Writes a tensor that has almost no memory of its own; prints how much the most was that the process held.
PROGRAM = """
import sys, torch, tensorferry as ferry
rows, path, dtype = int(sys.argv[1]), sys.argv[2], sys.argv[3] or None
def peak():
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmHWM"))
x = torch.arange(1 << 18).float().expand(rows, -1)
ferry.save({"x": x[:2]}, path + "warm.safetensors", dtype=dtype, max_staging_bytes="4MiB")
before = peak()
report = ferry.save({"x": x, "y": x[:, ::2]}, path + "x.safetensors", dtype=dtype, max_staging_bytes="4MiB")
print(report.nbytes, peak() - before)
"""


def _grown(path: Path, rows: int, dtype: str) -> tuple[int, int]:
    command = [sys.executable, "-c", PROGRAM, str(rows), f"{path}/{rows}", dtype]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert finished.returncode == 0, finished.stderr
    nbytes, grown = map(int, finished.stdout.split())
    return nbytes, grown


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
@pytest.mark.parametrize("dtype", ["", "float16"], ids=["packed", "converted"])
def test_a_tree_ten_times_larger_takes_no_more_memory(tmp_path: Path, dtype: str) -> None:
    small, large = _grown(tmp_path, 20, dtype), _grown(tmp_path, 200, dtype)
    assert large[0] == 10 * small[0] >= 150 << 20
    assert large[1] <= (4 << 20) + (4 << 20)  # the blocks, and pages of threads and headers
