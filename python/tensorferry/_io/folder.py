"""A folder of .npy files, one for each tensor, with an index that holds their true names."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Mapping
from functools import partial
from typing import Any

from tensorferry._errors import ExportError
from tensorferry._io.atomic import is_temporary
from tensorferry._io.entries import Entry
from tensorferry._io.failures import refused, unreadable
from tensorferry._io.file_workers import FileWorkers
from tensorferry._io.format import Contents, Session, Stored, Target
from tensorferry._io.medium import Medium
from tensorferry._io.names import FileNames
from tensorferry._io.new_folder import NewFolder
from tensorferry._io.npy import header, stored_array
from tensorferry._io.pipeline import write_fully
from tensorferry._io.sink import Sink
from tensorferry._io.unflushed import Unflushed

__all__ = ["FOLDER", "INDEX", "folder_is_ours", "index_text", "put_file", "read_index"]

INDEX = "index.json"
_MARK = "tensorferry folder of .npy files"


class _Folder:
    name = "folder"
    suffixes: tuple[str, ...] = ("/",)

    def begin(self, target: Target) -> Session:
        """See :class:`Format`."""
        return _FolderSession(target)

    def contents(self, path: str) -> Contents:
        """See :class:`Format`."""
        try:
            index = read_index(path)
            tensors = {name: _stored(name, facts, path) for name, facts in index["tensors"].items()}
        except OSError as error:
            raise error if isinstance(error, ExportError) else unreadable(path, error) from error
        except (KeyError, TypeError, AttributeError) as error:
            raise refused(path, f"its index is damaged ({error})", "write it again") from error
        return Contents(self.name, tensors, dict(index["aliases"]), dict(index["metadata"]))


def read_index(path: str) -> Any:
    """Return the index of a folder.

    Raises
    ------
    ExportError
        Where it is none.
    """
    where = os.path.join(path, INDEX)
    try:
        with open(where, encoding="utf-8") as file:
            index = json.load(file)
    except ValueError as error:
        raise refused(where, f"it is no index ({error})", "write the folder again") from error
    if not isinstance(index, dict) or index.get("format") != _MARK:
        raise refused(where, "it is not the index of a folder of tensors", "pass a folder that save() made")
    return index


def folder_is_ours(path: str) -> bool:
    """Is the folder empty, or one that we made?"""
    try:
        names = os.listdir(path)
        if not names:
            return True
        index = read_index(path)
        ours = {INDEX, *(facts["file"] for facts in index["tensors"].values())}
    except (OSError, KeyError, TypeError, AttributeError):
        return False
    return all(name in ours or is_temporary(name, INDEX) for name in names)


def _stored(name: str, facts: Any, folder: str) -> Stored:
    file_name = facts["file"]
    if not isinstance(file_name, str) or os.path.basename(file_name) != file_name or file_name in ("", ".", ".."):
        raise refused(folder, f"its index names the file {file_name!r}, outside of it", "check where it comes from")
    path = os.path.join(folder, file_name)
    with open(path, "rb", opener=_no_link) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise refused(path, "it is no file", "check where it comes from")
        found = stored_array(name, file, path, status.st_size, checksum=facts.get("crc32c"))
    skipped = 1 if facts.get("grows") else 0  # the file itself counts its rows
    if list(found.shape)[skipped:] != facts["shape"][skipped:] or found.dtype.name != facts["dtype"]:
        raise refused(path, f"the index says {facts['dtype']} {facts['shape']}", "write the folder again")
    return found


def _no_link(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise refused(path, "it is a link, which save() never makes", "check where it comes from") from error
        raise


def put_file(
    target: Target, folder: str, file_name: str, entry: Entry, unflushed: Unflushed | None = None
) -> tuple[dict[str, Any], Medium]:
    """Write one tensor to a new file in `folder`; return what the index says of it, and how its bytes went.

    With `unflushed`, that waits for the disk where the save is durable.
    """
    options, tensor = target.options, entry.tensor
    path = os.path.join(folder, file_name)
    start = header(tensor.dtype, tensor.shape)
    sums = options.sums()
    later = unflushed if options.durable else None
    fd = options.system.open_new(path)
    is_ours = True
    try:
        sink = Sink(fd, path, options, target.pipeline, len(start) + tensor.nbytes)
        try:
            sink.append(start)
            sink.append_tensor(tensor, sums)
            sink.finish(flush=later is None)
        finally:
            sink.close()
        if later is not None:
            is_ours = False
            later.add(fd, sink.position)
    finally:
        if is_ours:
            options.system.close(fd)
    facts: dict[str, Any] = {"file": file_name, "dtype": tensor.dtype.name, "shape": list(tensor.shape)}
    if sums:
        facts["crc32c"] = sums[0].text
    return {**facts, "nbytes": tensor.nbytes}, sink.medium


def index_text(tensors: Mapping[str, Any], aliases: Mapping[str, Any], metadata: Mapping[str, str] | None) -> bytes:
    """Return the index of a folder."""
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(facts)}" for name, facts in tensors.items())
    start = json.dumps({"format": _MARK, "version": 1})[:-1]
    end = json.dumps({"aliases": aliases, "metadata": dict(metadata or {})}, indent=1)[1:]
    return f'{start},\n "tensors": {{\n{rows}\n }},{end}'.encode()


class _FolderSession:
    """See :class:`Session`."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.order = None if target.known is None else [e for e in target.known if e.alias_of is None]
        self._aliases = {e.name: e.alias_of for e in target.known or () if e.alias_of is not None}
        self.is_direct, self.reason = False, ""
        self._names = FileNames()
        self._tensors: dict[str, dict[str, Any]] = {}
        self._unflushed = Unflushed(target.options.system)
        self._workers = FileWorkers(target)
        self._folder = NewFolder(target.path, target.options, folder_is_ours)

    def put(self, entry: Entry) -> None:
        """See :class:`Session`."""
        file_name = self._names.add(entry.name)
        self._tensors[entry.name] = {}  # its place among the others
        put = partial(put_file, folder=self._folder.path, file_name=file_name, entry=entry)
        if self._workers.takes([entry]):
            self._workers.run(put, partial(self._note, entry))
        else:
            self._note(entry, put(self._target, unflushed=self._unflushed))

    def _note(self, entry: Entry, put: tuple[dict[str, Any], Medium]) -> None:
        facts, medium = put
        if entry.tensor.nbytes or not self.reason:
            self.is_direct, self.reason = medium.is_direct, medium.reason
        self._tensors[entry.name] = facts

    def finish(self) -> list[str]:
        """See :class:`Session`."""
        options = self._target.options
        self._workers.finish()
        self._unflushed.flush()
        text = index_text(self._tensors, self._aliases, options.metadata)
        fd = options.system.open_new(os.path.join(self._folder.path, INDEX))
        try:
            write_fully(options, fd, [text], 0)
            if options.durable:
                options.system.fsync(fd)
        finally:
            options.system.close(fd)
        self._folder.commit()
        return [self._target.path]

    def abort(self) -> None:
        """See :class:`Session`."""
        self._workers.close()
        self._unflushed.close()
        self._folder.abort()


FOLDER = _Folder()
