"""The format .npy: one array. A trailer of ours, which other readers do not see, holds its checksum and metadata."""

from __future__ import annotations

import functools
import io
import json
import math
import os
import struct
from typing import Any

import numpy as np

from tensorferry._errors import ExportError
from tensorferry._io.atomic import NewFile
from tensorferry._io.entries import Entry
from tensorferry._io.failures import refused, unreadable
from tensorferry._io.format import Contents, Session, Stored, Target
from tensorferry._io.sink import Sink
from tensorferry._io.tags import from_npy, to_npy

__all__ = ["NPY", "header", "read_header", "read_trailer", "stored_array", "trailer"]

_END = struct.Struct("<Q8s")
_MARK = b"FERRYNPY"
_PARSES = 100
_LARGEST_TRAILER_NBYTES = 100 << 20


@functools.lru_cache(maxsize=64)
def header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return magic and header of a .npy file in C order; its length is a multiple of 64."""
    facts = {"descr": np.lib.format.dtype_to_descr(to_npy(dtype)), "fortran_order": False, "shape": shape}
    made = io.BytesIO()
    try:
        np.lib.format.write_array_header_1_0(made, facts)
    except ValueError:  # records with very many fields
        made = io.BytesIO()
        np.lib.format.write_array_header_2_0(made, facts)
    return made.getvalue()


def read_header(file: Any, path: str) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Read magic and header; return what is stored, its shape, and whether the first axis runs fastest.

    Raises
    ------
    ExportError
        For what is no .npy file, and for Python objects, which would have to be unpickled.
    """
    try:
        shape, fortran_order, dtype = _parsed(file)
    except (ValueError, SyntaxError, TypeError) as error:
        raise refused(path, f"it is no .npy file ({error})", "check that it is complete") from error
    if dtype.hasobject:
        raise refused(path, "it holds Python objects, and loading them would run code from the file", "save numbers")
    return dtype, tuple(shape), bool(fortran_order)


def _parsed(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    start = file.tell()
    for _ in range(_PARSES):
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        try:
            found: tuple[tuple[int, ...], bool, np.dtype[Any]] = read(file)
            return found
        except SystemError:  # Python 3.11 counts the depth of what it parses for all threads together
            file.seek(start)
    raise SystemError("other threads disturb the parser of this Python all the time")


def stored_array(name: str, file: Any, path: str, available: int, **facts: Any) -> Stored:
    """Describe the array that begins where `file` stands; `available` bytes of the file are left from there on.

    Raises
    ------
    ExportError
        For damaged headers, and where the data is cut off.
    """
    start = file.tell()
    dtype, shape, fortran_order = read_header(file, path)
    offset = file.tell()
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes > available - (offset - start):
        why = f"{nbytes:,} bytes of data should follow its header, and {available - (offset - start):,} do"
        raise refused(path, why, "it is cut off: write it again")
    return Stored(name, from_npy(dtype), shape, path, offset, fortran_order, **facts)


class _Npy:
    name = "npy"
    suffixes: tuple[str, ...] = (".npy",)

    def begin(self, target: Target) -> Session:
        """See :class:`Format`."""
        known = target.known
        if known is not None and len(known) != 1:
            raise _one_only(target.path, len(known))
        return _NpySession(target)

    def contents(self, path: str) -> Contents:
        """See :class:`Format`."""
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                stored = stored_array("", file, path, size)
                end = (stored.offset or 0) + stored.nbytes
                trailer = read_trailer(file, path, end, size)
        except OSError as error:
            raise error if isinstance(error, ExportError) else unreadable(path, error) from error
        if trailer is None:
            return Contents(self.name, {"": stored}, is_single=True)
        stored = Stored("", stored.dtype, stored.shape, path, stored.offset, stored.fortran_order, trailer["crc32c"])
        return Contents(self.name, {"": stored}, metadata=trailer["metadata"], is_single=True)


def _one_only(path: str, count: int) -> ExportError:
    return refused(
        path,
        f"a .npy file holds one array, and {count} were given",
        "save to .npz, .safetensors, or a folder (a path that ends with /)",
    )


def trailer(metadata: Any, crc32c: str | None) -> bytes:
    """Return what follows the data; empty when there is nothing to say."""
    if not metadata and crc32c is None:
        return b""
    text = json.dumps({"metadata": dict(metadata or {}), "crc32c": crc32c}).encode()
    return text + _END.pack(len(text), _MARK)


def read_trailer(file: Any, path: str, end: int, size: int) -> dict[str, Any] | None:
    """Return what :func:`trailer` wrote between `end` of the data and `size` of the file; None where there is none."""
    if size - end < _END.size:
        return None
    file.seek(size - _END.size)
    length, mark = _END.unpack(file.read(_END.size))
    if mark != _MARK or length != size - end - _END.size or length > _LARGEST_TRAILER_NBYTES:
        return None
    file.seek(end)
    try:
        found = json.loads(file.read(length))
        return {"metadata": dict(found["metadata"]), "crc32c": found["crc32c"]}
    except (ValueError, KeyError, TypeError) as error:
        raise refused(path, f"its trailer is damaged ({error})", "write it again") from error


class _NpySession:
    """See :class:`Session`."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.order = target.known
        self.is_direct, self.reason = False, ""
        self._file = NewFile(target.path, target.options)
        self._sink: Sink | None = None

    def put(self, entry: Entry) -> None:
        """See :class:`Session`."""
        if self._sink is not None:
            raise _one_only(self._target.path, 2)
        options, tensor = self._target.options, entry.tensor
        start = header(tensor.dtype, tensor.shape)
        self._sink = Sink(self._file.fd, self._file.path, options, self._target.pipeline, len(start) + tensor.nbytes)
        sums = options.sums()
        self._sink.append(start)
        self._sink.append_tensor(tensor, sums)
        self._sink.append(trailer(options.metadata, sums[0].text if sums else None))
        self.is_direct, self.reason = self._sink.medium.is_direct, self._sink.medium.reason
        if self._target.known is None:
            self._sink.settle()

    def finish(self) -> list[str]:
        """See :class:`Session`."""
        if self._sink is None:
            raise _one_only(self._target.path, 0)
        self._sink.finish()
        self._file.commit()
        return [self._target.path]

    def abort(self) -> None:
        """See :class:`Session`."""
        if self._sink is not None:
            self._sink.close()
        self._file.abort()


NPY = _Npy()
