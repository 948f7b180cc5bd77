"""One process of a group that saves or loads a sharded state: ``python sharded_checkpoint.py save|load FOLDER``.

The model is that of FSDP2 on the CPU, in uneven shards. ``save`` changes every parameter as soon as the staging allows;
``load`` reads into shards along other axes, of another number of processes. Values that the first process knows to be
right are in ``expected.pt``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import tensorferry as ferry


def model_state(mesh: Any) -> dict[str, Any]:
    """The parameters of a sharded model after the same few steps in every process, and tensors of other placements."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(16, 33), torch.nn.LayerNorm(33), torch.nn.Linear(33, 10))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    model(torch.randn(5, 16)).square().sum().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
    state: dict[str, Any] = {name: parameter.detach() for name, parameter in model.state_dict().items()}
    rows = torch.randn(6, 8).bfloat16()
    state["columns"] = distribute_tensor(rows, mesh, [Shard(1)])
    state["copied"] = distribute_tensor(rows[0].contiguous(), mesh, [Replicate()])
    state["plain"] = torch.arange(12.0)[::3]
    state["nest"] = {"step": torch.tensor(7)}
    return state


def writers(folder: Path) -> dict[str, Any]:
    """Torch's writers, and ours."""
    return {
        "files": dcp.FileSystemWriter(folder / "files"),
        "hugging-face": dcp.HuggingFaceStorageWriter(str(folder / "hugging-face"), save_distributed=True),
        "ours": ferry.io.CheckpointWriter(folder / "ours", durable=False),
    }


def save(folder: Path) -> None:
    """Save with each writer; the state changes as soon as it is staged."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    stager = ferry.io.CheckpointStager()
    state = model_state(mesh)
    expected = {name: full(tensor) for name, tensor in flat(state).items()}
    if dist.get_rank() == 0:
        torch.save(expected, folder / "expected.pt")
    for writer in writers(folder).values():
        saved = dcp.async_save(state, storage_writer=writer, async_stager=stager)
        before = {name: local(tensor).clone() for name, tensor in flat(state).items()}
        for tensor in flat(state).values():
            local(tensor).fill_(100)
        saved.result()
        for name, tensor in flat(state).items():
            local(tensor).copy_(before[name])


def load(folder: Path) -> None:
    """Load each checkpoint with torch's own readers, into other shards, and compare every value."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    expected = torch.load(folder / "expected.pt", weights_only=True)
    for name in ("files", "hugging-face", "ours"):
        reader: Any = dcp.FileSystemReader(folder / name)
        if name != "files":
            reader = dcp.HuggingFaceStorageReader(str(folder / name))
        state = {key: sharded_otherwise(tensor, mesh) for key, tensor in expected.items()}
        dcp.load(state, storage_reader=reader)
        for key, tensor in expected.items():
            assert torch.equal(full(state[key]), tensor), (name, key)


def flat(state: dict[str, Any]) -> dict[str, Any]:
    """Names as the checkpoint has them."""
    nest = {f"nest.{name}": tensor for name, tensor in state["nest"].items()}
    return {**{name: tensor for name, tensor in state.items() if name != "nest"}, **nest}


def local(x: Any) -> torch.Tensor:
    return x.to_local() if isinstance(x, DTensor) else x


def full(x: Any) -> torch.Tensor:
    return x.full_tensor().clone() if isinstance(x, DTensor) else x.clone()


def sharded_otherwise(x: torch.Tensor, mesh: Any) -> Any:
    """Zeros of the same shape, sharded along the last axis where there are two."""
    zeros = torch.zeros_like(x)
    return distribute_tensor(zeros, mesh, [Shard(x.dim() - 1)]) if x.dim() else zeros


def main() -> None:
    """Join the group that the environment describes, act, and leave."""
    folder = Path(sys.argv[2])
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{os.environ['STORE']}", rank=rank, world_size=world)
    try:
        {"save": save, "load": load}[sys.argv[1]](folder)
        dist.barrier()
    finally:
        dist.destroy_process_group()
    print("done", flush=True)
    if sys.argv[1] == "load":  # all of it torch's, whose threads can abort an interpreter that ends
        os._exit(0)


if __name__ == "__main__":
    main()
