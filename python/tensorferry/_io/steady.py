"""Reading what may be replaced meanwhile: everything comes from one version, however many files have to be opened."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from tensorferry._errors import ExportError
from tensorferry._io.atomic import absolute
from tensorferry._io.failures import refused

__all__ = ["of_one_version"]

P = ParamSpec("P")
T = TypeVar("T")

_TRIES = 200
_INDEX = ".index.json"


def of_one_version(read: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Let a function of a path begin anew when the path stands for something else than at its beginning.

    What was there at the beginning is kept open, so that nothing new can have its number.
    """

    @functools.wraps(read)
    def steady(path: Any, /, *arguments: P.args, **options: P.kwargs) -> T:
        for _ in range(_TRIES):
            anchor = _anchor(path)
            fd = _opened(anchor)
            if fd is None:
                return read(path, *arguments, **options)
            try:
                result = read(path, *arguments, **options)
                if _is_still(fd, anchor):
                    return result
            except ExportError:
                if _is_still(fd, anchor):
                    raise
            finally:
                os.close(fd)
        raise refused(absolute(path), "it is replaced faster than it can be read", "read it when the writer has ended")

    return steady


def _anchor(path: Any) -> str:
    """Return what changes in one moment: the file, the folder, or the index of shards."""
    text = absolute(path)
    return text + _INDEX if not os.path.lexists(text) and os.path.lexists(text + _INDEX) else text


def _opened(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None


def _is_still(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except OSError:
        return False
