"""Names of tensors: any text where the format allows it, one file each in a folder, nothing outside of it."""

from __future__ import annotations

import json
import os
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

import tensorferry as ferry
from helpers.faulty_system import names_of
from tensorferry._io.names import FileNames, escaped, unescaped

HOSTILE = [
    "",
    ".",
    "..",
    "../../outside",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "C:\\x",
    "nul\0byte",
    "con",
    "LPT1.weight",
    "index.json",
    "trailing.",
    "trailing ",
    " leading",
    "%41",
    "~",
    "new\nline",
    "ünï",
    "u\u0308ni",
    "Case",
    "case",
    "CASE",
    "x" * 5000,
    "x" * 5001,
    "é" * 100,
]
Point = namedtuple("Point", "x y")


def test_a_folder_holds_any_name_in_a_file_of_its_own(tmp_path: Path) -> None:
    ferry.save([(name, np.full(2, i)) for i, name in enumerate(HOSTILE)], f"{tmp_path}/x/")
    assert names_of(tmp_path) == ["x"]
    files = names_of(tmp_path / "x")
    assert len({name.lower() for name in files}) == len(HOSTILE) + 1
    assert all(name.isascii() and name.isprintable() and len(name) <= 200 for name in files)
    assert not {name.split(".")[0].lower() for name in files} & {"con", "lpt1", ""}
    index = json.loads((tmp_path / "x" / "index.json").read_text())
    for i, name in enumerate(HOSTILE):
        assert np.load(tmp_path / "x" / index["tensors"][name]["file"]).tolist() == [i, i]
    assert {name: array[0] for name, array in ferry.load(tmp_path / "x").items()} == {
        name: i for i, name in enumerate(HOSTILE)
    }


def test_safetensors_holds_any_text(tmp_path: Path) -> None:
    ferry.save([(name, np.full(2, i)) for i, name in enumerate(HOSTILE)], tmp_path / "x.safetensors")
    found = safetensors.numpy.load_file(tmp_path / "x.safetensors")
    assert {name: int(array[0]) for name, array in found.items()} == {name: i for i, name in enumerate(HOSTILE)}


@pytest.mark.parametrize(
    ("end", "name", "why"),
    [
        (".npz", "../outside", "outside of the folder"),
        (".npz", "a/../../b", "outside of the folder"),
        (".npz", "/etc/passwd", "absolute path"),
        (".npz", "C:\\x", "absolute path"),
        (".npz", "nul\0", "NUL"),
        (".npz", "", "empty"),
        (".npz", "x.npy", "another member"),
        (".npz", "__metadata__", "another member"),
        (".npz", "x" * 66_000, "longer than 65,000"),
        (".npz", "\ud800", "no valid text"),
        (".safetensors", "__metadata__", "format's own"),
        (".safetensors", "\ud800", "no valid text"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True], ids=["known", "from an iterator"])
def test_names_that_a_format_cannot_hold_are_refused(
    tmp_path: Path, end: str, name: str, why: str, streamed: bool
) -> None:
    pairs = [("good", np.ones(2)), (name, np.ones(2))]
    with pytest.raises(ferry.ExportError, match=why):
        ferry.save(iter(pairs) if streamed else pairs, f"{tmp_path}/x{end}")
    assert names_of(tmp_path) == []


def test_numpy_reads_every_name_that_an_archive_takes(tmp_path: Path) -> None:
    names = ["a/b", "ünï", "with space", "a.npyx", "Case", "case", "new\nline", "…" * 300]
    ferry.save([(name, np.full(2, i)) for i, name in enumerate(names)], tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as found:
        assert {name: int(found[name][0]) for name in found.files} == {name: i for i, name in enumerate(names)}


def test_names_of_a_nest_are_joined_with_dots(tmp_path: Path) -> None:
    one = np.ones(1)
    nest = {"layers": [{"w": one}, (one + 1, one + 2)], 7: one + 3, "point": Point(one + 4, one + 5)}
    ferry.save(nest, tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as found:
        values = {name: found[name].item() for name in found.files}
    expected = {"layers.0.w": 1, "layers.1.0": 2, "layers.1.1": 3, "7": 4, "point.x": 5, "point.y": 6}
    assert values == expected


@pytest.mark.parametrize(
    "tree",
    [{"a.b": np.ones(1), "a": {"b": np.ones(1)}}, {1: np.ones(1), "1": np.ones(1)}, [("x", np.ones(1))] * 2],
    ids=["a dot in a key", "a number and its text", "a pair twice"],
)
def test_two_tensors_of_one_name_are_refused(tmp_path: Path, tree: object) -> None:
    with pytest.raises(ferry.ArgumentError, match="two tensors named"):
        ferry.save(tree, tmp_path / "x.npz")
    with pytest.raises(ferry.ArgumentError, match="two tensors named"):
        ferry.save(iter([("x", np.ones(1))] * 2), tmp_path / "x.npz")
    assert names_of(tmp_path) == []


def test_a_nest_that_contains_itself_is_refused(tmp_path: Path) -> None:
    nest: dict[str, object] = {"a": np.ones(1)}
    nest["self"] = nest
    with pytest.raises(ferry.LayoutError, match="contains itself"):
        ferry.save(nest, tmp_path / "x.npz")


@given(st.text())
def test_escaping_is_reversible_and_harmless(name: str) -> None:
    text = escaped(name)
    assert unescaped(text) == name
    assert text.isascii()
    assert text
    assert os.path.basename(text) == text
    assert not text.startswith((".", " "))
    assert not text.endswith((".", " "))
    assert not set(text) & set('/\\:*?"<>|\0~')


@given(st.lists(st.text(st.sampled_from("aA%é/.~" + "b" * 3), max_size=4), unique=True))
def test_no_two_names_share_a_file_even_without_regard_to_case(names: list[str]) -> None:
    given_names = FileNames()
    assert len({given_names.add(name).lower() for name in names}) == len(names)
