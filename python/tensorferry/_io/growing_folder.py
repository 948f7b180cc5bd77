"""A folder of .npy files that is filled tensor by tensor, and whose arrays may grow.

Tensors that are put appear all at once, as by ``save``. As soon as rows are appended to a folder that holds nothing
yet, it gets its name: a crash then leaves every row that was whole.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import Any

from tensorferry._io.atomic import is_temporary, temporary_name
from tensorferry._io.entries import Entry
from tensorferry._io.failures import refused
from tensorferry._io.folder import FOLDER, INDEX, folder_is_ours, index_text, put_file, read_index
from tensorferry._io.format import Target
from tensorferry._io.growing import RowKind
from tensorferry._io.growing_file import GrowingFile, is_empty_array
from tensorferry._io.growing_npy import open_to_grow
from tensorferry._io.growing_tree import GrowingTree
from tensorferry._io.names import FileNames
from tensorferry._io.new_folder import NewFolder
from tensorferry._io.readable import Readable
from tensorferry._io.small_file import replace_file

__all__ = ["GrowingFolder"]


class GrowingFolder(GrowingTree):
    """See :class:`Backend`."""

    format = "folder"
    takes_rows = "many"

    def __init__(self, target: Target, *, resume: bool) -> None:
        super().__init__(target, resume=resume)
        self._metadata = dict(target.options.metadata or {})
        self._aliases: dict[str, str] = {}
        self._tensors: dict[str, dict[str, Any]] = {}
        self._files: dict[str, GrowingFile] = {}
        self._file_names = FileNames()
        resumes = resume and os.path.lexists(target.path)
        self.is_direct, self.reason = False, ""
        if resumes:
            self._path = target.path
            try:
                self._reopen()
            except BaseException:
                self._close()
                raise
        else:
            self._draft = NewFolder(target.path, target.options, folder_is_ours)
            self._path = self._draft.path
        self.kinds: Mapping[str, RowKind] = {name: file.kind for name, file in self._files.items()}
        self.names = set(self._tensors) - set(self._files)

    def _reopen(self) -> None:
        """Open what grows, and cut arrays that grow together to the rows that all of them have."""
        if os.path.islink(self._path) or not os.path.isdir(self._path):
            raise refused(self._path, "it is no folder", "give the path of a folder that a Writer made")
        self._lock()
        index = read_index(self._path)
        self._metadata = {**index["metadata"], **self._metadata}
        self._aliases = dict(index["aliases"])
        self._tensors = index["tensors"]
        rows = self._common_rows()
        self._remove_what_a_crash_left()
        for name, facts in self._tensors.items():
            self._file_names.keep(facts["file"])
            if facts.get("grows"):
                facts.pop("crc32c", None)  # it will not be that of the file any more
                path = os.path.join(self._path, facts["file"])
                self._files[name] = open_to_grow(self._target, path, rows[facts["grows"]])[0]
        self._write_index()

    def _remove_what_a_crash_left(self) -> None:
        """Remove drafts, and arrays without rows that got a name but no line in the index."""
        system, listed = self._target.options.system, {facts["file"] for facts in self._tensors.values()}
        for file_name in system.names_in(self._path):
            path = os.path.join(self._path, file_name)
            if any(is_temporary(file_name, base) for base in ("put", "rows", INDEX)) or (
                file_name not in listed and file_name.endswith(".npy") and is_empty_array(path)
            ):
                system.unlink(path)

    def _common_rows(self) -> dict[str, int]:
        found: dict[str, int] = {}
        contents = FOLDER.contents(self._path)
        for name, facts in self._tensors.items():
            group = facts.get("grows")
            if group:
                rows = contents.tensors[name].shape[0]
                found[group] = min(rows, found.get(group, rows))
        return found

    def put(self, entry: Entry) -> None:
        """See :class:`Backend`."""
        draft_name = temporary_name("put")
        facts, medium = put_file(self._target, self._path, draft_name, entry)
        self._tensors[entry.name] = {**facts, "file": self._named(entry.name, draft_name)}
        self.is_direct, self.reason = medium.is_direct, medium.reason
        if self._draft is None:
            self._write_index()

    def _named(self, name: str, draft_name: str) -> str:
        """Give a file the name that is for a tensor, or a free one where something that is not listed has that."""
        draft = os.path.join(self._path, draft_name)
        for attempt in itertools.count():
            file_name = self._file_names.add(f"{name}~{attempt}" if attempt else name)
            try:
                self._target.options.system.rename_new(draft, os.path.join(self._path, file_name))
            except FileExistsError:
                continue
            break
        return file_name

    def append(self, columns: Mapping[str, Readable]) -> None:
        """See :class:`Backend`."""
        new = [name for name in columns if name not in self._files]
        if new:
            group = next(iter(columns))
            for name in new:
                self._begin(name, columns[name], self._tensors[group]["grows"] if group in self._files else group)
            self._show()
        for name, tensor in columns.items():
            self._files[name].append(tensor)

    def _begin(self, name: str, tensor: Readable, group: str) -> None:
        target, kind = self._target, RowKind(tensor.dtype, tensor.shape[1:])
        draft_name = temporary_name("rows")
        path = os.path.join(self._path, draft_name)
        fd = target.options.system.open_new(path)
        self._files[name] = file = GrowingFile(fd, path, target.options, target.pipeline, kind)
        self.is_direct, self.reason = file.medium.is_direct, file.medium.reason
        file_name, shape = self._named(name, draft_name), [0, *kind.shape]
        self._tensors[name] = {"file": file_name, "dtype": kind.dtype.name, "shape": shape, "grows": group}

    def _show(self) -> None:
        """Write the index, and give the folder its name as soon as that may be."""
        self._write_index()
        if self._get_name(only_rows=len(self._files) == len(self._tensors)):
            self._path = self._target.path

    def _write_index(self) -> None:
        replace_file(
            self._target.options,
            os.path.join(self._path, INDEX),
            index_text(self._tensors, self._aliases, self._metadata),
        )

    def flush(self) -> None:
        """See :class:`Backend`."""
        for file in self._files.values():
            file.flush()
        self._write_index()

    def finish(self) -> list[str]:
        """See :class:`Backend`."""
        for name, file in self._files.items():
            file.finish(with_trailer=False)
            facts = self._tensors[name]
            facts["shape"][0] = file.rows
            facts["nbytes"] = file.rows * file.row_nbytes
            if file.checksum is not None:
                facts["crc32c"] = file.checksum
        self._write_index()
        return self._complete()

    def _close(self) -> None:
        for file in self._files.values():
            file.close()
        super()._close()
