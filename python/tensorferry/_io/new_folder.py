"""New folders that are whole or absent: filled under another name beside, and renamed or exchanged when done."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable

from tensorferry._io.atomic import holds, remove_stale, remove_tree, sync_folder, temporary_name
from tensorferry._io.failures import export_error, named_unsafely, refused
from tensorferry._io.options import SaveOptions

__all__ = ["NewFolder"]


class NewFolder:
    """A folder that appears under its name when :meth:`commit` is called, whole, or never.

    Parameters
    ----------
    target : str
        Absolute path. A link there is not followed and not replaced.
    options : SaveOptions
        ``overwrite`` and ``durable`` matter here.
    is_ours : callable
        Was the folder at a path made by us, so that it may be replaced as a whole?

    Attributes
    ----------
    path : str
        Where it is now.
    """

    def __init__(self, target: str, options: SaveOptions, is_ours: Callable[[str], bool]) -> None:
        self.target = target
        self._options = options
        self._system = options.system
        self._parent, self._base = os.path.split(target)
        self._is_ours = is_ours
        self._lock_fd = -1
        self._there = False
        self._require_free()
        remove_stale(self._system, target)
        self.path = ""
        try:
            self._make()
        except BaseException:
            self.abort()
            raise

    def _make(self) -> None:
        """Make and lock the folder; again when another process took it for abandoned in between."""
        while True:
            self.path = os.path.join(self._parent, temporary_name(self._base))
            self._system.make_folder(self.path)
            self._there = True
            try:
                self._lock_fd = self._system.open_folder(self.path)
                if holds(self._system, self._lock_fd):
                    return
            except FileNotFoundError:
                pass
            self._there = False
            self._unlock()

    def _require_free(self) -> None:
        if not os.path.lexists(self.target):
            return
        if not self._options.overwrite:
            error = FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            raise export_error(self.target, error, "what is there was left as it is")
        if os.path.islink(self.target) or not os.path.isdir(self.target):
            raise refused(self.target, "it is no folder, and is kept", "remove it first, or give another path")
        if not self._is_ours(self.target):
            why = "the folder there was not made by tensorferry, and is kept"
            raise refused(self.target, why, "remove it yourself if nothing in it is needed, or give another path")

    def commit(self) -> None:
        """Give the folder its name; what it replaces is gone in the same moment.

        Raises
        ------
        OSError
            When that fails; the new folder is removed then.
        ExportError
            When the system cannot exchange two folders in one step; and when the folder has its name, but a durable
            save cannot flush that.
        """
        try:
            if self._options.durable:
                sync_folder(self._system, self.path)
            if os.path.lexists(self.target) and self._options.overwrite:
                self._exchange()
            else:
                self._system.rename_new(self.path, self.target)
                self._there = False
        finally:
            self.abort()  # the new folder; or the old one, which has the temporary name now
        if self._options.durable:
            try:
                sync_folder(self._system, self._parent)
            except OSError as error:
                raise named_unsafely(self.target, error) from error

    def _exchange(self) -> None:
        self._require_free()
        if not self._system.exchange(self.path, self.target):
            why = "this system cannot exchange two folders in one step; what was there is kept"
            raise refused(self.target, why, "save to a path that is free, and rename it yourself")

    def abort(self) -> None:
        """Remove what lies under the temporary name. Never raises."""
        if self._there:
            with contextlib.suppress(OSError):
                remove_tree(self._system, self.path)
            self._there = False
        self._unlock()

    def _unlock(self) -> None:
        if self._lock_fd >= 0:
            with contextlib.suppress(OSError):
                self._system.close(self._lock_fd)
            self._lock_fd = -1
