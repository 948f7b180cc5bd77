"""Each call of the operating system fails once, at each place: the old file stays, or none is there."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

import tensorferry as ferry
from helpers.faulty_system import FaultySystem, InterruptedSystem, names_of, temporary_files
from helpers.saved_trees import FORMATS, same_bits, tree
from tensorferry._io.save import save

OLD, NEW = tree(1), tree(2)
every_format = pytest.mark.parametrize("end", [*FORMATS.values(), "-shards.safetensors"], ids=[*FORMATS, "shards"])


def _options(end: str) -> dict[str, Any]:
    return {"max_shard_size": 4000} if "shards" in end else {}


@every_format
@pytest.mark.parametrize("replaces", [False, True], ids=["new", "replacing"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS], ids=errno.errorcode.get)
def test_any_failure_leaves_the_old_or_nothing(tmp_path: Path, end: str, replaces: bool, code: int) -> None:
    path = f"{tmp_path}/x{end}"
    arguments = {"durable": True, "checksum": "crc32c", "overwrite": True, **_options(end)}
    failed_at = set()
    for n in range(10_000):
        if replaces:
            ferry.save(OLD, path, overwrite=True, **_options(end))
        before = names_of(tmp_path)
        system = FaultySystem(n, code)
        failure: ferry.ExportError | None = None
        try:
            save(NEW, path, system=system, **arguments)
        except ferry.ExportError as error:
            failure = error
        assert temporary_files(tmp_path) == []
        if failure is None or "may not be on the disk yet" in str(failure):
            assert same_bits(ferry.load(path, to="torch"), NEW)
        else:
            assert names_of(tmp_path) == before
            assert ("is kept" if replaces else "nothing was made") in str(failure)
            assert not replaces or same_bits(ferry.load(path, to="torch"), OLD)
        if failure is not None:
            failed_at.add(system.calls[-1])
            assert failure.errno == code
            assert os.strerror(code) in str(failure)
        elif len(system.calls) <= n:
            break
        _remove(tmp_path)
    assert {"pwritev", "fsync"} <= failed_at


def _remove(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir():
            _remove(entry)
            entry.rmdir()
        else:
            entry.unlink()


@every_format
@pytest.mark.parametrize("at_most", [500, 1000], ids=lambda n: f"{n} bytes at most")
def test_short_and_interrupted_writes_are_completed(tmp_path: Path, end: str, at_most: int) -> None:
    system = InterruptedSystem(at_most)
    save(NEW, f"{tmp_path}/x{end}", system=system, **_options(end))
    assert system.writes > 10
    assert same_bits(ferry.load(f"{tmp_path}/x{end}", to="torch"), NEW)


@every_format
def test_what_progress_raises_ends_the_save(tmp_path: Path, end: str) -> None:
    def stop(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ferry.save(NEW, f"{tmp_path}/x{end}", progress=stop, **_options(end))
    assert names_of(tmp_path) == []


@every_format
def test_an_iterator_that_raises_leaves_nothing(tmp_path: Path, end: str) -> None:
    def broken() -> Any:
        yield from NEW.items()
        raise ZeroDivisionError("the third layer")

    with pytest.raises(ZeroDivisionError, match="the third layer"):
        ferry.save(broken(), f"{tmp_path}/x{end}", **_options(end))
    assert names_of(tmp_path) == []


def test_a_system_that_writes_nothing_is_not_asked_forever(tmp_path: Path) -> None:
    class Silent(FaultySystem):
        def pwritev(self, fd: int, pieces: Any, offset: int) -> int:
            return 0

    with pytest.raises(ferry.ExportError, match="wrote nothing"):
        save(NEW, tmp_path / "x.npz", system=Silent())
    assert names_of(tmp_path) == []


@pytest.mark.parametrize("end", FORMATS.values(), ids=FORMATS)
def test_files_and_names_are_flushed_before_and_after_the_rename(tmp_path: Path, end: str) -> None:
    system = FaultySystem()
    save(NEW, f"{tmp_path}/x{end}", system=system, durable=True)
    renamed = system.calls.index("rename_new")
    assert "fsync" in system.calls[:renamed]
    assert "fsync" in system.calls[renamed:]
    system = FaultySystem()
    save(NEW, f"{tmp_path}/y{end}", system=system)
    assert "fsync" not in system.calls


def test_a_missing_or_read_only_place_is_named(tmp_path: Path) -> None:
    with pytest.raises(ferry.ExportError, match="make the folder first") as missing:
        ferry.save(NEW, tmp_path / "none" / "x.npz")
    assert missing.value.errno == errno.ENOENT
    assert missing.value.filename == str(tmp_path / "none" / "x.npz")
    with pytest.raises(ferry.ExportError) as not_a_folder:
        ferry.save(NEW, "/dev/null/x.npz")
    assert not_a_folder.value.errno == errno.ENOTDIR


def test_a_name_that_is_too_long_for_the_file_system_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ferry.ExportError, match="shorter name"):
        ferry.save(NEW, tmp_path / ("x" * 300 + ".npz"))
    assert names_of(tmp_path) == []
    longest = "y" * 251 + ".npz"
    ferry.save(NEW, tmp_path / longest)
    assert names_of(tmp_path) == [longest]
