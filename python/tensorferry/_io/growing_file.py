"""One .npy file whose array grows: the rows, and in front of them a header that always counts only whole ones."""

from __future__ import annotations

import contextlib
import os
import struct
from typing import Any

import numpy as np

from tensorferry._io.checksum import Crc32c
from tensorferry._io.failures import refused
from tensorferry._io.format import Stored
from tensorferry._io.growing import RowKind
from tensorferry._io.npy import header, read_trailer, stored_array, trailer
from tensorferry._io.options import SaveOptions
from tensorferry._io.pipeline import Pipeline, write_fully
from tensorferry._io.readable import Readable
from tensorferry._io.sink import Sink

__all__ = ["HEADER_NBYTES", "GrowingFile", "found_rows", "growing_header", "is_empty_array"]

HEADER_NBYTES = 4096  # so that rows begin at a page, and there is room for any number of them
_SUM_NBYTES = 8 << 20


def growing_header(dtype: np.dtype[Any], shape: tuple[int, ...], nbytes: int = HEADER_NBYTES) -> bytes | None:
    """Return a .npy header of exactly `nbytes`; None when it does not fit."""
    made = header(dtype, shape)
    if made[6:8] != b"\x01\x00":
        return None
    text = made[10:].rstrip()
    if len(text) + 11 > nbytes or nbytes - 10 > 0xFFFF:
        return None
    return made[:8] + struct.pack("<H", nbytes - 10) + text.ljust(nbytes - 11) + b"\n"


def found_rows(fd: int, path: str) -> tuple[Stored, dict[str, str]]:
    """Describe the array in a file that is to grow, and return the metadata behind it.

    Raises
    ------
    ExportError
        For what cannot grow: other orders of axes or bytes, no axes, bytes of somebody else behind the array.
    """
    size = os.fstat(fd).st_size
    with open(os.dup(fd), "rb") as file:
        file.seek(0)
        version = file.read(8)[6:8]
        file.seek(0)
        stored = stored_array("", file, path, size)
        end = (stored.offset or 0) + stored.nbytes
        tail = read_trailer(file, path, end, size)
        file.seek(end)
        next_array = file.read(6) == b"\x93NUMPY"
    why = ""
    if not stored.shape or (stored.fortran_order and len(stored.shape) > 1):
        why = "its array has no axes" if not stored.shape else "its first axis runs fastest"
    elif not stored.dtype.isnative:
        why = "it is in the byte order of another machine"
    elif (
        version != b"\x01\x00" or growing_header(stored.dtype, (1 << 62, *stored.shape[1:]), stored.offset or 0) is None
    ):
        why = "its header has no room for a larger number"
    elif next_array and stored.offset != HEADER_NBYTES:
        why = "another array follows in the same file"
    if why:
        raise refused(path, f"rows cannot be appended to it: {why}", "load it, and write it anew with a Writer")
    return stored, dict(tail["metadata"]) if tail is not None else {}


def is_empty_array(path: str) -> bool:
    """Is a file what we begin a growing array with, and no more?"""
    try:
        with open(path, "rb") as file:
            if os.path.islink(path) or os.fstat(file.fileno()).st_size != HEADER_NBYTES:
                return False
            stored = stored_array("", file, path, HEADER_NBYTES)
    except OSError:
        return False
    return stored.offset == HEADER_NBYTES and stored.shape[:1] == (0,)


class GrowingFile:
    """Appends rows to an open file.

    Parameters
    ----------
    fd : int
        Open to read and write; closed by :meth:`close`.
    path : str
        Where it is.
    kind : RowKind
        Rows, and how many there are.
    offset : int
        Where they begin; 0 for a new file.

    Attributes
    ----------
    rows : int
        How many there are.
    row_nbytes : int
        Bytes of one.
    """

    def __init__(
        self, fd: int, path: str, options: SaveOptions, pipeline: Pipeline, kind: RowKind, offset: int = 0
    ) -> None:
        self._fd = fd
        self.path = path
        self._options = options
        self.kind = kind
        self.rows = kind.rows
        self._shown = -1
        self._offset = offset or HEADER_NBYTES
        self.row_nbytes = kind.dtype.itemsize * int(np.prod(kind.shape, dtype=np.int64))
        self._sums = options.sums()
        if offset:
            options.system.truncate(fd, self._end)  # what follows are parts of a row, or our trailer
            for running in self._sums:
                self._sum_again(running)
        else:
            write_fully(options, fd, [self._header(0)], 0)
        self._sink = Sink(fd, path, options, pipeline)
        self._sink.position = self._end

    @property
    def medium(self) -> Any:
        """How bytes go."""
        return self._sink.medium

    @property
    def _end(self) -> int:
        return self._offset + self.rows * self.row_nbytes

    def append(self, tensor: Readable) -> None:
        """Append rows; without ``durable`` a reader sees them at once. No block of the pipeline is kept.

        Rows count when all of them are written: after an error those before are shown, and nothing else.
        """
        self._sink.append_tensor(tensor, self._sums)
        self._sink.patch(self._offset, b"")
        self.rows += tensor.shape[0]
        if not self._options.durable:
            self._show()

    def flush(self) -> None:
        """Let a reader see every row; durable ones are on the disk before they are counted."""
        if self._options.durable:
            self._options.system.fsync(self._fd)
        self._show()
        if self._options.durable:
            self._options.system.fsync(self._fd)

    def finish(self, metadata: dict[str, str] | None = None, *, with_trailer: bool = True) -> None:
        """Write what is left, and a trailer where there is something to say."""
        end = trailer(metadata, self._sums[0].text if self._sums else None) if with_trailer else b""
        self._show()
        self._sink.append(end)
        self._sink.finish()

    @property
    def checksum(self) -> str | None:
        """The sum of all rows."""
        return self._sums[0].text if self._sums else None

    def close(self) -> None:
        """Close the file, without what is no whole row. Never raises."""
        with contextlib.suppress(OSError):
            self._sink.close()
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                self._options.system.close(self._fd)
            self._fd = -1

    def _show(self) -> None:
        if self._shown != self.rows:
            write_fully(self._options, self._fd, [self._header(self.rows)], 0)
            self._shown = self.rows

    def _header(self, rows: int) -> bytes:
        made = growing_header(self.kind.dtype, (rows, *self.kind.shape), self._offset)
        if made is None:
            raise refused(self.path, "a .npy header of rows of this dtype has no room to grow", "use fewer fields")
        return made

    def _sum_again(self, running: Crc32c) -> None:
        position = self._offset
        while position < self._end:
            data = os.pread(self._fd, min(_SUM_NBYTES, self._end - position), position)
            if not data:
                raise refused(self.path, "it became shorter while it was read", "check who else writes to it")
            running.update(np.frombuffer(data, np.uint8))
            position += len(data)
