"""What the operating system refused, as an error that says which path, why, and what is there now."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from tensorferry._errors import ExportError

__all__ = ["export_error", "kept_at", "named_unsafely", "refused", "reported", "unreadable"]

_REMEDIES = {
    errno.ENOSPC: "free some space, or save elsewhere",
    errno.EDQUOT: "free some of your quota, or save elsewhere",
    errno.EACCES: "save where you may write, or change the rights of the folder",
    errno.EPERM: "save where you may write, or change the rights of the folder",
    errno.EROFS: "save to a file system that is not mounted read-only",
    errno.ENOENT: "make the folder first",
    errno.ENOTDIR: "give a path whose parents are folders",
    errno.EEXIST: "pass overwrite=True to replace it, or another path",
    errno.EISDIR: "give the path of a file, or end it with / for a folder",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.EIO: "check the disk: the system could not write to it",
    errno.EMFILE: "close some files first",
}


def export_error(path: str | os.PathLike[str], error: OSError, kept: str) -> ExportError:
    """Return `error` with the path and with what is there now.

    Parameters
    ----------
    path : path
        What was to be written or read.
    error : OSError
        What the system said.
    kept : str
        What lies at the path after this.
    """
    code = error.errno
    name = errno.errorcode.get(code, "") if code is not None else ""
    said = error.strerror or str(error) or type(error).__name__
    why = f"{said} ({name}, errno {code}); {kept}" if name else f"{said}; {kept}"
    made = refused(path, why, _REMEDIES.get(code or 0, "do what the message asks for, then try again"))
    made.errno, made.strerror = code, error.strerror
    return made


@contextmanager
def reported(path: str) -> Iterator[None]:
    """Let what the system refuses inside leave as an ``ExportError`` about `path`."""
    try:
        yield
    except ExportError:
        raise
    except OSError as error:
        if hasattr(error, "given"):
            raise
        raise export_error(path, error, kept_at(path)) from error


def kept_at(path: str) -> str:
    """Say what lies at a path, or at the index of its shards, after a save that failed."""
    if os.path.lexists(path) or os.path.lexists(path + ".index.json"):
        return "what was there is kept"
    return "nothing was made"


def named_unsafely(path: str, error: OSError) -> ExportError:
    """Return the error for a flush that failed after the rename."""
    return export_error(path, error, "everything is written, but its name may not be on the disk yet")


def unreadable(path: str, error: OSError) -> ExportError:
    """Return the error for a file that the system does not let us read; of a folder or a model, it names the file."""
    where = error.filename if isinstance(error.filename, str) else path
    made = export_error(where, error, "nothing was read")
    made.instead = "check the path, and your rights to it"
    made.args = (made.given, made.why, made.instead)
    return made


def refused(path: str | os.PathLike[str], why: str, instead: str) -> ExportError:
    """Return the error for a path that is not written, or not read."""
    made = ExportError(os.fspath(path), why, instead)
    made.filename = os.fspath(path)
    return made
