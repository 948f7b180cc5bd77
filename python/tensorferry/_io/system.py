"""The calls of the operating system that writing takes, in one object, so that a test can let each of them fail."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Sequence
from typing import Any

try:
    import fcntl
except ImportError:  # no such locks there: temporary files of dead processes are not recognised then
    fcntl = None  # type: ignore[assignment]

__all__ = ["REAL", "System"]

_AT_FDCWD = -100
_NOREPLACE, _EXCHANGE = 1, 2
_SYNC_FILE_RANGE_WRITE = 2
_TMPFS_MAGIC = 0x01021994
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})


@functools.cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: Any) -> bool:
    """Call a function of libc; False when neither it nor the file system knows how, an OSError when it fails."""
    function = getattr(_libc(), name, None)
    if function is None:
        return False
    if function(*arguments) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code))


class System:
    """The real calls. Paths are absolute; all raise ``OSError``."""

    def open_new(self, path: str) -> int:
        """Create a file that was not there, and open it to read and write."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        return os.open(path, flags, 0o666)

    def open_direct(self, path: str) -> int | None:
        """Open a file a second time, to write past the page cache; None where that is not possible."""
        flag = getattr(os, "O_DIRECT", None)
        if flag is None:
            return None
        try:
            return os.open(path, os.O_WRONLY | os.O_CLOEXEC | flag)
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                return None
            raise

    def open_folder(self, path: str) -> int:
        """Open a folder, to lock it or to flush it."""
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0))

    def close(self, fd: int) -> None:
        """Close a file."""
        os.close(fd)

    def pwritev(self, fd: int, pieces: Sequence[memoryview], offset: int) -> int:
        """Write up to 1,024 pieces of bytes from an offset on; return how many bytes were written, maybe not all."""
        if len(pieces) > 1 and hasattr(os, "pwritev"):
            return os.pwritev(fd, pieces, offset)
        return os.pwrite(fd, pieces[0], offset)

    def allocate(self, fd: int, nbytes: int) -> bool:
        """Reserve the blocks of a file of that size; False where the file system cannot, or gains nothing by it."""
        if self._is_memory(fd):
            return False
        return _call("fallocate", fd, 0, ctypes.c_longlong(0), ctypes.c_longlong(nbytes))

    def truncate(self, fd: int, nbytes: int) -> None:
        """Set the size of a file."""
        os.ftruncate(fd, nbytes)

    def fsync(self, fd: int) -> None:
        """Wait until a file, or the names in a folder, are on the disk."""
        os.fsync(fd)

    def start_writeback(self, fd: int, offset: int, nbytes: int) -> None:
        """Let the system begin to bring a range to the disk, without waiting."""
        _call("sync_file_range", fd, ctypes.c_longlong(offset), ctypes.c_longlong(nbytes), _SYNC_FILE_RANGE_WRITE)

    def set_mode(self, fd: int, mode: int) -> None:
        """Set the permissions of a file."""
        os.fchmod(fd, mode)

    def lock(self, fd: int) -> bool | None:
        """Lock a file until it is closed or the process dies; False when another holds it, None without locks."""
        if fcntl is None:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            if error.errno in _UNSUPPORTED | {errno.ENOLCK}:
                return None
            raise
        return True

    def replace(self, source: str, target: str) -> None:
        """Rename in one step, over what was there."""
        os.replace(source, target)

    def rename_new(self, source: str, target: str) -> None:
        """Rename in one step; FileExistsError when the target is there."""
        there = os.fsencode(source), os.fsencode(target)
        if _call("renameat2", _AT_FDCWD, there[0], _AT_FDCWD, there[1], _NOREPLACE):
            return
        if os.path.isdir(source):
            if os.path.lexists(target):  # without the call above the kernel itself replaces empty folders only
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
            os.rename(source, target)
            return
        os.link(source, target, follow_symlinks=False)
        os.unlink(source)

    def exchange(self, source: str, target: str) -> bool:
        """Let two names change places in one step; False where the system cannot."""
        return _call("renameat2", _AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _EXCHANGE)

    def make_folder(self, path: str) -> None:
        """Make a folder that was not there."""
        os.mkdir(path)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        os.unlink(path)

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder."""
        os.rmdir(path)

    def names_in(self, path: str) -> list[str]:
        """Return the names in a folder."""
        return os.listdir(path)

    def _is_memory(self, fd: int) -> bool:
        """Does a file lie in memory, where reserving it costs as much as writing it?"""
        function = getattr(_libc(), "fstatfs", None)
        facts = (ctypes.c_long * 64)()
        return function is not None and function(fd, facts) == 0 and facts[0] == _TMPFS_MAGIC


REAL = System()
