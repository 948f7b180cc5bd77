"""``CheckpointStager`` and ``CheckpointWriter`` under torch.distributed.checkpoint: real processes, real readers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import safetensors.torch
import torch
import torch.distributed.checkpoint as dcp

import tensorferry as ferry

HELPERS = Path(__file__).resolve().parents[1]


def run_group(action, folder, processes):
    """Run ``helpers.sharded_checkpoint`` in a group of processes; all must end well."""
    store = folder / f"store-{action}"
    group = [
        subprocess.Popen(
            [sys.executable, "-P", "-m", "helpers.sharded_checkpoint", action, str(folder)],
            env={
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": str(processes),
                "STORE": str(store),
                "PYTHONPATH": str(HELPERS),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(processes)
    ]
    said = [process.communicate(timeout=280)[0] for process in group]
    assert [process.returncode for process in group] == [0] * processes, "\n".join(said)[-8000:]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model of FSDP2, saved by three processes with three writers, while its parameters changed."""
    folder = tmp_path_factory.mktemp("checkpoints")
    run_group("save", folder, 3)
    return folder


def test_two_processes_load_it_into_other_shards_with_the_readers_of_torch(saved):
    run_group("load", saved, 2)


@pytest.mark.parametrize("writer", ["files", "hugging-face", "ours"])
def test_one_process_loads_whole_tensors_that_are_those_of_the_moment_of_staging(saved, writer):
    expected = torch.load(saved / "expected.pt", weights_only=True)
    state = {name: torch.zeros_like(tensor) for name, tensor in expected.items()}
    reader = dcp.FileSystemReader if writer == "files" else dcp.HuggingFaceStorageReader
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.load(state, storage_reader=reader(str(saved / writer)), no_dist=True)
    for name, tensor in expected.items():
        assert torch.equal(state[name], tensor), name
        assert not (tensor == 100).any()


def test_our_shards_are_safetensors_files_one_a_process_and_nothing_else_is_there(saved):
    names = sorted(path.name for path in (saved / "ours").iterdir())
    assert names == [f"shard-{rank:05d}-model-00001-of-00001.safetensors" for rank in (1, 2, 3)]
    rows = [safetensors.torch.load_file(saved / "ours" / name)["0.weight"].shape for name in names]
    assert rows == [(11, 16)] * 3
    assert not [path for path in saved.iterdir() if "ferry-tmp" in path.name]


def dcp_save(state, writer, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(state, storage_writer=writer, no_dist=True, **options)


def test_whole_tensors_get_an_index_and_are_readable_as_a_model(tmp_path):
    w = torch.randn(4, 4)
    state = {"w": w, "tied": w, "half": torch.ones(3).bfloat16(), "few": torch.arange(1000.0)[:2]}
    dcp_save(state, ferry.io.CheckpointWriter(tmp_path / "step", metadata={"run": "7"}))
    index = json.loads((tmp_path / "step" / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"]) == set(state)
    loaded = ferry.load(tmp_path / "step" / "model.safetensors.index.json", to="torch")
    assert all(torch.equal(loaded[name], tensor) for name, tensor in state.items())
    (file,) = (tmp_path / "step").glob("*.safetensors")
    assert file.stat().st_size < 2000  # of a view, only what it shows
    assert ferry.inspect(file).metadata["run"] == "7"


def test_what_is_no_tensor_is_refused_and_nothing_is_left(tmp_path):
    writer = ferry.io.CheckpointWriter(tmp_path / "step")
    with pytest.raises(dcp.CheckpointException, match=r"'epoch' is no tensor"):
        dcp_save({"w": torch.ones(2), "epoch": 3}, writer)
    writer.close()
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_is_replaced_on_request_only_and_other_folders_never(tmp_path):
    dcp_save({"w": torch.ones(2)}, ferry.io.CheckpointWriter(tmp_path / "step"))
    with pytest.raises(dcp.CheckpointException, match="EEXIST"):
        dcp_save({"w": torch.zeros(2)}, ferry.io.CheckpointWriter(tmp_path / "step"))
    dcp_save({"v": torch.zeros(2)}, ferry.io.CheckpointWriter(tmp_path / "step", overwrite=True))
    assert set(ferry.load(tmp_path / "step" / "model.safetensors.index.json")) == {"v"}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("precious")
    with pytest.raises(dcp.CheckpointException, match="not made by"):
        dcp_save({"w": torch.ones(2)}, ferry.io.CheckpointWriter(tmp_path / "mine", overwrite=True))
    assert (tmp_path / "mine" / "notes.txt").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "step"]


def test_a_checkpoint_id_is_the_folder(tmp_path):
    writer = ferry.io.CheckpointWriter(tmp_path / "unused", durable=False)
    for step in (1, 2):
        dcp_save({"w": torch.full((2,), float(step))}, writer, checkpoint_id=tmp_path / f"step-{step}")
    index = "model.safetensors.index.json"
    assert [ferry.load(tmp_path / f"step-{step}" / index)["w"].tolist() for step in (1, 2)] == [[1, 1], [2, 2]]
    assert not (tmp_path / "unused").exists()


def test_staged_values_are_those_of_the_moment_in_memory_of_their_own():
    stager = ferry.io.CheckpointStager()
    w = torch.arange(6.0).reshape(2, 3)
    state = {"w": w, "turned": w.t(), "tied": w, "opt": [{"step": torch.tensor(3), "lr": 0.1}], "half": w.bfloat16()}
    first = stager.stage(state)
    w.fill_(-1)
    second = stager.stage(state)
    w.fill_(-2)
    assert first["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert torch.equal(first["turned"], first["w"].t())
    assert first["tied"] is first["w"]
    assert first["opt"] == [{"step": torch.tensor(3), "lr": 0.1}]
    assert (first["half"].dtype, first["half"].tolist()) == (torch.bfloat16, [[0, 1, 2], [3, 4, 5]])
    assert second["w"].unique().tolist() == [-1]


def test_only_what_a_view_shows_is_staged_and_other_values_are_copied():
    big = torch.zeros(1 << 20)
    notes = {"seen": [1, 2]}
    staged = ferry.io.CheckpointStager().stage(
        {"few": big[:3], "notes": notes, "parameter": torch.nn.Parameter(big[:2])}
    )
    assert staged["few"].untyped_storage().nbytes() < 1000
    assert type(staged["parameter"]) is torch.Tensor
    notes["seen"].append(3)
    assert staged["notes"] == {"seen": [1, 2]}


def test_a_tensor_spread_over_processes_is_never_converted_by_guess():
    """Only the caller knows whether a part or the whole is meant, and the whole takes all processes to get."""
    program = (
        "import torch, torch.distributed as dist, tensorferry as ferry\n"
        "from torch.distributed.tensor import distribute_tensor, Shard\n"
        "from torch.distributed.device_mesh import init_device_mesh\n"
        "store = dist.HashStore(); dist.init_process_group('gloo', store=store, rank=0, world_size=1)\n"
        "x = distribute_tensor(torch.ones(4), init_device_mesh('cpu', (1,)), [Shard(0)])\n"
        "for call in (ferry.to_numpy, lambda x: ferry.save({'w': x}, '/nowhere/x.npz')):\n"
        "    try: call(x)\n"
        "    except ferry.LayoutError as error: print(error)\n"
        "staged = ferry.io.CheckpointStager().stage({'x': x})['x']\n"
        "print(type(staged).__name__, staged.placements, staged.to_local().tolist())\n"
        "dist.destroy_process_group()\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200, check=False)
    lines = ran.stdout.splitlines()
    assert len(lines) == 3, ran.stderr
    for line in lines[:2]:
        assert "x.to_local()" in line
        assert "x.full_tensor()" in line
    assert lines[2] == "DTensor (Shard(dim=0),) [1.0, 1.0, 1.0, 1.0]"
