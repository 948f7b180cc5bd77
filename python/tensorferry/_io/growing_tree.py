"""A folder that is filled under another name, or grows where it is: what happens to its name, lock and end."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod

from tensorferry._io.atomic import remove_tree
from tensorferry._io.format import Target
from tensorferry._io.growing_npy import require_sole_writer
from tensorferry._io.new_folder import NewFolder

__all__ = ["GrowingTree"]


class GrowingTree(ABC):
    """What backends in folders have in common; see :class:`Backend`.

    Parameters
    ----------
    target : Target
    resume : bool
        Is the folder meant to be continued?
    """

    def __init__(self, target: Target, *, resume: bool) -> None:
        self._target = target
        self._keeps = resume
        self._draft: NewFolder | None = None
        self._made = False
        self._lock_fd = -1

    @property
    def keeps_rows(self) -> bool:
        """See :class:`Backend`."""
        return self._draft is None

    @abstractmethod
    def flush(self) -> None:
        """See :class:`Backend`."""

    def abort(self) -> None:
        """See :class:`Backend`. What is in a folder that is meant to be continued is kept, with rows that are whole."""
        if self._keeps and self.keeps_rows:
            self.leave()
            return
        self._close()
        if self._draft is not None:
            self._draft.abort()
        elif self._made:
            with contextlib.suppress(OSError):
                remove_tree(self._target.options.system, self._target.path)
            self._made = False

    def leave(self) -> None:
        """See :class:`Backend`."""
        if self._draft is not None:
            self.abort()
            return
        with contextlib.suppress(Exception):
            self.flush()
        self._close()

    def _get_name(self, *, only_rows: bool) -> bool:
        """Give the folder its name, where nothing but rows is in it and nothing in its place; did it get it now?"""
        if self._draft is None or not only_rows or os.path.lexists(self._target.path):
            return False
        self._draft.commit()
        self._draft, self._made = None, True
        self._lock()
        return True

    def _complete(self) -> list[str]:
        """Give the folder its name for good, and return it."""
        if self._draft is not None:
            self._draft.commit()
            self._draft = None
        self._made = False
        self._close()
        return [self._target.path]

    def _lock(self) -> None:
        self._lock_fd = self._target.options.system.open_folder(self._target.path)
        require_sole_writer(self._target, self._lock_fd, self._target.path)

    def _close(self) -> None:
        if self._lock_fd >= 0:
            with contextlib.suppress(OSError):
                self._target.options.system.close(self._lock_fd)
