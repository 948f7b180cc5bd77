"""Rows of a Ray Data pipeline as Parquet files: one for each task, and the folder whole or absent.

python examples/ray_rows.py folder
"""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Iterable
from typing import Any

import numpy as np
import ray
import torch
from ray.data.block import BlockAccessor

import tensorferry as ferry


class Embed:
    """A model that each worker makes once."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Embedding(1000, 16), torch.nn.LayerNorm(16))

    @torch.no_grad()
    def __call__(self, batch: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
        """Add the embedding of each row; it shares the memory of the model's output."""
        return {**batch, "embedding": ferry.to_numpy(self.model(torch.tensor(batch["id"])))}


class Rows(ray.data.Datasink[int]):
    """Writes a file for each task into a draft beside the folder, on a file system that all nodes share.

    A task that Ray runs again has its old number. So its file replaces the old one, and no row is there twice.
    """

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        if os.path.exists(self.folder):
            raise FileExistsError(self.folder)
        self.draft = f"{self.folder}.{uuid.uuid4().hex}"
        os.makedirs(self.draft)

    def write(self, blocks: Iterable[Any], ctx: Any) -> int:
        """Write the blocks of one task, while they come; a file appears when all of its rows are there."""
        tables = (BlockAccessor.for_block(block).to_numpy() for block in blocks if len(block))
        first = next(tables, None)
        if first is None:
            return 0
        with ferry.Writer(f"{self.draft}/{ctx.task_idx:06d}.parquet", overwrite=True) as writer:
            writer.append(first)
            for table in tables:
                writer.append(table)
            return writer.rows

    def on_write_complete(self, write_result: Any) -> None:
        """Show everything at once."""
        os.rename(self.draft, self.folder)

    def on_write_failed(self, error: Exception) -> None:
        """Leave nothing."""
        shutil.rmtree(self.draft, ignore_errors=True)


def main(folder: str) -> None:
    """Embed a thousand rows, and read them back."""
    ray.init(num_cpus=2, object_store_memory=100 << 20, include_dashboard=False)
    rows = ray.data.range(1000, override_num_blocks=8)
    rows = rows.map_batches(Embed, batch_size=64, compute=ray.data.ActorPoolStrategy(size=1))
    rows.write_datasink(Rows(folder))
    again = ray.data.read_parquet(folder).take_batch(1000)
    print(again["id"].shape, np.stack(list(again["embedding"])).shape)  # Ray gives each list as an array of its own
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "embeddings")
