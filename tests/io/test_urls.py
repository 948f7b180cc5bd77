"""URLs by fsspec: files go there whole, after they were written here, and are fetched to be read."""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.saved_trees import FORMATS, same_bits, tree
from helpers.subprocess import stdout_of
from helpers.writers import fail_within

fsspec = pytest.importorskip("fsspec")

ENDS = {**FORMATS, "zarr": ".zarr"}
every_format = pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)


@pytest.fixture
def memory() -> Iterator[Any]:
    """A file system in memory, empty; and nothing may be left on this machine."""
    files = fsspec.filesystem("memory")
    before = _on_the_way()
    yield files
    files.store.clear()
    files.pseudo_dirs[:] = [""]
    assert _on_the_way() - before == set()


def _on_the_way() -> set[str]:
    return {name for name in glob.glob(f"{tempfile.gettempdir()}/tensorferry-*") if "bench" not in name}


@every_format
@pytest.mark.parametrize("asynchronous", [False, True], ids=["at once", "in the background"])
def test_what_is_saved_to_a_url_is_loaded_from_it(memory: Any, end: str, asynchronous: bool) -> None:
    url = f"memory://bucket/deep/x{end}"
    save = (lambda *a, **k: ferry.save_async(*a, **k).result(60)) if asynchronous else ferry.save
    report = save(tree(2), url, checksum="crc32c", durable=True)
    assert (report.path, report.durable) == (url, True)
    assert same_bits(ferry.load(url, to="torch"), tree(2))
    assert same_bits(ferry.load(url, to="torch", mmap=False), tree(2))
    assert (ferry.verify(url).path, ferry.verify(url).checked) == (url, len(tree(2)))
    assert ferry.inspect(url).path == url


def test_others_read_what_was_uploaded(memory: Any) -> None:
    ferry.save(np.arange(5), "memory://bucket/x.npy")
    with memory.open("/bucket/x.npy") as file:
        assert np.load(file).tolist() == [0, 1, 2, 3, 4]


@every_format
def test_what_is_there_is_kept(memory: Any, end: str) -> None:
    url = f"memory://bucket/x{end}"
    ferry.save(tree(1), url)
    with pytest.raises(ferry.ExportError, match="was left as it is"):
        ferry.save(tree(2), url)
    with pytest.raises(ferry.ExportError, match="was left as it is"):
        ferry.Writer(url)
    assert same_bits(ferry.load(url, to="torch"), tree(1))


def test_a_file_is_replaced_when_asked_and_a_folder_is_not(memory: Any) -> None:
    ferry.save(tree(1), "memory://b/x.npz")
    ferry.save(tree(2), "memory://b/x.npz", overwrite=True)
    assert same_bits(ferry.load("memory://b/x.npz", to="torch"), tree(2))
    ferry.save(tree(1), "memory://b/x/")
    with pytest.raises(ferry.ExportError, match="folders are not replaced"):
        ferry.save(tree(2), "memory://b/x/", overwrite=True)
    assert same_bits(ferry.load("memory://b/x/", to="torch"), tree(1))


def test_shards_are_uploaded_before_their_index(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    put = type(memory).put_file

    def noted(self: Any, local: str, remote: str, **arguments: Any) -> Any:
        order.append(os.path.basename(remote))
        return put(self, local, remote, **arguments)

    monkeypatch.setattr(type(memory), "put_file", noted)
    ferry.save(tree(4), "memory://b/x.safetensors", max_shard_size=4000)
    assert len(order) > 2
    assert order[-1] == "x.safetensors.index.json"
    assert same_bits(ferry.load("memory://b/x.safetensors", to="torch"), tree(4))
    assert same_bits(ferry.load("memory://b/x.safetensors.index.json", to="torch"), tree(4))


def test_an_upload_that_fails_leaves_nothing(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    put = type(memory).put_file

    def failing(self: Any, local: str, remote: str, **arguments: Any) -> Any:
        if remote.endswith("index.json"):
            raise ConnectionError("the line is cut")
        return put(self, local, remote, **arguments)

    monkeypatch.setattr(type(memory), "put_file", failing)
    with pytest.raises(ferry.ExportError, match="the line is cut"):
        ferry.save(tree(1), "memory://b/x/")
    assert memory.find("/b") == []


@pytest.mark.parametrize("end", ["x.npy", "x/", "x.zarr"])
def test_rows_are_continued_behind_those_that_were_uploaded(memory: Any, end: str) -> None:
    for session in range(3):
        with ferry.Writer(f"memory://b/{end}", mode="append") as writer:
            assert writer.rows == 4 * session
            writer.append(torch.full((4, 2), float(session)))
    found = ferry.load(f"memory://b/{end}")
    rows = found if end == "x.npy" else found["rows"]
    assert rows.tolist() == [[float(s)] * 2 for s in range(3) for _ in range(4)]


def test_an_exception_uploads_nothing(memory: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_within(ferry.Writer("memory://b/x.npy"), lambda writer: writer.append(np.ones(3)))
    assert memory.find("/b") == []


def test_errors_speak_of_the_url(memory: Any) -> None:
    with pytest.raises(ferry.ExportError, match=r"memory://b/x.npz: .*outside of the folder"):
        ferry.save({"../a": 1}, "memory://b/x.npz")
    with pytest.raises(ferry.ExportError, match=r"memory://b/none.npz: .*No such file"):
        ferry.load("memory://b/none.npz")
    with pytest.raises(ferry.ExportError, match="Protocol not known"):
        ferry.save({"a": 1}, "nonsense://b/x.npz")
    with pytest.raises(ferry.ExportError, match="NUL"):
        ferry.save({"a": 1}, "memory://b/\0.npz")


def test_a_file_url_is_a_path(tmp_path: Path) -> None:
    report = ferry.save({"a": 1}, f"file://{tmp_path}/x.npz")
    assert report.path == f"{tmp_path}/x.npz"
    assert ferry.load(f"file://{tmp_path}/x.npz")["a"] == 1


def test_without_fsspec_an_error_names_the_extra() -> None:
    said = stdout_of(
        """
        import sys
        sys.modules["fsspec"] = None
        import tensorferry as ferry
        try:
            ferry.save({"a": 1}, "memory://b/x.npz")
        except ImportError as error:
            print(type(error).__name__, error)
        """
    )
    assert said.startswith("MissingDependencyError")
    assert "pip install 'tensorferry[fsspec]'" in said
