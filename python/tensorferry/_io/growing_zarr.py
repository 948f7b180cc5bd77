"""Arrays of a Zarr group that grow, chunk by chunk; each notes how many of its rows are whole."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from tensorferry._io.entries import Entry
from tensorferry._io.failures import refused
from tensorferry._io.format import Target
from tensorferry._io.growing import RowKind
from tensorferry._io.growing_tree import GrowingTree
from tensorferry._io.growing_zarr_array import GrowingZarrArray
from tensorferry._io.new_folder import NewFolder
from tensorferry._io.readable import Readable
from tensorferry._io.zarr_format import (
    CHUNK_NBYTES,
    TAG,
    ZARR,
    array_name,
    array_names,
    new_array,
    open_group,
    put_array,
    remove_partial,
    sync_tree,
    zarr_is_ours,
)

__all__ = ["GrowingZarr"]

_Array = np.ndarray[Any, Any]


class GrowingZarr(GrowingTree):
    """See :class:`Backend`. As a folder of ``.npy`` files it gets its name when rows are appended first."""

    format = "zarr"
    takes_rows = "many"
    is_direct = False
    reason = "zarr writes the chunks"

    def __init__(self, target: Target, *, resume: bool) -> None:
        super().__init__(target, resume=resume)
        self._count = 0
        self._growing: dict[str, GrowingZarrArray] = {}
        self._key_names = array_names()
        resumes = resume and os.path.lexists(target.path)
        self.kinds: Mapping[str, RowKind] = {}
        self.names: set[str] = set()
        if resumes:
            try:
                self._reopen()
            except BaseException:
                self._close()
                raise
            return
        self._draft = NewFolder(target.path, target.options, zarr_is_ours)
        try:
            self._group = open_group(self._draft.path, "a")
            metadata = dict(target.options.metadata or {})
            self._group.attrs[TAG] = {"version": 1, "aliases": {}, "metadata": metadata}
        except BaseException:
            self._draft.abort()
            raise

    def _reopen(self) -> None:
        path = self._target.path
        contents = ZARR.contents(path)  # says what is wrong with it
        if contents.is_single:
            raise refused(path, "it is an array without a group", "append to it with zarr")
        self._lock()
        remove_partial(self._target.options, path)
        self._group = open_group(path, "r+")
        facts = dict(self._group.attrs.get(TAG, {}))
        facts["metadata"] = {**facts.get("metadata", {}), **(self._target.options.metadata or {})}
        self._group.attrs[TAG] = {"version": 1, "aliases": {}, **facts}
        for key in [key for key, member in self._group.arrays() if member.attrs.get(TAG, {}).get("is_draft")]:
            del self._group[key]
        found = {member.attrs.get(TAG, {}).get("name", key): (key, member) for key, member in self._group.arrays()}
        rows: dict[str, int] = {}
        for name, (_, array) in found.items():
            group = array.attrs.get(TAG, {}).get("grows", name)
            count = contents.tensors[name].shape[0] if array.ndim else 0
            rows[group] = min(count, rows.get(group, count))
        for name, (key, array) in found.items():
            self._key_names.keep(key)
            notes = dict(array.attrs.get(TAG, {}))
            if "grows" in notes:
                stored = contents.tensors[name]
                kind = RowKind(stored.dtype, stored.shape[1:], rows[notes["grows"]])
                self._growing[name] = GrowingZarrArray(self._target, array, kind)
        self._count = len(found)
        self.kinds = {name: growing.kind for name, growing in self._growing.items()}
        self.names = set(found) - set(self._growing)

    def put(self, entry: Entry) -> None:
        """See :class:`Backend`."""
        key, is_seen = array_name(self._key_names, entry.name), self._draft is None
        put_array(self._group, key, self._target, entry, self._count, is_seen=is_seen)
        self._count += 1

    def append(self, columns: Mapping[str, Readable]) -> None:
        """See :class:`Backend`."""
        first = next(iter(columns))
        for name, tensor in columns.items():
            if name not in self._growing:
                together = self._growing[first].together if first in self._growing else first
                self._begin(name, tensor, together)
        self._show()
        for name, tensor in columns.items():
            self._growing[name].append(tensor)

    def _begin(self, name: str, tensor: Readable, together: str) -> None:
        kind = RowKind(tensor.dtype, tensor.shape[1:])
        row_nbytes = math.prod(kind.shape) * kind.dtype.itemsize
        limit = min(CHUNK_NBYTES, self._target.options.max_staging_nbytes // 4)
        chunks = (max(1, limit // max(row_nbytes, 1)), *kind.shape)
        empty = Readable(kind.dtype, (0, *kind.shape), None, "", ())
        facts = {"place": self._count, "rows": 0, "grows": together}
        key = array_name(self._key_names, name)
        array = new_array(self._group, key, self._target.path, Entry(name, empty), chunks, facts)
        self._growing[name] = GrowingZarrArray(self._target, array, kind)
        self._count += 1

    def _show(self) -> None:
        """Give the group its name as soon as that may be."""
        if not self._get_name(only_rows=self._count == len(self._growing)):
            return
        self._group = open_group(self._target.path, "r+")
        arrays = {array.attrs[TAG]["name"]: array for _, array in self._group.arrays()}
        for name, growing in self._growing.items():
            growing.array = arrays[name]

    def flush(self) -> None:
        """See :class:`Backend`."""
        for growing in self._growing.values():
            growing.flush()
        if self._target.options.durable:
            sync_tree(self._target.options, self._target.path if self._draft is None else self._draft.path)

    def finish(self) -> list[str]:
        """See :class:`Backend`."""
        for growing in self._growing.values():
            growing.finish()
        self.flush()
        return self._complete()
