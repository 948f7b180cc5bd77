"""The format .safetensors: one file, or several with the index that Hugging Face's libraries read."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from functools import partial
from typing import Any

from tensorferry._errors import ExportError
from tensorferry._io.atomic import NewFile, require_free, sync_folder
from tensorferry._io.entries import Entry
from tensorferry._io.failures import refused, unreadable
from tensorferry._io.file_workers import FileWorkers
from tensorferry._io.format import Contents, Session, Stored, Target
from tensorferry._io.pairs import in_pairs
from tensorferry._io.pipeline import write_fully
from tensorferry._io.safetensors_file import SafetensorsFile, in_order_of_file
from tensorferry._io.safetensors_header import parsed_header

__all__ = ["SAFETENSORS_FORMAT", "index_path", "weight_map"]

_INDEX = ".index.json"


def index_path(path: str) -> str:
    """Return where the index of a model in shards lies."""
    return path if path.endswith(_INDEX) else path + _INDEX


class _Safetensors:
    name = "safetensors"
    suffixes: tuple[str, ...] = (".safetensors",)

    def begin(self, target: Target) -> Session:
        """See :class:`Format`."""
        return _SafetensorsSession(target)

    def contents(self, path: str) -> Contents:
        """See :class:`Format`; the path of the whole model also when it lies in shards."""
        try:
            if path.endswith(_INDEX) or (not os.path.exists(path) and os.path.exists(index_path(path))):
                return _in_shards(index_path(path))
            header = parsed_header(path)
        except OSError as error:
            raise error if isinstance(error, ExportError) else unreadable(path, error) from error
        return Contents(self.name, header.tensors, header.aliases, header.metadata)


def _in_shards(path: str) -> Contents:
    weights = weight_map(path)
    folder = os.path.dirname(path)
    tensors: dict[str, Stored] = {}
    aliases: dict[str, str] = {}
    metadata: dict[str, str] = {}
    for file in sorted(set(weights.values())):
        header = parsed_header(os.path.join(folder, file))
        tensors.update(header.tensors)
        aliases.update(header.aliases)
        metadata.update(header.metadata)
    missing = sorted(set(weights) - set(tensors))
    if missing:
        raise refused(path, f"no shard holds the tensor {missing[0]!r}", "check that all shards are of one model")
    return Contents("safetensors", tensors, aliases, metadata)


def weight_map(path: str) -> dict[str, str]:
    """Return which shard holds each tensor, as an index says it; every shard lies beside the index."""
    try:
        with open(path, encoding="utf-8") as file:
            weights = dict(json.load(file)["weight_map"])
    except (ValueError, KeyError, TypeError) as error:
        raise refused(path, f"it is no index of shards ({error})", "check that it is complete") from error
    for file_name in weights.values():
        if not isinstance(file_name, str) or os.path.basename(file_name) != file_name or file_name in ("", ".", ".."):
            raise refused(path, f"it names the shard {file_name!r} outside of its folder", "check where it comes from")
    return weights


class _SafetensorsSession:
    """See :class:`Session`. A shard is begun when the next tensor would make the one before it too large."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._limit = target.options.max_shard_nbytes
        self.is_direct, self.reason = False, ""
        require_free(target.path, target.options)
        require_free(index_path(target.path), target.options)
        self._groups = None if target.known is None else self._grouped(list(map(in_pairs, target.known)))
        self.order = None if self._groups is None else [entry for group in self._groups for entry in group]
        self._aliases = {e.name: e.alias_of for e in target.known or () if e.alias_of is not None}
        self._begun: list[SafetensorsFile] = []
        self._files: list[SafetensorsFile] = []  # in the order of the shards
        self._left = self._groups_begun = 0
        self._workers = FileWorkers(target)
        several = self._groups is not None and len(self._groups) > 1
        self._side_by_side = several and all(map(self._workers.takes, self._groups or ()))
        self._is_whole = False

    def _grouped(self, known: list[Entry]) -> list[list[Entry]]:
        groups: list[list[Entry]] = [[]]
        nbytes = 0
        for entry in known:
            if entry.alias_of is not None:
                continue
            if self._limit is not None and groups[-1] and nbytes + entry.tensor.nbytes > self._limit:
                groups.append([])
                nbytes = 0
            groups[-1].append(entry)
            nbytes += entry.tensor.nbytes
        return [in_order_of_file(group) for group in groups]

    def put(self, entry: Entry) -> None:
        """See :class:`Session`."""
        if self._side_by_side:
            self._put_side_by_side()
            return
        if self._groups is not None:
            if self._left == 0:
                self._begin_file(self._groups[len(self._files)])
            self._left -= 1
        else:
            entry = in_pairs(entry)
            if not self._files or self._is_full(entry):
                self._begin_file(None)
        self._files[-1].put(entry)

    def _is_full(self, entry: Entry) -> bool:
        file = self._files[-1]
        return self._limit is not None and bool(file.rows) and file.nbytes + entry.tensor.nbytes > self._limit

    def _put_side_by_side(self) -> None:
        """Begin a whole shard with its first tensor."""
        assert self._groups is not None
        if self._left == 0:
            group = self._groups[self._groups_begun]
            self._groups_begun += 1
            self._left = len(group)
            self._workers.run(partial(self._whole_file, group), self._files.append)
        self._left -= 1

    def _whole_file(self, group: list[Entry], target: Target) -> SafetensorsFile:
        file = self._new_file(group, target)
        for entry in group:
            file.put(entry)
        file.finish()
        return file

    def _begin_file(self, known: list[Entry] | None) -> None:
        if self._files:
            self._files[-1].finish()
        self._files.append(self._new_file(known, self._target))
        self._left = len(known or ())

    def _new_file(self, known: list[Entry] | None, target: Target) -> SafetensorsFile:
        here = {entry.name for entry in known or ()}
        aliases = {alias: kept for alias, kept in self._aliases.items() if kept in here}
        file = SafetensorsFile(target, known, aliases)
        self._begun.append(file)
        return file

    def finish(self) -> list[str]:
        """See :class:`Session`."""
        self._workers.finish()
        if not self._files:
            self._begin_file([] if self._groups is not None else None)
        if not self._side_by_side:
            self._files[-1].finish()
        self.is_direct, self.reason = self._files[-1].is_direct, self._files[-1].reason
        if len(self._files) == 1:
            old = self._paths_of_old_shards()
            self._files[0].file.commit()
            self._remove(old)
            return [self._target.path]
        return self._commit_shards()

    def _commit_shards(self) -> list[str]:
        """Give the shards names that nobody has, and then replace the index: what it names changes in one moment."""
        target = self._target
        old = [*self._paths_of_old_shards(), target.path]
        paths = self._free_names()
        for file, path in zip(self._files, paths, strict=True):
            file.file.target = path
            file.file.rename(overwrite=False)
        if target.options.durable:
            sync_folder(target.options.system, os.path.dirname(target.path))
        weights: dict[str, str] = {}
        for file, path in zip(self._files, paths, strict=True):
            weights.update({row.name: os.path.basename(path) for row in file.rows})
        total = sum(file.nbytes for file in self._files)
        self._write_index({"metadata": {"total_size": total}, "weight_map": dict(sorted(weights.items()))})
        self._remove([path for path in old if path not in paths and path != index_path(target.path)])
        return [index_path(target.path), *paths]

    def _write_index(self, index: dict[str, Any]) -> None:
        text = json.dumps(index, indent=2, ensure_ascii=False).encode()
        with NewFile(index_path(self._target.path), self._target.options) as file:
            write_fully(self._target.options, file.fd, [text], 0)
            if self._target.options.durable:
                self._target.options.system.fsync(file.fd)
            try:
                file.commit()
            finally:
                self._is_whole = file.is_committed

    def _free_names(self) -> list[str]:
        stem = self._target.path.removesuffix(".safetensors")
        count = len(self._files)
        token = ""
        while True:
            paths = [f"{stem}{token}-{i:05d}-of-{count:05d}.safetensors" for i in range(1, count + 1)]
            if not self._target.options.overwrite or not any(os.path.lexists(path) for path in paths):
                return paths
            token = f"-{secrets.token_hex(4)}"

    def _paths_of_old_shards(self) -> list[str]:
        """Return index and shards of a model that this one replaces."""
        index = index_path(self._target.path)
        if not self._target.options.overwrite or not os.path.lexists(index):
            return []
        folder = os.path.dirname(index)
        with contextlib.suppress(OSError):
            return [index, *(os.path.join(folder, name) for name in sorted(set(weight_map(index).values())))]
        return [index]

    def _remove(self, paths: list[str]) -> None:
        for path in paths:
            with contextlib.suppress(OSError):
                self._target.options.system.unlink(path)

    def abort(self) -> None:
        """See :class:`Session`."""
        self._workers.close()
        for file in self._begun:
            file.abort()
        if len(self._files) > 1 and not self._is_whole:
            self._remove([file.file.target for file in self._files if file.file.is_committed])


SAFETENSORS_FORMAT = _Safetensors()
