"""The format Zarr v3, by the library zarr: a group with one array for each tensor."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from tensorferry._errors import ExportError
from tensorferry._io.atomic import sync_folder
from tensorferry._io.carriers import carrier_of, restored
from tensorferry._io.entries import Entry
from tensorferry._io.failures import refused
from tensorferry._io.format import Contents, Session, Stored, Target
from tensorferry._io.names import FileNames
from tensorferry._io.new_folder import NewFolder
from tensorferry._io.optional import optional
from tensorferry._io.options import SaveOptions
from tensorferry._io.slab_values import slab_values
from tensorferry._io.slabs import slabs

__all__ = [
    "CHUNK_NBYTES",
    "TAG",
    "ZARR",
    "array_name",
    "array_names",
    "new_array",
    "open_group",
    "put_array",
    "remove_partial",
    "sync_tree",
    "zarr_is_ours",
]

_Array = np.ndarray[Any, Any]

TAG = "tensorferry"  # our key among the attributes
CHUNK_NBYTES = 4 << 20
_INDEX = "zarr.json"
_KINDS = "biufc"
_PARTIAL = re.compile(r"\.[0-9a-f]{32}\.partial$")  # names that zarr gives to files that are not whole


class _Zarr:
    name = "zarr"
    suffixes: tuple[str, ...] = (".zarr", ".zarr/")

    def begin(self, target: Target) -> Session:
        """See :class:`Format`."""
        for entry in target.known or ():
            _carrier(target.path, entry)
        return _ZarrSession(target)

    def contents(self, path: str) -> Contents:
        """See :class:`Format`."""
        try:
            found = _library(path).open(path, mode="r")
            if not hasattr(found, "members"):
                return Contents(self.name, {"": _stored("", found, path)}, is_single=True)
            facts = dict(found.attrs.get(TAG, {}))
            members = [(key, member) for key, member in found.members(max_depth=None) if _is_whole(member)]
            stored = [_stored(key, member, path) for key, member in sorted(members, key=_place)]
            tensors = {one.name: one for one in stored}
            return Contents(self.name, tensors, dict(facts.get("aliases", {})), dict(facts.get("metadata", {})))
        except ExportError:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise refused(path, f"zarr cannot read it ({error})", "check that it is complete") from error


def _library(path: str) -> Any:
    return optional("zarr", f"the Zarr group {path!r}", "zarr")


def _is_whole(member: Any) -> bool:
    """Is it an array, and one of which every value was written?"""
    return not hasattr(member, "members") and not member.attrs.get(TAG, {}).get("is_draft")


def _place(item: tuple[str, Any]) -> tuple[int, str]:
    return int(item[1].attrs.get(TAG, {}).get("place", 1 << 60)), item[0]


def _stored(key: str, array: Any, path: str) -> Stored:
    facts = dict(array.attrs.get(TAG, {}))
    dtype = np.dtype(array.dtype)
    if dtype.kind not in _KINDS + "mM":
        raise refused(path, f"its array {key!r} holds {dtype}, which is not read", "read it with zarr")
    if "dtype" in facts:
        dtype = restored(path, facts["dtype"])
    shape = tuple(array.shape)
    if "rows" in facts:
        shape = (int(facts["rows"]), *shape[1:])
    read = partial(_read, array, dtype, shape, path)
    return Stored(facts.get("name", key), dtype, shape, path, None, False, facts.get("crc32c"), read)


def _read(array: Any, dtype: np.dtype[Any], shape: tuple[int, ...], path: str) -> _Array:
    try:
        values = np.ascontiguousarray(array[: shape[0]] if shape else array[...])
    except (OSError, ValueError, RuntimeError) as error:
        why = f"zarr cannot read its array {array.name!r} ({error})"
        raise refused(path, why, "check that it is complete") from error
    return values.view(dtype).reshape(shape)


def _carrier(path: str, entry: Entry) -> tuple[np.dtype[Any], str | None]:
    found = carrier_of(entry.tensor.dtype, kinds=_KINDS)
    if found is None:
        why = f"tensor {entry.name!r}: Zarr has no portable word for {entry.tensor.dtype}"
        raise refused(path, why, "save to a folder (a path that ends with /), or convert it")
    return found


def zarr_is_ours(path: str) -> bool:
    """Was everything in a folder made by us, as far as its groups tell?"""
    if not os.listdir(path):
        return True
    try:
        group = _library(path).open_group(path, mode="r")
        known = {_INDEX, *(key for key, _ in group.members())}
        return TAG in group.attrs and all(name in known or _PARTIAL.search(name) for name in os.listdir(path))
    except (OSError, ValueError, KeyError):
        return False


def remove_partial(options: SaveOptions, path: str) -> None:
    """Remove what a process that died in the middle left of single files: zarr renames them when they are whole."""
    for folder, _, files in os.walk(path):
        for file in filter(_PARTIAL.search, files):
            options.system.unlink(os.path.join(folder, file))


def open_group(path: str, mode: str) -> Any:
    """Open or make a group; modes are those of zarr."""
    return _library(path).open_group(path, mode=mode, zarr_format=3)


def array_names() -> FileNames:
    """Return names for arrays that collide with nothing of the format's own."""
    names = FileNames()
    names.keep(_INDEX)
    return names


def array_name(names: FileNames, name: str) -> str:
    """Return the key of a tensor; those that begin with two underscores are reserved."""
    key = names.add(name).removesuffix(".npy")
    return "_%5F" + key[2:] if key.startswith("__") else key


def new_array(group: Any, key: str, path: str, entry: Entry, chunks: tuple[int, ...], facts: Mapping[str, Any]) -> Any:
    """Make an array for a tensor, without values."""
    dtype, tag = _carrier(path, entry)
    said = {"name": entry.name, **({"dtype": tag} if tag else {}), **facts}
    return group.create_array(
        key,
        shape=entry.tensor.shape,
        dtype=dtype,
        chunks=tuple(max(1, extent) for extent in chunks),
        compressors=None,
        filters=None,
        fill_value=False if dtype.kind == "b" else 0,
        attributes={TAG: said},
    )


def put_array(group: Any, key: str, target: Target, entry: Entry, place: int, *, is_seen: bool = False) -> None:
    """Write one tensor, chunk by chunk; where the group can be seen meanwhile, the array says that it is a draft."""
    tensor = entry.tensor
    limit = min(CHUNK_NBYTES, target.options.max_staging_nbytes // 2)
    chunks = _chunks(tensor.shape, tensor.dtype.itemsize, limit)
    facts = {"place": place, **({"is_draft": True} if is_seen else {})}
    array = new_array(group, key, target.path, entry, chunks, facts)
    sums = target.options.sums()
    for index, values in slab_values(tensor, limit):
        for running in sums:
            running.update(values.reshape(-1).view(np.uint8))
        array[index if index else ...] = values.view(array.dtype)
        target.pipeline.wrote(values.nbytes)
    if sums or is_seen:
        notes = {note: value for note, value in array.attrs[TAG].items() if note != "is_draft"}
        array.attrs[TAG] = {**notes, **({"crc32c": sums[0].text} if sums else {})}


def _chunks(shape: tuple[int, ...], itemsize: int, limit_nbytes: int) -> tuple[int, ...]:
    """Return chunks that are exactly the parts in which values come."""
    for _, part in slabs(shape, itemsize, limit_nbytes):
        return (1,) * (len(shape) - len(part)) + part
    return shape


def sync_tree(options: SaveOptions, path: str) -> None:
    """Wait until everything in a folder is on the disk."""
    for folder, _, files in os.walk(path):
        for file in files:
            fd = os.open(os.path.join(folder, file), os.O_RDONLY | os.O_CLOEXEC)
            try:
                options.system.fsync(fd)
            finally:
                options.system.close(fd)
        sync_folder(options.system, folder)


class _ZarrSession:
    """See :class:`Session`."""

    is_direct = False
    reason = "zarr writes the chunks"

    def __init__(self, target: Target) -> None:
        self._target = target
        _library(target.path)
        self.order = None if target.known is None else [e for e in target.known if e.alias_of is None]
        aliases = {e.name: e.alias_of for e in target.known or () if e.alias_of is not None}
        self._names = array_names()
        self._count = 0
        self._folder = NewFolder(target.path, target.options, zarr_is_ours)
        try:
            self._group = open_group(self._folder.path, "a")
            self._group.attrs[TAG] = {"version": 1, "aliases": aliases, "metadata": dict(target.options.metadata or {})}
        except BaseException:
            self._folder.abort()
            raise

    def put(self, entry: Entry) -> None:
        """See :class:`Session`."""
        put_array(self._group, array_name(self._names, entry.name), self._target, entry, self._count)
        self._count += 1

    def finish(self) -> list[str]:
        """See :class:`Session`."""
        if self._target.options.durable:
            sync_tree(self._target.options, self._folder.path)
        self._folder.commit()
        return [self._target.path]

    def abort(self) -> None:
        """See :class:`Session`."""
        self._folder.abort()


ZARR = _Zarr()
