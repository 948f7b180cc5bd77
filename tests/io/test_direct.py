"""Direct I/O: chosen for durable saves where it was measured to be faster, with the same bytes in the file."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.saved_trees import FORMATS, same_bits, tree
from tensorferry._io import medium
from tensorferry._io.save import save
from tensorferry._io.system import System


class SlowSystem(System):
    """Writes through the page cache, or past it, take longer."""

    def __init__(self, *, slow: str) -> None:
        self.direct_fds: set[int] = set()
        self.direct_nbytes = 0
        self._slow = slow

    def open_direct(self, path: str) -> int | None:
        fd = os.open(path, os.O_WRONLY)  # without O_DIRECT, so that this holds on any file system
        self.direct_fds.add(fd)
        return fd

    def close(self, fd: int) -> None:
        self.direct_fds.discard(fd)
        super().close(fd)

    def pwritev(self, fd: int, pieces: Any, offset: int) -> int:
        direct = fd in self.direct_fds
        if direct:
            (piece,) = pieces
            address = np.frombuffer(piece, np.uint8).ctypes.data
            assert (address % 4096, len(piece) % 4096, offset % 4096) == (0, 0, 0)
            self.direct_nbytes += len(piece)
        if direct == (self._slow == "direct"):
            time.sleep(0.005)
        return super().pwritev(fd, pieces, offset)

    def fsync(self, fd: int) -> None:
        """The real one takes as long as it takes."""


@pytest.fixture(autouse=True)
def small_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(medium, "TRIAL_NBYTES", 64 << 10)
    monkeypatch.setattr(medium, "_WORTH_A_TRIAL_NBYTES", 512 << 10)
    monkeypatch.setattr(medium, "known_choices", {})


LARGE = {"a": torch.arange(300_000.0), "b": torch.arange(90_000.0).reshape(300, 300).t(), **tree()}
every_format = pytest.mark.parametrize("end", FORMATS.values(), ids=FORMATS)


@every_format
@pytest.mark.parametrize("slow", ["direct", "buffered"])
def test_the_faster_way_is_measured_once_and_kept(tmp_path: Path, end: str, slow: str) -> None:
    arguments = {"durable": True, "max_staging_bytes": 128 << 10, "checksum": "crc32c"}
    system = SlowSystem(slow=slow)
    first = save(LARGE, f"{tmp_path}/first{end}", system=system, **arguments)
    second = save(LARGE, f"{tmp_path}/second{end}", system=system, **arguments)
    faster = "buffered" if slow == "direct" else "direct"
    assert medium.known_choices == {tmp_path.stat().st_dev: faster == "direct"}
    if end != "/":  # a folder tells of its last file
        assert (first.io, second.io) == (faster, faster)
        assert "measured" in first.io_reason
        assert "measured faster on this file system" in second.io_reason
    assert system.direct_fds == set()
    for name in ("first", "second"):
        assert same_bits(ferry.load(f"{tmp_path}/{name}{end}", to="torch"), LARGE)
        assert ferry.verify(f"{tmp_path}/{name}{end}").checked == len(LARGE)


@every_format
def test_real_direct_writes_give_the_same_values(tmp_path: Path, end: str) -> None:
    medium.known_choices[tmp_path.stat().st_dev] = True
    report = ferry.save(LARGE, f"{tmp_path}/x{end}", durable=True, max_staging_bytes=128 << 10)
    assert report.io in ("direct", "buffered")
    assert same_bits(ferry.load(f"{tmp_path}/x{end}", to="torch"), LARGE)


def test_without_durability_nothing_is_measured(tmp_path: Path) -> None:
    system = SlowSystem(slow="buffered")
    report = save(LARGE, tmp_path / "x.npz", system=system)
    assert (report.io, system.direct_nbytes, medium.known_choices) == ("buffered", 0, {})


def test_a_file_system_without_direct_io_is_said_so(tmp_path: Path) -> None:
    class Without(System):
        def open_direct(self, path: str) -> int | None:
            return None

    report = save(LARGE, tmp_path / "x.npz", system=Without(), durable=True)
    assert (report.io, report.io_reason) == ("buffered", "this file system has no direct I/O")
    assert same_bits(ferry.load(tmp_path / "x.npz", to="torch"), LARGE)


@pytest.mark.parametrize("known", [True, False], ids=["after a measurement", "while it is measured"])
def test_a_refusal_of_aligned_writes_is_no_failure(tmp_path: Path, known: bool) -> None:
    class Refusing(SlowSystem):
        def pwritev(self, fd: int, pieces: Any, offset: int) -> int:
            if fd in self.direct_fds:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            return super().pwritev(fd, pieces, offset)

    if known:
        medium.known_choices[tmp_path.stat().st_dev] = True
    report = save(
        LARGE, tmp_path / "x.npz", system=Refusing(slow="buffered"), durable=True, max_staging_bytes=128 << 10
    )
    assert report.io == "buffered"
    assert "refuses direct I/O" in report.io_reason
    assert medium.known_choices == {tmp_path.stat().st_dev: False}
    assert same_bits(ferry.load(tmp_path / "x.npz", to="torch"), LARGE)
