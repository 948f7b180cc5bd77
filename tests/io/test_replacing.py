"""What is at the path already: refused, replaced in one step, or none of our business."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

import tensorferry as ferry
from helpers.faulty_system import FaultySystem, names_of, temporary_files
from helpers.saved_trees import FORMATS, same_bits, tree
from tensorferry._io.save import save
from tensorferry._io.system import System

OLD, NEW = tree(1), tree(2)
every_format = pytest.mark.parametrize("end", FORMATS.values(), ids=FORMATS)
every_file = pytest.mark.parametrize("end", [".safetensors", ".npz"])


@every_format
def test_nothing_is_replaced_without_consent(tmp_path: Path, end: str) -> None:
    path = f"{tmp_path}/x{end}"
    ferry.save(OLD, path)
    with pytest.raises(ferry.ExportError, match="overwrite=True") as refused:
        ferry.save(NEW, path)
    assert refused.value.errno == 17  # EEXIST
    assert same_bits(ferry.load(path, to="torch"), OLD)
    ferry.save(NEW, path, overwrite=True)
    assert same_bits(ferry.load(path, to="torch"), NEW)
    assert temporary_files(tmp_path) == []


@every_format
def test_what_appears_while_we_write_is_not_replaced_either(tmp_path: Path, end: str) -> None:
    path = f"{tmp_path}/x{end}"

    def other(name: str) -> None:
        if name == "rename_new":
            ferry.save(OLD, path)

    with pytest.raises(ferry.ExportError, match="File exists"):
        save(NEW, path, system=FaultySystem(before=other))
    assert same_bits(ferry.load(path, to="torch"), OLD)
    assert temporary_files(tmp_path) == []


class _WithoutRenameat2(System):
    def rename_new(self, source: str, target: str) -> None:
        os.link(source, target, follow_symlinks=False)
        os.unlink(source)

    def exchange(self, source: str, target: str) -> bool:
        return False


def test_a_folder_is_not_replaced_where_two_cannot_be_exchanged(tmp_path: Path) -> None:
    ferry.save(OLD, f"{tmp_path}/x/")
    with pytest.raises(ferry.ExportError, match="cannot exchange"):
        save(NEW, f"{tmp_path}/x/", overwrite=True, system=_WithoutRenameat2())
    assert same_bits(ferry.load(tmp_path / "x", to="torch"), OLD)
    assert temporary_files(tmp_path) == []


def test_a_folder_with_files_of_others_is_never_removed(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "thesis.txt").write_text("all of it")
    with pytest.raises(ferry.ExportError, match="not made by tensorferry"):
        ferry.save(NEW, f"{folder}/", overwrite=True)
    assert (folder / "thesis.txt").read_text() == "all of it"
    ferry.save(OLD, f"{tmp_path}/ours/")
    (tmp_path / "ours" / "notes.txt").write_text("added later")
    with pytest.raises(ferry.ExportError, match="not made by tensorferry"):
        ferry.save(NEW, f"{tmp_path}/ours/", overwrite=True)
    assert same_bits(ferry.load(tmp_path / "ours", to="torch"), OLD)


def test_an_empty_folder_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    ferry.save(NEW, f"{tmp_path}/x/", overwrite=True)
    assert same_bits(ferry.load(tmp_path / "x", to="torch"), NEW)
    assert names_of(tmp_path) == ["x"]


@every_file
def test_a_folder_is_not_replaced_by_a_file(tmp_path: Path, end: str) -> None:
    (tmp_path / f"x{end}").mkdir()
    with pytest.raises(ferry.ExportError, match="Is a directory"):
        ferry.save(NEW, tmp_path / f"x{end}", overwrite=True)
    assert names_of(tmp_path) == [f"x{end}"]


@every_file
@pytest.mark.parametrize("leads_nowhere", [False, True], ids=["to a file", "to nothing"])
def test_a_link_is_replaced_and_never_followed(tmp_path: Path, end: str, leads_nowhere: bool) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    folder.mkdir()
    if not leads_nowhere:
        (outside / "precious").write_text("data")
    link = folder / f"x{end}"
    link.symlink_to(outside / "precious")
    with pytest.raises(ferry.ExportError, match="a link is there"):
        ferry.save(NEW, link)
    ferry.save(NEW, link, overwrite=True)
    assert not link.is_symlink()
    assert same_bits(ferry.load(link, to="torch"), NEW)
    assert names_of(outside) == ([] if leads_nowhere else ["precious"])


def test_a_link_to_a_folder_is_refused(tmp_path: Path) -> None:
    ferry.save(OLD, f"{tmp_path}/real/")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(ferry.ExportError, match="it is no folder"):
        ferry.save(NEW, f"{tmp_path}/link/", overwrite=True)
    assert same_bits(ferry.load(tmp_path / "real", to="torch"), OLD)


@every_file
def test_rights_are_those_of_the_file_replaced_or_what_the_umask_leaves(tmp_path: Path, end: str) -> None:
    path = tmp_path / f"x{end}"
    before = os.umask(0o027)
    try:
        ferry.save(OLD, path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    ferry.save(NEW, path, overwrite=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


@every_file
def test_who_has_mapped_the_old_file_keeps_its_values(tmp_path: Path, end: str) -> None:
    path = tmp_path / f"x{end}"
    ferry.save({"x": np.zeros(1 << 16)}, path)
    mapped = ferry.load(path)["x"]
    ferry.save({"x": np.ones(1 << 16)}, path, overwrite=True)
    assert mapped.sum() == 0
    assert ferry.load(path)["x"].sum() == 1 << 16


def test_the_same_tensors_give_the_same_file(tmp_path: Path) -> None:
    for end in (".safetensors", ".npz"):
        ferry.save(NEW, f"{tmp_path}/a{end}", checksum="crc32c")
        ferry.save(NEW, f"{tmp_path}/b{end}", checksum="crc32c")
        assert (tmp_path / f"a{end}").read_bytes() == (tmp_path / f"b{end}").read_bytes()
