"""``tensorferry explain``: what it tells of files, against what NumPy and torch say of the tensors that went in."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import safetensors.torch
import torch

from helpers.console import run_here


@pytest.fixture
def state():
    """What a small checkpoint holds."""
    return {
        "fc.weight": torch.arange(12.0).reshape(3, 4),
        "fc.bias": torch.arange(3.0),
        "half": torch.ones(5, 2, dtype=torch.bfloat16),
        "step": torch.tensor(7),
    }


def _facts(document):
    return {row["name"]: (row["dtype"], tuple(row["shape"]), row["nbytes"]) for row in document["tensors"]}


def _expected(state):
    return {
        name: (str(t.dtype).removeprefix("torch."), tuple(t.shape), t.numel() * t.element_size())
        for name, t in state.items()
    }


@pytest.mark.parametrize("suffix", [".pt", ".pth"])
@pytest.mark.parametrize("zipped", [True, False], ids=["an archive", "the format before torch 1.6"])
def test_a_state_dict_is_listed_by_its_keys(capsys, tmp_path, state, suffix, zipped):
    path = tmp_path / f"weights{suffix}"
    torch.save(state, path, _use_new_zipfile_serialization=zipped)
    ran = run_here(capsys, "explain", path, "--json")
    assert (ran.code, ran.stderr) == (0, "")
    assert _facts(ran.document) == _expected(state)
    assert ran.document["to"] == "numpy"
    assert {row["plan"]["path"] for row in ran.document["tensors"]} == {"view"}
    assert ran.document["totals"] == {
        "tensors": 4,
        "nbytes": sum(t.nbytes for t in state.values()),
        "copies": 0,
        "nbytes_moved": 0,
        "refused": 0,
    }
    assert ran.document["chart"] == []


def test_a_safetensors_file_is_listed(capsys, tmp_path, state):
    safetensors.torch.save_file(state, tmp_path / "weights.safetensors")
    ran = run_here(capsys, "explain", tmp_path / "weights.safetensors", "--json")
    assert ran.code == 0
    assert _facts(ran.document) == _expected(state)


def test_tensors_in_a_nest_are_named_by_their_place(capsys, tmp_path, state):
    torch.save({"model": state, "history": [torch.zeros(2), 0.5], "epoch": 3}, tmp_path / "checkpoint.pt")
    ran = run_here(capsys, "explain", tmp_path / "checkpoint.pt", "--json")
    expected = {f"['model']['{name}']": facts for name, facts in _expected(state).items()}
    assert _facts(ran.document) == {**expected, "['history'][0]": ("float32", (2,), 8)}


def test_arrays_are_planned_towards_torch_with_the_bytes_that_a_copy_moves(capsys, tmp_path):
    arrays = {"plain": np.arange(6.0).reshape(2, 3), "swapped": np.arange(5, dtype=">i4")}
    np.savez(tmp_path / "arrays.npz", **arrays)
    ran = run_here(capsys, "explain", tmp_path / "arrays.npz", "--json")
    assert (ran.code, ran.document["to"]) == (0, "torch")
    assert _facts(ran.document) == {"plain": ("float64", (2, 3), 48), "swapped": (">i4", (5,), 20)}
    plans = {row["name"]: row["plan"] for row in ran.document["tensors"]}
    assert (plans["plain"]["path"], plans["plain"]["shares_memory"]) == ("view", True)
    assert (plans["swapped"]["path"], plans["swapped"]["nbytes_moved"], plans["swapped"]["copies"]) == ("copy", 20, 1)
    assert ran.document["totals"]["nbytes_moved"] == 20


def test_one_array_gets_the_chart_and_is_mapped_not_read(capsys, tmp_path):
    path = tmp_path / "values.npy"
    np.save(path, np.arange(6.0, dtype="f4").reshape(2, 3))
    ran = run_here(capsys, "explain", path, "--json")
    assert ran.code == 0
    assert ran.document["opened_as"] == 'numpy.load(path, mmap_mode="c")'
    (row,) = ran.document["tensors"]
    assert (row["name"], row["dtype"], row["shape"], row["nbytes"]) == ("values", "float32", [2, 3], 24)
    assert row["plan"]["nbytes_moved"] == 0
    chart = "\n".join(ran.document["chart"])
    questions = ["autograd", "host memory", "change", "layout", "dtype", "back"]
    assert [word for word in questions if word not in chart] == []
    assert np.load(path).tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_the_direction_can_be_chosen(capsys, tmp_path):
    np.save(tmp_path / "values.npy", np.arange(3.0))
    ran = run_here(capsys, "explain", tmp_path / "values.npy", "--to", "numpy", "--json")
    assert ran.document["to"] == "numpy"
    assert ran.document["tensors"][0]["plan"]["path"] == "same object"


def test_the_chart_of_one_tensor_among_many(capsys, tmp_path, state):
    torch.save(state, tmp_path / "weights.pt")
    ran = run_here(capsys, "explain", tmp_path / "weights.pt", "--tensor", "half")
    assert ran.code == 0
    assert "(5, 2) bfloat16 on cpu, to numpy" in ran.stdout
    assert "=> view: bfloat16 (5, 2)" in ran.stdout


def test_a_name_that_is_not_there_exits_2_and_offers_near_ones(capsys, tmp_path, state):
    torch.save(state, tmp_path / "weights.pt")
    ran = run_here(capsys, "explain", tmp_path / "weights.pt", "--tensor", "fc.weigth")
    assert (ran.code, ran.stdout) == (2, "")
    assert "fc.weight" in ran.stderr


def test_the_text_has_one_row_a_tensor_and_the_totals(capsys, tmp_path, state):
    torch.save(state, tmp_path / "weights.pt")
    ran = run_here(capsys, "explain", tmp_path / "weights.pt")
    rows = {line.split()[0]: line for line in ran.stdout.splitlines() if line.split()}
    assert "float32" in rows["fc.weight"]
    assert "(3, 4)" in rows["fc.weight"]
    assert "view, nothing moved" in rows["fc.weight"]
    assert "4 tensors, 88 B: nothing moved" in ran.stdout


def test_refused_tensors_are_findings_and_the_others_are_still_planned(capsys, tmp_path):
    torch.save({"sparse": torch.eye(3).to_sparse(), "dense": torch.ones(3)}, tmp_path / "odd.pt")
    ran = run_here(capsys, "explain", tmp_path / "odd.pt", "--json")
    assert ran.code == 1
    rows = {row["name"]: row for row in ran.document["tensors"]}
    assert rows["sparse"]["plan"] is None
    assert "to_dense" in rows["sparse"]["error"]["instead"]
    assert rows["dense"]["plan"]["path"] == "view"
    assert (ran.document["totals"]["refused"], ran.document["ok"]) == (1, False)
    text = run_here(capsys, "explain", tmp_path / "odd.pt").stdout
    assert "x.to_dense()" in text


def test_members_that_hold_python_objects_are_named(capsys, tmp_path):
    np.savez(tmp_path / "mixed.npz", objects=np.array([1, None], dtype=object), numbers=np.arange(2))
    ran = run_here(capsys, "explain", tmp_path / "mixed.npz", "--json")
    rows = {row["name"]: row for row in ran.document["tensors"]}
    assert ran.code == 1
    assert "run code" in rows["objects"]["error"]["why"]
    assert rows["numbers"]["plan"]["path"] == "view"


def test_a_file_without_tensors_is_fine(capsys, tmp_path):
    torch.save({"epoch": 3}, tmp_path / "none.pt")
    ran = run_here(capsys, "explain", tmp_path / "none.pt")
    assert ran.code == 0
    assert "no tensors in it" in ran.stdout


def _pickled_array(path):
    np.save(path, np.array([1, None], dtype=object), allow_pickle=True)


def _pickled_module(path):
    torch.save(torch.nn.Linear(2, 2), path)


def _truncated(path):
    torch.save(torch.arange(4096.0), path)
    path.write_bytes(path.read_bytes()[:2000])


def _nonsense(path):
    path.write_bytes(b"hello, ferry")


def _absent(path):
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "make", "says"),
    [
        pytest.param("objects.npy", _pickled_array, "run code", id="pickled objects in .npy"),
        pytest.param("module.pt", _pickled_module, "torch.nn.modules.linear.Linear", id="a pickled module"),
        pytest.param("cut.pt", _truncated, "complete", id="a truncated archive"),
        pytest.param("text.npy", _nonsense, ".npy file", id="text called .npy"),
        pytest.param("text.npz", _nonsense, ".npz file", id="text called .npz"),
        pytest.param("text.pt", _nonsense, ".pt file", id="text called .pt"),
        pytest.param("text.safetensors", _nonsense, ".safetensors file", id="text called .safetensors"),
        pytest.param("absent.npy", _absent, "No such file", id="no such .npy"),
        pytest.param("absent.npz", _absent, "No such file", id="no such .npz"),
        pytest.param("absent.pt", _absent, "No such file", id="no such .pt"),
        pytest.param("absent.safetensors", _absent, "No such file", id="no such .safetensors"),
    ],
)
def test_a_file_that_cannot_be_read_exits_1_with_one_clear_line(capsys, tmp_path, name, make, says):
    make(tmp_path / name)
    ran = run_here(capsys, "explain", tmp_path / name, "--json")
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith("tensorferry: ")
    assert name in ran.stderr
    assert says in ran.stderr


def test_a_missing_safetensors_package_is_named(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "safetensors", None)
    (tmp_path / "weights.safetensors").touch()
    ran = run_here(capsys, "explain", tmp_path / "weights.safetensors")
    assert ran.code == 1
    assert "pip install safetensors" in ran.stderr


def test_raw_bytes_that_were_bfloat16_are_refused_with_a_remedy(capsys, tmp_path):
    np.save(tmp_path / "half.npy", np.ones(3, dtype=ml_dtypes.bfloat16))
    ran = run_here(capsys, "explain", tmp_path / "half.npy", "--json")
    assert ran.code == 1
    assert ran.document["tensors"][0]["error"]["instead"] != ""


def test_a_name_in_brackets_is_shown_as_it_is(capsys, tmp_path):
    torch.save({"[red]layer[/red]": torch.ones(2), "other": torch.ones(1)}, tmp_path / "names.pt")
    assert "[red]layer[/red]" in run_here(capsys, "explain", tmp_path / "names.pt").stdout
