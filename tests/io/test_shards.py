"""Models in several files: the index that Hugging Face reads, sizes, and changes that show in one step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import safetensors.torch
import torch

import tensorferry as ferry
from helpers.faulty_system import FaultySystem, names_of, temporary_files
from helpers.saved_trees import same_bits
from tensorferry._io.save import save

OLD = {f"w{i}": torch.full((1000,), float(i)) for i in range(5)}
NEW = {name: x + 100 for name, x in OLD.items()}


def _read_by_index(folder: Path, stem: str) -> dict[str, torch.Tensor]:
    """As transformers reads it."""
    index = json.loads((folder / f"{stem}.safetensors.index.json").read_text())
    found = {}
    for file in set(index["weight_map"].values()):
        found.update(safetensors.torch.load_file(folder / file))
    assert set(found) == set(index["weight_map"])
    assert index["metadata"]["total_size"] == sum(x.nbytes for x in found.values())
    return found


@pytest.mark.parametrize("streamed", [False, True], ids=["known", "from an iterator"])
def test_shards_have_the_usual_names_and_sizes(tmp_path: Path, streamed: bool) -> None:
    report = ferry.save(
        iter(OLD.items()) if streamed else OLD, tmp_path / "model.safetensors", max_shard_size="8KB", checksum="crc32c"
    )
    shards = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]
    assert names_of(tmp_path) == sorted([*shards, "model.safetensors.index.json"])
    assert [Path(path).name for path in report.paths] == ["model.safetensors.index.json", *shards]
    assert same_bits(_read_by_index(tmp_path, "model"), OLD)
    assert same_bits(ferry.load(tmp_path / "model.safetensors", to="torch"), OLD)
    assert same_bits(ferry.load(tmp_path / "model.safetensors.index.json", to="torch"), OLD)
    assert ferry.verify(tmp_path / "model.safetensors").checked == 5


def test_a_model_that_fits_is_one_file(tmp_path: Path) -> None:
    ferry.save(OLD, tmp_path / "model.safetensors", max_shard_size="1MB")
    assert names_of(tmp_path) == ["model.safetensors"]


def test_a_tensor_larger_than_a_shard_has_one_of_its_own(tmp_path: Path) -> None:
    ferry.save(
        {"big": torch.ones(5000), "a": torch.ones(2), "b": torch.ones(2)},
        tmp_path / "x.safetensors",
        max_shard_size=100,
    )
    assert names_of(tmp_path)[:2] == ["x-00001-of-00002.safetensors", "x-00002-of-00002.safetensors"]


def test_ties_across_shards_come_back(tmp_path: Path) -> None:
    tied = {**OLD, "head": OLD["w0"]}
    ferry.save(tied, tmp_path / "x.safetensors", max_shard_size="8KB")
    found = ferry.load(tmp_path / "x.safetensors", to="torch")
    assert same_bits(found, tied)
    assert found["head"] is found["w0"]
    assert same_bits(_read_by_index(tmp_path, "x"), OLD)


@pytest.mark.parametrize("first", ["8KB", None], ids=["from shards", "from one file"])
@pytest.mark.parametrize("second", ["8KB", "12KB", None], ids=["to as many shards", "to fewer", "to one file"])
def test_a_model_is_replaced_and_nothing_of_the_old_stays(
    tmp_path: Path, first: str | None, second: str | None
) -> None:
    path = tmp_path / "x.safetensors"
    ferry.save(OLD, path, max_shard_size=first)
    with pytest.raises(ferry.ExportError, match="File exists"):
        ferry.save(NEW, path, max_shard_size=second)
    assert same_bits(ferry.load(path, to="torch"), OLD)
    ferry.save(NEW, path, max_shard_size=second, overwrite=True)
    assert same_bits(ferry.load(path, to="torch"), NEW)
    assert len(names_of(tmp_path)) == {"8KB": 4, "12KB": 3, None: 1}[second]


def test_at_every_moment_the_index_names_whole_shards_of_one_model(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    ferry.save(OLD, path, max_shard_size="8KB")
    seen = []

    def look(call: str) -> None:
        found = _read_by_index(tmp_path, "x")
        assert same_bits(found, OLD) or same_bits(found, NEW)
        seen.append(call)

    save(NEW, path, max_shard_size="8KB", overwrite=True, system=FaultySystem(before=look))
    assert seen.count("rename_new") == 3
    assert same_bits(_read_by_index(tmp_path, "x"), NEW)


def test_a_shard_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "x-00002-of-00003.safetensors").write_text("mine")
    with pytest.raises(ferry.ExportError, match="File exists"):
        ferry.save(OLD, tmp_path / "x.safetensors", max_shard_size="8KB")
    assert names_of(tmp_path) == ["x-00002-of-00003.safetensors"]
    ferry.save(OLD, tmp_path / "x.safetensors", max_shard_size="8KB", overwrite=True)
    assert (tmp_path / "x-00002-of-00003.safetensors").read_text() == "mine"
    assert same_bits(ferry.load(tmp_path / "x.safetensors", to="torch"), OLD)
    assert temporary_files(tmp_path) == []


@pytest.mark.parametrize("file", ["../secret.safetensors", "/etc/passwd", "..", "", 7], ids=repr)
def test_an_index_that_leads_out_of_its_folder_is_refused(tmp_path: Path, file: object) -> None:
    (tmp_path / "x.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": file}}))
    with pytest.raises(ferry.ExportError, match="outside of its folder"):
        ferry.load(tmp_path / "x.safetensors")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": 3}'])
def test_a_damaged_index_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.safetensors.index.json").write_text(text)
    with pytest.raises(ferry.ExportError, match="no index of shards"):
        ferry.load(tmp_path / "x.safetensors")


def test_a_missing_shard_or_tensor_is_named(tmp_path: Path) -> None:
    ferry.save(OLD, tmp_path / "x.safetensors", max_shard_size="8KB")
    index = tmp_path / "x.safetensors.index.json"
    whole = json.loads(index.read_text())
    whole["weight_map"]["more"] = whole["weight_map"]["w0"]
    index.write_text(json.dumps(whole))
    with pytest.raises(ferry.ExportError, match="no shard holds the tensor 'more'"):
        ferry.load(index)
    (tmp_path / "x-00002-of-00003.safetensors").unlink()
    with pytest.raises(ferry.ExportError, match="x-00002-of-00003"):
        ferry.inspect(index)


@pytest.mark.parametrize("size", [0, -1, "0", "many", "5 lightyears", 1.5, True], ids=repr)
def test_sizes_that_mean_nothing_are_refused(tmp_path: Path, size: object) -> None:
    with pytest.raises(ferry.ArgumentError, match="max_shard_size"):
        ferry.save(OLD, tmp_path / "x.safetensors", max_shard_size=size)  # type: ignore[arg-type]
    assert names_of(tmp_path) == []
