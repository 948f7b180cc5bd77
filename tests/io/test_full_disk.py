"""Real limits of the system: files that may not grow, and a small file system where one can be mounted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.saved_trees import FORMATS

# Saves little, then tries to save too much; prints the errors' numbers, and what is there then.
PROGRAM = """
import json, os, resource, signal, sys
import numpy as np
from tensorferry import ExportError, load
from tensorferry._io.save import save
path, limit = sys.argv[1], int(sys.argv[2])
if limit:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
errors, old = [], None
try:
    save({"old": np.arange(1000)}, path)
except ExportError as error:
    errors.append(error.errno)
for streamed in (False, True):
    for strided in (False, True):
        x = np.ones((1000, 2000))[:, ::2] if strided else np.ones((1000, 1000))
        pairs = [("small", np.ones(3)), ("large", x)]
        try:
            save(iter(pairs) if streamed else pairs, path, overwrite=True, max_staging_bytes=1 << 20)
        except ExportError as error:
            errors.append(error.errno)
if os.path.lexists(path):
    old = int(load(path)["old"].sum())
print(json.dumps({"errors": errors, "old": old, "names": sorted(os.listdir(os.path.dirname(path.rstrip("/"))))}))
"""


def _run(path: str, limit_nbytes: int, *prefix: str) -> Any:
    command = [*prefix, sys.executable, "-c", PROGRAM, path, str(limit_nbytes)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def _in_small_file_system(folder: Path | str) -> tuple[str, ...]:
    return ("unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=4m tmpfs {folder} && exec "$@"', "sh")


def _means() -> list[str]:
    """Say what this machine allows; a file system can be mounted where user namespaces are allowed."""
    try:
        tried = subprocess.run([*_in_small_file_system("/mnt"), "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return ["files that may not grow"]
    return ["files that may not grow", *(["a full file system"] if tried.returncode == 0 else [])]


@pytest.mark.parametrize("end", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("means", _means())
def test_a_save_without_room_keeps_what_was_there_and_nothing_else(tmp_path: Path, end: str, means: str) -> None:
    if means == "a full file system":
        found = _run(f"{tmp_path}/x{end}", 0, *_in_small_file_system(tmp_path))
    else:
        found = _run(f"{tmp_path}/x{end}", 1 << 20)
    number = 28 if means == "a full file system" else 27  # ENOSPC, EFBIG
    assert found == {"errors": [number] * 4, "old": 499_500, "names": [f"x{end}".rstrip("/")]}


def test_a_folder_without_rights_is_named(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    # Root may write anywhere, unless it gives up that power.
    powerless = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()
    found = _run(f"{locked}/x.npz", 0, *powerless)
    assert found == {"errors": [13] * 5, "old": None, "names": []}  # EACCES
