"""New files that are whole or absent: written under another name in the same folder, and renamed when they are done."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from types import TracebackType

from tensorferry._io.failures import export_error, named_unsafely, refused
from tensorferry._io.options import SaveOptions
from tensorferry._io.system import System

__all__ = ["NewFile", "absolute", "holds", "is_temporary", "remove_stale", "sync_folder", "temporary_name"]

_SUFFIX = ".ferry-tmp"
_SHORTENED = 48  # characters of the final name, so that the temporary one is never too long


def absolute(path: str | os.PathLike[str]) -> str:
    """Return a path as text, absolute, without following links."""
    text = os.fsdecode(os.fspath(path))
    if "\0" in text:
        raise refused(text, "a path cannot contain a NUL", "give another path")
    return os.path.abspath(text)


def temporary_name(base: str) -> str:
    """Return a new name for what will be `base`; it says which process made it."""
    return f".{base[:_SHORTENED]}-{os.getpid()}-{secrets.token_hex(6)}{_SUFFIX}"


def is_temporary(name: str, base: str) -> bool:
    """Was a name made by :func:`temporary_name` for `base`?"""
    return re.fullmatch(rf"\.{re.escape(base[:_SHORTENED])}-\d+-[0-9a-f]{{12}}{re.escape(_SUFFIX)}", name) is not None


def sync_folder(system: System, folder: str) -> None:
    """Wait until the names in a folder are on the disk."""
    fd = system.open_folder(folder)
    try:
        system.fsync(fd)
    finally:
        system.close(fd)


def remove_tree(system: System, path: str) -> None:
    """Remove a file, or a folder of ours and all that is in it; links are removed and not followed."""
    if os.path.isdir(path) and not os.path.islink(path):
        for name in system.names_in(path):
            remove_tree(system, os.path.join(path, name))
        system.remove_folder(path)
    else:
        system.unlink(path)


def remove_stale(system: System, target: str) -> list[str]:
    """Remove what processes that died left of earlier saves to `target`; return the paths.

    Whoever writes holds a lock on what it writes, which ends with the process. Never raises.
    """
    folder, base = os.path.split(target)
    removed: list[str] = []
    with contextlib.suppress(OSError):
        for name in system.names_in(folder):
            if is_temporary(name, base):
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    if _remove_abandoned(system, path):
                        removed.append(path)
    return removed


def _remove_abandoned(system: System, path: str) -> bool:
    """Remove what nobody holds a lock on, under a lock: else somebody might take it up in between."""
    if os.path.islink(path):
        return False
    fd = system.open_folder(path) if os.path.isdir(path) else os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if system.lock(fd) is not True:
            return False
        remove_tree(system, path)
        return True
    finally:
        system.close(fd)


def holds(system: System, fd: int) -> bool:
    """Lock what was just made; False when another process took it for abandoned in between, and removed it."""
    return system.lock(fd) is not False and os.fstat(fd).st_nlink > 0


def require_free(target: str, options: SaveOptions) -> None:
    """Refuse a target that may not be replaced, before anything is written.

    Raises
    ------
    ExportError
        When something is there and ``overwrite`` is false, or when it is a folder.
    """
    if not os.path.lexists(target):
        return
    if not options.overwrite:
        kind = "a link" if os.path.islink(target) else "something"
        error = FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        raise export_error(target, error, f"{kind} is there, and it was left as it is")
    if os.path.isdir(target) and not os.path.islink(target):
        folder = IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        raise export_error(target, folder, "the folder was left as it is")


class NewFile:
    """A file that appears under its name when :meth:`commit` is called, whole, or never.

    What the system refuses leaves as ``OSError``. Without a commit, leaving the ``with`` block removes everything.

    Parameters
    ----------
    target : str
        Absolute path. A link there is not followed: it is replaced, or refused.
    options : SaveOptions
        ``overwrite`` and ``durable`` matter here.

    Attributes
    ----------
    fd : int
        Open to write.
    path : str
        Where it is now.
    is_committed : bool
        Does it have its name?
    """

    def __init__(self, target: str, options: SaveOptions) -> None:
        self.target = target
        self._options = options
        self._system = options.system
        self._folder, base = os.path.split(target)
        require_free(target, options)
        remove_stale(self._system, target)
        self.path = ""
        self.fd = -1
        self._there = False
        self.is_committed = False
        try:
            self._open(base)
            self._keep_mode()
        except BaseException:
            self.abort()
            raise

    def commit(self) -> None:
        """Give the file its name; what it replaces is gone in the same moment.

        Raises
        ------
        OSError
            When that fails; the temporary file is removed then.
        ExportError
            When the file has its name, but a durable save cannot flush that.
        """
        self.rename(overwrite=self._options.overwrite)
        if self._options.durable:
            try:
                sync_folder(self._system, self._folder)
            except OSError as error:
                raise named_unsafely(self.target, error) from error

    def rename(self, *, overwrite: bool) -> None:
        """Give the file its name, without a flush of that."""
        try:
            if overwrite:
                self._system.replace(self.path, self.target)
            else:
                self._system.rename_new(self.path, self.target)
        except OSError:
            self.abort()
            raise
        self._there, self.is_committed = False, True
        self._close()

    def abort(self) -> None:
        """Remove what was written, unless it was committed. Never raises."""
        if self._there:
            with contextlib.suppress(OSError):
                self._system.unlink(self.path)
            self._there = False
        self._close()

    def __enter__(self) -> NewFile:
        """The file is open already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove what was not committed."""
        self.abort()

    def _open(self, base: str) -> None:
        """Create and lock the file; again when another process took it for abandoned in between."""
        while True:
            self.path = os.path.join(self._folder, temporary_name(base))
            self.fd = self._system.open_new(self.path)
            self._there = True
            if holds(self._system, self.fd):
                return
            self._close()

    def _close(self) -> None:
        if self.fd >= 0:
            with contextlib.suppress(OSError):
                self._system.close(self.fd)
            self.fd = -1

    def _keep_mode(self) -> None:
        """Give it the rights of the file that it will replace."""
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(self.target)
            if stat.S_ISREG(status.st_mode):
                self._system.set_mode(self.fd, stat.S_IMODE(status.st_mode))
