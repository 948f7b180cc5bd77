"""``tensorferry inspect`` and ``tensorferry verify``: names, sums and damage."""

from __future__ import annotations

import io

import numpy as np
import pytest
import safetensors.torch
import torch

import tensorferry as ferry
from helpers.console import run_here
from tensorferry.cli._export_progress import _Lines, shown


@pytest.fixture
def state():
    """Three dtypes, and a tie."""
    t = torch.arange(8.0).reshape(2, 4)
    return {"a": t, "b": torch.arange(6, dtype=torch.int8), "c": torch.ones(3).bfloat16(), "tied": t}


def test_inspect_lists_tensors_and_the_sums_of_each_dtype(capsys, tmp_path, state):
    ferry.save(state, tmp_path / "w.safetensors", metadata={"made by": "a test"})
    ran = run_here(capsys, "inspect", tmp_path / "w.safetensors", "--json")
    assert ran.code == 0
    rows = {
        row["name"]: (row["dtype"], row["shape"], row["nbytes"], row["alias_of"]) for row in ran.document["tensors"]
    }
    assert rows == {
        "a": ("float32", [2, 4], 32, None),
        "b": ("int8", [6], 6, None),
        "c": ("bfloat16", [3], 6, None),
        "tied": ("float32", [2, 4], 0, "a"),
    }
    sums = ran.document["by_dtype"]
    assert {dtype: (s["tensors"], s["elements"], s["nbytes"]) for dtype, s in sums.items()} == {
        "float32": (1, 8, 32),
        "int8": (1, 6, 6),
        "bfloat16": (1, 3, 6),
    }
    assert ran.document["nbytes"] == 44
    text = run_here(capsys, "inspect", tmp_path / "w.safetensors").stdout
    assert "tied = a" in text
    assert "2x4" in text
    assert ["all", "3", "17", "44", "44", "B"] in [line.split() for line in text.splitlines()]
    assert "a test" in text


def test_inspect_reads_files_of_torch_and_of_other_libraries(capsys, tmp_path, state):
    torch.save({"model": state, "epoch": 3}, tmp_path / "w.pt")
    rows = run_here(capsys, "inspect", tmp_path / "w.pt", "--json").document["tensors"]
    assert [(row["name"], row["alias_of"]) for row in rows] == [
        ("model.a", None), ("model.b", None), ("model.c", None), ("model.tied", "model.a")
    ]  # fmt: skip
    del state["tied"]
    safetensors.torch.save_file(state, tmp_path / "w.safetensors")
    assert "no tensors" not in run_here(capsys, "inspect", tmp_path / "w.safetensors").stdout
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    assert "(the array)" in run_here(capsys, "inspect", tmp_path / "x.npy").stdout


def test_inspect_names_the_shard_of_each_tensor(capsys, tmp_path):
    ferry.save({"a": np.ones(4), "b": np.ones(4)}, tmp_path / "w.safetensors", max_shard_size=40)
    lines = run_here(capsys, "inspect", tmp_path / "w.safetensors.index.json").stdout.splitlines()
    assert [line.split()[-1] for line in lines if line.startswith(("tensor", "a ", "b "))] == ["shard", "1", "2"]


def test_a_missing_or_foreign_file_exits_1_or_2(capsys, tmp_path):
    assert run_here(capsys, "inspect", tmp_path / "none.npy").code == 1
    assert run_here(capsys, "verify", tmp_path / "none.safetensors").code == 1
    (tmp_path / "x.txt").write_text("no tensors")
    assert run_here(capsys, "inspect", tmp_path / "x.txt").code == 2
    (tmp_path / "x.safetensors").write_text("no tensors")
    ran = run_here(capsys, "inspect", tmp_path / "x.safetensors")
    assert (ran.code, ran.stdout) == (1, "")


@pytest.mark.parametrize("target", ["w.safetensors", "w.npz", "w/"])
def test_verify_finds_one_changed_bit_and_names_the_tensor(capsys, tmp_path, target):
    pytest.importorskip("google_crc32c", reason="checksums need google-crc32c")
    values = np.random.default_rng(5).integers(0, 256, 4096, np.uint8)
    ferry.save({"fine": np.arange(100.0), "hit": values}, f"{tmp_path}/{target}", checksum="crc32c")
    ran = run_here(capsys, "verify", f"{tmp_path}/{target}", "--json")
    assert (ran.code, ran.document["checked"], ran.document["ok"]) == (0, 2, True)
    assert "2 checked by crc32c" in run_here(capsys, "verify", f"{tmp_path}/{target}").stdout
    file = tmp_path / target / "hit.npy" if target == "w/" else tmp_path / target
    data = bytearray(file.read_bytes())
    data[data.index(values.tobytes()) + 1234] ^= 8
    file.write_bytes(data)
    ran = run_here(capsys, "verify", f"{tmp_path}/{target}")
    assert (ran.code, ran.stdout) == (1, "")
    assert "hit" in ran.stderr
    assert "fine" not in ran.stderr


def test_verify_says_when_only_the_structure_could_be_checked(capsys, tmp_path):
    ferry.save({"a": np.ones(4)}, tmp_path / "w.safetensors")
    assert "Only its structure" in run_here(capsys, "verify", tmp_path / "w.safetensors").stdout


def test_a_log_gets_a_line_every_ten_seconds_with_rate_and_time_left(capsys):
    times = iter([0.0, 3.0, 10.0, 15.0, 21.0])
    lines = _Lines(4_000_000_000, lambda: next(times))
    for done in (300_000_000, 1_000_000_000, 1_500_000_000, 2_000_000_000):
        lines.wrote(done, None)
    assert capsys.readouterr().err.splitlines() == [
        "writing: 1.00 GB of 4.00 GB, 30.0 s left, 100 MB/s",
        "writing: 2.00 GB of 4.00 GB, 21.0 s left, 95.2 MB/s",
    ]


def test_a_terminal_gets_a_bar_on_stderr_with_rate_and_time_left(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "110")
    with shown(1 << 20) as wrote:
        wrote(1 << 19, None)
    assert "0.5/1.0 MiB" in terminal.getvalue()
    assert ":" in terminal.getvalue().rpartition("MiB")[2]
