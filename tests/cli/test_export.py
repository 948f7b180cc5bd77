"""``tensorferry export``: what it writes, read back by the libraries whose formats they are."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

import tensorferry as ferry
from helpers.console import run_here


@pytest.fixture
def state():
    """What a small checkpoint holds."""
    return {
        "fc.weight": torch.arange(12.0).reshape(3, 4),
        "fc.bias": torch.arange(3.0) / 7,
        "half": torch.arange(10.0).reshape(5, 2).bfloat16(),
        "step": torch.tensor(7),
    }


def same(found, expected):
    """Equal names, dtypes, shapes and bits?"""
    assert set(found) == set(expected)
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


@pytest.mark.parametrize("target", ["out.safetensors", "out.npz", "out/"])
@pytest.mark.parametrize("source", ["weights.pt", "weights.pth", "weights.safetensors", "weights.npz", "weights/"])
def test_every_source_becomes_every_target(capsys, tmp_path, state, source, target):
    if source.endswith((".pt", ".pth")):
        torch.save(state, tmp_path / source)
    elif source.endswith(".safetensors"):
        safetensors.torch.save_file(state, tmp_path / source)
    else:
        ferry.save(state, f"{tmp_path}/{source}")
    ran = run_here(capsys, "export", f"{tmp_path}/{source}", f"{tmp_path}/{target}", "--json")
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.document["report"]["tensors"] == 4
    assert ran.document["report"]["nbytes"] == sum(t.nbytes for t in state.values())
    if target.endswith(".safetensors"):
        same(safetensors.torch.load_file(tmp_path / target), state)
    elif target.endswith(".npz"):
        with np.load(tmp_path / target) as archive:
            assert np.array_equal(archive["fc.bias"], state["fc.bias"].numpy())
            assert np.array_equal(archive["half"]["bfloat16"], state["half"].view(torch.int16).numpy().view("u2"))
    same(ferry.load(f"{tmp_path}/{target}", to="torch"), state)


def test_a_nest_of_torch_gets_dotted_names_and_tells_what_was_no_tensor(capsys, tmp_path, state):
    torch.save({"model": state, "history": [torch.zeros(2), 0.5], "epoch": 3}, tmp_path / "c.pt")
    ran = run_here(capsys, "export", tmp_path / "c.pt", tmp_path / "c.safetensors", "--json")
    assert ran.code == 0
    assert ran.document["left_out"] == ["history.1", "epoch"]
    expected = {f"model.{name}": t for name, t in state.items()} | {"history.0": torch.zeros(2)}
    same(safetensors.torch.load_file(tmp_path / "c.safetensors"), expected)
    text = run_here(capsys, "export", tmp_path / "c.pt", tmp_path / "c.npz").stdout
    assert "left out: 2 values that are no tensors: history.1, epoch" in " ".join(text.split())


def test_filters_take_names_and_exclude_wins(capsys, tmp_path, state):
    torch.save(state, tmp_path / "w.pt")
    arguments = ["--include", "fc.*", "--include", "step", "--exclude", "*bias"]
    ran = run_here(capsys, "export", tmp_path / "w.pt", tmp_path / "w.safetensors", "--json", *arguments)
    assert (ran.code, ran.document["filtered_out"]) == (0, 2)
    same(safetensors.torch.load_file(tmp_path / "w.safetensors"), {name: state[name] for name in ("fc.weight", "step")})


def test_filters_that_leave_nothing_are_wrong_usage(capsys, tmp_path, state):
    torch.save(state, tmp_path / "w.pt")
    ran = run_here(capsys, "export", tmp_path / "w.pt", tmp_path / "w.safetensors", "--include", "FC*")
    assert (ran.code, ran.stdout) == (2, "")
    assert "no tensor is left of the 4" in " ".join(ran.stderr.replace("│", " ").split())
    assert not (tmp_path / "w.safetensors").exists()


def test_dtype_converts_floating_tensors_only(capsys, tmp_path, state):
    torch.save(state, tmp_path / "w.pt")
    run_here(capsys, "export", tmp_path / "w.pt", tmp_path / "w.safetensors", "--dtype", "float16")
    expected = {name: t.half() if t.is_floating_point() else t for name, t in state.items()}
    same(safetensors.torch.load_file(tmp_path / "w.safetensors"), expected)


def test_tied_tensors_are_written_once(capsys, tmp_path):
    t = torch.arange(1000.0)
    torch.save({"wte": t, "lm_head": t}, tmp_path / "w.pt")
    ran = run_here(capsys, "export", tmp_path / "w.pt", tmp_path / "w.safetensors")
    assert "2 tensors (1 tied, written once)" in ran.stdout
    assert (tmp_path / "w.safetensors").stat().st_size < 1.5 * t.nbytes
    again = run_here(capsys, "export", tmp_path / "w.safetensors", tmp_path / "v.safetensors", "--json")
    assert again.document["report"]["aliases"] == 1
    assert torch.equal(ferry.load(tmp_path / "v.safetensors", to="torch")["lm_head"], t)


def test_one_array_keeps_its_file_s_name_and_metadata_goes_along(capsys, tmp_path):
    a = np.arange(6.0).reshape(2, 3)
    np.save(tmp_path / "queries.npy", a)
    assert run_here(capsys, "export", tmp_path / "queries.npy", tmp_path / "q.safetensors").code == 0
    assert np.array_equal(safetensors.numpy.load_file(tmp_path / "q.safetensors")["queries"], a)
    safetensors.numpy.save_file({"x": a}, tmp_path / "m.safetensors", metadata={"licence": "free", "format": "np"})
    assert run_here(capsys, "export", tmp_path / "m.safetensors", tmp_path / "n.safetensors").code == 0
    with safetensors.safe_open(tmp_path / "n.safetensors", framework="np") as file:
        assert file.metadata() == {"licence": "free", "format": "np"}
    assert run_here(capsys, "export", tmp_path / "n.safetensors", tmp_path / "back.npy").code == 0
    assert np.array_equal(np.load(tmp_path / "back.npy"), a)


def test_a_dry_run_prints_the_plan_and_writes_nothing(capsys, tmp_path, state):
    torch.save({**state, "turned": torch.ones(3, 2).t(), "tied": state["half"]}, tmp_path / "w.pt")
    target = tmp_path / "w.safetensors"
    ran = run_here(capsys, "export", tmp_path / "w.pt", target, "--dry-run", "--json", "--dtype", "float32")
    assert ran.code == 0
    plan = {
        row["name"]: (row["dtype"], row["written_dtype"], row["nbytes"], row["how"]) for row in ran.document["plan"]
    }
    assert plan == {
        "fc.weight": ("float32", "float32", 48, "in place"),
        "fc.bias": ("float32", "float32", 12, "in place"),
        "half": ("bfloat16", "float32", 40, "converted"),
        "step": ("int64", "int64", 8, "in place"),
        "turned": ("float32", "float32", 24, "packed"),
        "tied": ("bfloat16", "float32", 0, "same as half"),
    }
    text = run_here(capsys, "export", tmp_path / "w.pt", target, "--dry-run").stdout
    assert "6 tensors" in text
    assert "nothing was written" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w.pt"]


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["written", "planned"])
def test_what_is_there_is_kept_unless_overwrite_is_given(capsys, tmp_path, state, dry):
    torch.save(state, tmp_path / "w.pt")
    target = tmp_path / "w.npy"
    target.write_bytes(b"precious")
    refused = run_here(capsys, "export", tmp_path / "w.pt", target, "--include", "fc.bias", *dry)
    assert (refused.code, refused.stdout) == (1, "")
    assert "pass --overwrite" in refused.stderr
    assert target.read_bytes() == b"precious"
    replaced = run_here(capsys, "export", tmp_path / "w.pt", target, "--include", "fc.bias", "--overwrite")
    assert replaced.code == 0
    assert np.array_equal(np.load(target), state["fc.bias"].numpy())


class _Runs:
    def __reduce__(self):
        return (print, ("this must never run",))


def test_a_pickle_that_would_run_code_is_refused(capsys, tmp_path):
    torch.save({"w": torch.ones(2), "evil": _Runs()}, tmp_path / "evil.pt")
    ran = run_here(capsys, "export", tmp_path / "evil.pt", tmp_path / "out.safetensors")
    assert (ran.code, ran.stdout) == (1, "")
    assert "would run code" in ran.stderr
    assert not (tmp_path / "out.safetensors").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        pytest.param(["w.pt", "out.unknown"], 2, "means no format", id="an end that means nothing"),
        pytest.param(["w.pt", "out", "--format", "hdf5"], 2, "no such format", id="an unknown format"),
        pytest.param(["w.pt", "out.npy"], 1, "one array", id="several tensors for one array"),
        pytest.param(["none.pt", "out.npz"], 1, "No such file", id="a source that is not there"),
        pytest.param(["none.npy", "out.npz"], 1, "No such file", id="an array that is not there"),
        pytest.param(["w.pt", "no/such/folder/out.npz"], 1, "make the folder first", id="no folder"),
        pytest.param(["w.pt", "out.npz", "--dtype", "float7"], 2, "float7", id="an unknown dtype"),
    ],
)
def test_failures_exit_1_and_wrong_usage_exits_2(capsys, tmp_path, state, monkeypatch, arguments, code, says):
    monkeypatch.chdir(tmp_path)
    torch.save(state, "w.pt")
    ran = run_here(capsys, "export", *arguments)
    assert (ran.code, ran.stdout) == (code, "")
    assert says in " ".join(ran.stderr.replace("│", " ").split())
    assert [path.name for path in tmp_path.iterdir()] == ["w.pt"]


def test_shards_and_checksums(capsys, tmp_path, state):
    pytest.importorskip("google_crc32c", reason="checksums need google-crc32c")
    torch.save(state, tmp_path / "w.pt")
    options = ["--max-shard-size", "60", "--checksum", "--durable"]
    ran = run_here(capsys, "export", tmp_path / "w.pt", tmp_path / "w.safetensors", "--json", *options)
    assert ran.code == 0
    assert len(ran.document["report"]["paths"]) == 3  # index, 60 bytes, 28 bytes
    assert ran.document["report"]["durable"] is True
    again = run_here(capsys, "export", f"{tmp_path}/w.safetensors.index.json", f"{tmp_path}/all/")
    assert again.code == 0
    same(ferry.load(f"{tmp_path}/all", to="torch"), state)
