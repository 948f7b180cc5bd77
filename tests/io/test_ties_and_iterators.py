"""Tied tensors are written once; views take no more than they show; iterators are written as they come."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.torch
import torch

import tensorferry as ferry
from helpers.saved_trees import FORMATS, same_bits, tree

every_format = pytest.mark.parametrize("end", FORMATS.values(), ids=FORMATS)


class Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(1000, 64)
        self.head = torch.nn.Linear(64, 1000, bias=False)
        self.head.weight = self.embed.weight


@every_format
@pytest.mark.parametrize("of", [dict, list], ids=["a dict", "pairs"])
def test_a_tied_weight_is_written_once_and_has_both_names(tmp_path: Path, end: str, of: Any) -> None:
    state = Tied().state_dict()
    report = ferry.save(state if of is dict else list(state.items()), f"{tmp_path}/x{end}")
    assert (report.tensors, report.aliases, report.nbytes) == (2, 1, 256_000)
    assert report.file_nbytes < 260_000
    found = ferry.load(f"{tmp_path}/x{end}", to="torch")
    assert same_bits(found, dict(state))
    assert found["head.weight"] is found["embed.weight"]


def test_hugging_face_names_the_alias_in_the_same_way(tmp_path: Path) -> None:
    model = Tied()
    ferry.save(model.state_dict(), tmp_path / "ours.safetensors")
    safetensors.torch.save_model(model, str(tmp_path / "theirs.safetensors"))
    with safetensors.safe_open(tmp_path / "theirs.safetensors", "pt") as theirs:
        (alias,) = (item for item in theirs.metadata().items() if item[0] != "format")
    with safetensors.safe_open(tmp_path / "ours.safetensors", "pt") as ours:
        assert {*alias} == {"embed.weight", "head.weight"}
        assert ours.metadata()["head.weight"] == "embed.weight"
    other = Tied()
    safetensors.torch.load_model(other, str(tmp_path / "ours.safetensors"))
    assert torch.equal(other.head.weight, model.head.weight)


@every_format
def test_views_that_differ_are_not_tied(tmp_path: Path, end: str) -> None:
    z = torch.tensor([1 + 2j, 3 - 4j])
    x = torch.arange(6.0)
    views = {
        "all": x,
        "first": x[:3],
        "matrix": x.view(2, 3),
        "transposed": x.view(3, 2).t(),
        "bits": x.view(torch.int32),
        "z": z,
        "conjugated": z.conj(),
        "imag": z.imag,
        "negative": z.conj().imag,
        "none": x[:0],
        "none either": x[:0],
    }
    report = ferry.save(views, f"{tmp_path}/x{end}")
    assert report.aliases == 0
    assert same_bits(ferry.load(f"{tmp_path}/x{end}", to="torch"), views)


@every_format
def test_a_small_view_of_a_large_storage_takes_little(tmp_path: Path, end: str) -> None:
    storage = torch.zeros(10_000_000)
    report = ferry.save({"view": storage[5:15], "columns": storage.view(1000, -1)[:, :2]}, f"{tmp_path}/x{end}")
    assert report.nbytes == 4 * (10 + 2000)
    assert report.file_nbytes < 12_000


@every_format
def test_an_iterator_may_fill_the_same_memory_again(tmp_path: Path, end: str) -> None:
    def reusing() -> Iterator[tuple[str, torch.Tensor]]:
        buffer = torch.empty(400_000)
        for i in range(5):
            buffer.fill_(i)
            yield f"layer{i}", buffer
        buffer.fill_(-1)

    report = ferry.save(reusing(), f"{tmp_path}/x{end}", checksum="crc32c")
    assert (report.tensors, report.aliases) == (5, 0)
    found = ferry.load(f"{tmp_path}/x{end}")
    assert [np.unique(found[f"layer{i}"]).tolist() for i in range(5)] == [[0], [1], [2], [3], [4]]
    assert ferry.verify(f"{tmp_path}/x{end}").checked == 5


def test_an_iterable_that_is_no_collection_is_gone_through_like_an_iterator(tmp_path: Path) -> None:
    class Reusing:
        def __iter__(self) -> Iterator[tuple[str, np.ndarray]]:
            buffer = np.empty(3)
            for i in range(3):
                buffer[:] = i
                yield str(i), buffer

    assert ferry.save(Reusing(), tmp_path / "x.safetensors").aliases == 0
    found = ferry.load(tmp_path / "x.safetensors")
    assert {name: x.tolist() for name, x in found.items()} == {str(i): [i] * 3 for i in range(3)}


def test_items_of_a_mapping_are_a_collection(tmp_path: Path) -> None:
    w = torch.ones(3)
    assert ferry.save({"a": w, "b": w}.items(), tmp_path / "x.npz").aliases == 1
    snapshot = torch._lazy_clone(w)
    assert ferry.save({"a": snapshot, "b": snapshot, "c": w}, tmp_path / "y.npz").aliases == 1


@every_format
def test_each_item_is_let_go_before_the_next_is_asked_for(tmp_path: Path, end: str) -> None:
    alive: list[Any] = []

    def watched() -> Iterator[tuple[str, np.ndarray]]:
        for i in range(4):
            assert [ref() for ref in alive[:-1]] == [None] * max(0, i - 1)
            array = np.full(300_000, i)
            alive.append(weakref.ref(array))
            yield str(i), array
            del array

    ferry.save(watched(), f"{tmp_path}/x{end}", checksum="crc32c")
    assert len(alive) == 4
    assert list(ferry.load(f"{tmp_path}/x{end}")) == ["0", "1", "2", "3"]


def test_parameters_of_a_model_come_by_their_names(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4)).bfloat16()
    ferry.save(model.named_parameters(), tmp_path / "x.safetensors")
    found = safetensors.torch.load_file(tmp_path / "x.safetensors")
    assert same_bits(found, {name: p.detach() for name, p in model.named_parameters()})


def test_a_streamed_file_whose_header_outgrows_its_place_is_written_again(tmp_path: Path) -> None:
    count = 4000
    ferry.save(((f"{'name' * 10}{i}", torch.tensor([i])) for i in range(count)), tmp_path / "x.safetensors")
    found = safetensors.torch.load_file(tmp_path / "x.safetensors")
    assert [found[f"{'name' * 10}{i}"].item() for i in range(count)] == list(range(count))
    assert os.listdir(tmp_path) == ["x.safetensors"]


def test_a_streamed_file_whose_tensors_would_be_misaligned_is_written_again(tmp_path: Path) -> None:
    items, odd = tree(), torch.ones(3, dtype=torch.uint8)
    ferry.save(iter([("odd", odd), *items.items()]), tmp_path / "x.safetensors")
    found = ferry.load(tmp_path / "x.safetensors")
    assert all(array.ctypes.data % array.dtype.itemsize == 0 for array in found.values() if array.size)
    assert same_bits(safetensors.torch.load_file(tmp_path / "x.safetensors"), {**items, "odd": odd})


def test_what_is_no_pair_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ferry.ArgumentError, match="pairs of name and tensor"):
        ferry.save((torch.ones(1) for _ in range(2)), tmp_path / "x.npz")
    assert os.listdir(tmp_path) == []


@every_format
def test_an_empty_collection_is_an_empty_file(tmp_path: Path, end: str) -> None:
    assert ferry.save({}, f"{tmp_path}/x{end}").tensors == 0
    assert ferry.save(iter([]), f"{tmp_path}/y{end}").tensors == 0
    assert ferry.load(f"{tmp_path}/x{end}") == ferry.load(f"{tmp_path}/y{end}") == {}


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("streamed", [False, True], ids=["known", "from an iterator"])
def test_npy_holds_one_array(tmp_path: Path, count: int, streamed: bool) -> None:
    pairs = [(str(i), np.ones(2)) for i in range(count)]
    with pytest.raises(ferry.ExportError, match="holds one array"):
        ferry.save(iter(pairs) if streamed else pairs, tmp_path / "x.npy")
    assert os.listdir(tmp_path) == []
