"""Writes the shards of ``torch.distributed.checkpoint``: one folder, whole or absent, of .safetensors files."""

from __future__ import annotations

import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tensorferry import _torch
from tensorferry._io.atomic import absolute
from tensorferry._io.entries import Entries, Entry
from tensorferry._io.failures import refused, reported
from tensorferry._io.new_folder import NewFolder
from tensorferry._io.options import SaveOptions
from tensorferry._io.rows import described
from tensorferry._io.safetensors import SAFETENSORS_FORMAT
from tensorferry._io.save import write
from tensorferry._io.small_file import replace_file

__all__ = ["Shards", "finished"]

_INDEX = "model.safetensors.index.json"
_OURS = re.compile(r"shard-\d{5}-model-\d{5}-of-\d{5}\.safetensors")
# What torch's HuggingFaceStorageReader looks for in the metadata of a file.
_SHARDING, _VERSION = "DCP_SHARDING_INFO", {"DCP_VERSION": "1.0", "format": "pt"}


class Shards:
    """The steps of a save; see :class:`tensorferry.io.CheckpointWriter`.

    The coordinator makes the folder under a temporary name, every process writes files into it, and the coordinator
    renames it when all have succeeded.
    """

    def __init__(self, path: Any, options: SaveOptions) -> None:
        self.path = absolute(path)
        self._options = options
        self._folder: NewFolder | None = None

    def restart(self, path: Any) -> None:
        """Forget an earlier save that did not end; go on with another path, if one is given."""
        self.close()
        if path is not None:
            self.path = absolute(path)

    def planned(self, plans: Sequence[Any]) -> list[Any]:
        """Make the folder, and tell every process where it is."""
        with reported(self.path):
            self._folder = NewFolder(self.path, self._options, _is_ours)
        folder = self._folder.path
        return [replace(plan, storage_data=(folder, rank)) for rank, plan in enumerate(plans, start=1)]

    def write(self, plan: Any, planner: Any) -> list[Any]:
        """Write what this process has; return what torch wants to know about each part."""
        folder, rank = plan.storage_data
        files = _files(self.path, plan.items)
        found: list[Any] = []
        for number, items in enumerate(files, start=1):
            name = f"shard-{rank:05d}-model-{number:05d}-of-{len(files):05d}.safetensors"
            found += self._write_file(os.path.join(folder, name), items, planner)
        return found

    def _write_file(self, path: str, items: Sequence[Any], planner: Any) -> list[Any]:
        offsets = {item.index.fqn: {"saved_offsets": list(item.tensor_data.chunk.offsets)} for item in items}
        tensors = [(item.index.fqn, planner.resolve_data(item)) for item in items]
        metadata = {**(self._options.metadata or {}), **_VERSION, _SHARDING: json.dumps(offsets)}
        # Tied tensors are written twice: torch's reader knows nothing of aliases.
        known = [Entry(name, described(name, tensor, None)) for name, tensor in tensors]
        options = replace(self._options, metadata=metadata, overwrite=False)
        write(Entries(known, iter(known)), SAFETENSORS_FORMAT, path, options, time.perf_counter())
        return [_result(item, tensor, os.path.basename(path)) for item, (_, tensor) in zip(items, tensors, strict=True)]

    def finish(self, metadata: Any, results: Iterable[Sequence[Any]]) -> None:
        """Let the folder appear."""
        assert self._folder is not None  # planned() comes first, in the same process
        parts = [part for ranks in results for part in ranks]
        whole = {name: tuple(facts.size) for name, facts in metadata.state_dict_metadata.items()}
        with reported(self.path):
            if all(part.storage_data["shape"] == whole[part.index.fqn] for part in parts):
                self._write_index(parts)
            self._folder.commit()
        self._folder = None

    def _write_index(self, parts: Sequence[Any]) -> None:
        """Write the index that Hugging Face's libraries read; they know no parts of tensors."""
        assert self._folder is not None
        weights = {part.index.fqn: part.storage_data["file"] for part in parts}
        total = sum(part.size_in_bytes for part in parts)
        text = json.dumps({"metadata": {"total_size": total}, "weight_map": dict(sorted(weights.items()))}, indent=2)
        replace_file(self._options, os.path.join(self._folder.path, _INDEX), text.encode())

    def close(self) -> None:
        """Remove what a save that did not end has left."""
        if self._folder is not None:
            self._folder.abort()
            self._folder = None


def _files(path: str, items: Sequence[Any]) -> list[list[Any]]:
    """Share items out to files, so that no file has two parts of one tensor."""
    parts: dict[str, int] = defaultdict(int)
    files: list[list[Any]] = []
    for item in items:
        if item.tensor_data is None:
            raise refused(
                path,
                f"{item.index.fqn!r} is no tensor, and would have to be pickled",
                "make it a tensor, leave it out, or save it with torch.distributed.checkpoint.FileSystemWriter",
            )
        at = parts[item.index.fqn]
        parts[item.index.fqn] += 1
        if at == len(files):
            files.append([])
        files[at].append(item)
    return files


def _result(item: Any, tensor: Any, file: str) -> Any:
    from torch.distributed.checkpoint.storage import WriteResult

    nbytes = tensor.numel() * tensor.element_size()
    return WriteResult(item.index, nbytes, {"file": file, "shape": tuple(item.tensor_data.chunk.sizes)})


def _is_ours(path: str) -> bool:
    try:
        return all(name == _INDEX or _OURS.fullmatch(name) for name in os.listdir(path))
    except OSError:
        return False


def finished(results: list[Any]) -> Any:
    """Return a future of torch's that is done."""
    future = _torch.require("CheckpointWriter").futures.Future()
    future.set_result(results)
    return future
