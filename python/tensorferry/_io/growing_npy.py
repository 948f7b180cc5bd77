"""A .npy file that grows under its final name, so that a crash leaves every row that was whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from tensorferry._io.atomic import NewFile, require_free, sync_folder
from tensorferry._io.entries import Entry
from tensorferry._io.failures import refused
from tensorferry._io.format import Session, Target
from tensorferry._io.growing import RowKind
from tensorferry._io.growing_file import GrowingFile, found_rows
from tensorferry._io.npy import NPY
from tensorferry._io.readable import Readable

__all__ = ["GrowingNpy", "open_to_grow", "require_sole_writer"]


class GrowingNpy:
    """See :class:`Backend`. One tensor that is put is written as by ``save``."""

    format = "npy"
    takes_rows = "one"

    def __init__(self, target: Target, *, resume: bool) -> None:
        self._target = target
        self._file: GrowingFile | None = None
        self._draft: NewFile | None = None
        self._session: Session | None = None
        self._made = False
        self._metadata = dict(target.options.metadata or {})
        self._keeps = resume
        resumes = resume and os.path.lexists(target.path)
        self.kinds: Mapping[str, RowKind] = {}
        self.names: set[str] = set()
        if resumes:
            self._file, found = open_to_grow(target)
            self._metadata = {**found, **self._metadata}
            self.kinds = {"": self._file.kind}
        else:
            require_free(target.path, target.options)

    @property
    def keeps_rows(self) -> bool:
        """See :class:`Backend`."""
        return self._draft is None and self._session is None

    @property
    def is_direct(self) -> bool:
        """See :class:`Session`."""
        used = self._session or (self._file.medium if self._file else None)
        return used is not None and bool(used.is_direct)

    @property
    def reason(self) -> str:
        """See :class:`Session`."""
        used = self._session or (self._file.medium if self._file else None)
        return "" if used is None else str(used.reason)

    def put(self, entry: Entry) -> None:
        """See :class:`Backend`."""
        if self._file is not None:
            raise refused(self._target.path, "its one array grows by rows", "append rows, or use another file")
        if self._session is None:
            self._session = NPY.begin(self._target)
        self._session.put(entry)

    def append(self, columns: Mapping[str, Readable]) -> None:
        """See :class:`Backend`."""
        (tensor,) = columns.values()
        if self._session is not None:
            raise refused(self._target.path, "its one array was put as a whole", "append rows to another file")
        if self._file is None:
            self._file = self._begin(tensor)
        self._file.append(tensor)

    def _begin(self, tensor: Readable) -> GrowingFile:
        """Make a file of no rows; it gets its name at once, unless something else has it until the end."""
        target = self._target
        replaces = os.path.lexists(target.path)
        draft = NewFile(target.path, target.options)
        try:
            kind = RowKind(tensor.dtype, tensor.shape[1:])
            fd = os.dup(draft.fd)  # the lock stays as long as this one is open
            file = GrowingFile(fd, draft.path, target.options, target.pipeline, kind)
            if replaces:
                self._draft = draft
            else:
                draft.rename(overwrite=False)
                self._made = True
                if target.options.durable:
                    sync_folder(target.options.system, os.path.dirname(target.path))
        except BaseException:
            draft.abort()
            raise
        return file

    def flush(self) -> None:
        """See :class:`Backend`."""
        if self._file is not None:
            self._file.flush()

    def finish(self) -> list[str]:
        """See :class:`Backend`."""
        if self._session is not None:
            return self._session.finish()
        if self._file is None:
            raise refused(
                self._target.path, "nothing was appended, so its dtype is not known", "append rows of no length"
            )
        self._file.finish(self._metadata)
        if self._draft is not None:
            self._draft.commit()
        self._made = False
        self._file.close()
        return [self._target.path]

    def abort(self) -> None:
        """See :class:`Backend`. Rows of a file that is meant to be continued are kept, if they are whole."""
        if self._keeps and self.keeps_rows:
            self.leave()
            return
        if self._made and self._file is not None:
            with contextlib.suppress(OSError):
                self._target.options.system.unlink(self._target.path)
            self._made = False
        self._close()

    def leave(self) -> None:
        """See :class:`Backend`."""
        if self._file is not None and self.keeps_rows:
            with contextlib.suppress(Exception):
                self._file.flush()
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        if self._draft is not None:
            self._draft.abort()
        if self._session is not None:
            self._session.abort()


def require_sole_writer(target: Target, fd: int, path: str) -> None:
    """Lock what is to grow.

    Raises
    ------
    ExportError
        When another writer has it.
    """
    if target.options.system.lock(fd) is False:
        raise refused(path, "another writer is appending to it", "wait until that is closed, or write elsewhere")


def open_to_grow(
    target: Target, path: str | None = None, most_rows: int | None = None
) -> tuple[GrowingFile, dict[str, str]]:
    """Open a file that is there, cut it to so many rows, and return it with the metadata behind its array."""
    where = target.path if path is None else path
    fd = os.open(where, os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
    try:
        require_sole_writer(target, fd, where)
        stored, metadata = found_rows(fd, where)
        rows = stored.shape[0] if most_rows is None else min(stored.shape[0], most_rows)
        kind = RowKind(stored.dtype, stored.shape[1:], rows)
        file = GrowingFile(fd, where, target.options, target.pipeline, kind, stored.offset or 0)
    except BaseException:
        target.options.system.close(fd)
        raise
    return file, metadata
