"""A durable folder of many files: each is flushed before the rename, while others are written; none stays open."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.faulty_system import names_of
from tensorferry._io.save import save
from tensorferry._io.system import System

COUNT = 150
TREE = {f"w{i}": np.arange(i + 1.0) for i in range(COUNT)}


class Watched(System):
    """Notes which files were flushed when the folder got its name, and how many were open at once."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.flushed: list[int] = []
        self.at_rename: list[int] = []
        self.most_open = 0
        self._open: set[int] = set()
        self._fails_at = fails_at

    def open_new(self, path: str) -> int:
        fd = super().open_new(path)
        self._open.add(fd)
        self.most_open = max(self.most_open, len(self._open))
        return fd

    def close(self, fd: int) -> None:
        self._open.discard(fd)
        super().close(fd)

    def fsync(self, fd: int) -> None:
        if len(self.flushed) == self._fails_at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().fsync(fd)
        self.flushed.append(os.fstat(fd).st_ino)

    def rename_new(self, source: str, target: str) -> None:
        self.at_rename = list(self.flushed)
        super().rename_new(source, target)


def test_every_file_is_flushed_before_the_folder_has_its_name(tmp_path: Path) -> None:
    system = Watched()
    save(TREE, f"{tmp_path}/x/", durable=True, system=system)
    files = {path.stat().st_ino for path in (tmp_path / "x").iterdir()}
    assert len(files) == COUNT + 1
    assert files <= set(system.at_rename)
    assert 2 < system.most_open <= 70
    assert all(np.array_equal(array, TREE[name]) for name, array in ferry.load(f"{tmp_path}/x").items())


@pytest.mark.parametrize("fails_at", [0, 40, COUNT - 1, COUNT])
def test_a_flush_that_fails_leaves_neither_files_nor_open_ones(tmp_path: Path, fails_at: int) -> None:
    def opened() -> Any:
        return sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None

    save(TREE, f"{tmp_path}/warm/")
    before = opened()
    with pytest.raises(ferry.ExportError, match="EIO"):
        save(TREE, f"{tmp_path}/x/", durable=True, system=Watched(fails_at))
    assert names_of(tmp_path) == ["warm"]
    assert opened() == before
