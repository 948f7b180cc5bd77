"""The format .npz: an archive of .npy members, stored, so that they can be mapped."""

from __future__ import annotations

import json
import zipfile
from functools import partial
from typing import Any

import numpy as np

from tensorferry._errors import ExportError
from tensorferry._io.atomic import NewFile
from tensorferry._io.checksum import Crc32
from tensorferry._io.entries import Entry
from tensorferry._io.failures import refused, unreadable
from tensorferry._io.format import Contents, Session, Stored, Target
from tensorferry._io.names import require_zip_name
from tensorferry._io.npy import header, read_header, stored_array
from tensorferry._io.readable import readable
from tensorferry._io.sink import Sink
from tensorferry._io.tags import from_npy
from tensorferry._io.zip_records import Member, central_directory, local_header

__all__ = ["NPZ"]

_METADATA = "__metadata__"
_LOCAL_NBYTES = 30


class _Npz:
    name = "npz"
    suffixes: tuple[str, ...] = (".npz",)

    def begin(self, target: Target) -> Session:
        """See :class:`Format`."""
        for entry in target.known or ():
            require_zip_name(target.path, entry.name)
        return _NpzSession(target)

    def contents(self, path: str) -> Contents:
        """See :class:`Format`."""
        try:
            with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
                members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
                stored = {name: _stored(name, info, file, path) for name, info in members.items()}
        except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
            raise refused(path, f"it is no .npz archive ({error})", "check that it is complete") from error
        except OSError as error:
            raise error if isinstance(error, ExportError) else unreadable(path, error) from error
        said = _read_metadata(stored.pop(_METADATA, None), path)
        for name, sum_ in said["crc32c"].items():
            if name in stored:
                stored[name] = _with_sum(stored[name], sum_)
        return Contents(self.name, stored, said["aliases"], said["metadata"], check=partial(_check_sums, path))


def _stored(name: str, info: zipfile.ZipInfo, file: Any, path: str) -> Stored:
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
        return _compressed(name, info, path)
    file.seek(info.header_offset)
    local = file.read(_LOCAL_NBYTES)
    if len(local) < _LOCAL_NBYTES or local[:4] != b"PK\x03\x04":
        raise refused(path, f"the member {name!r} is damaged", "write it again")
    skipped = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    file.seek(info.header_offset + _LOCAL_NBYTES + skipped)
    return stored_array(name, file, path, info.file_size)


def _compressed(name: str, info: zipfile.ZipInfo, path: str) -> Stored:
    def read() -> np.ndarray[Any, Any]:
        with zipfile.ZipFile(path) as again, again.open(info.filename) as unpacked:
            array: np.ndarray[Any, Any] = np.lib.format.read_array(unpacked, allow_pickle=False)
        return array.view(from_npy(array.dtype))

    with zipfile.ZipFile(path) as archive, archive.open(info.filename) as member:
        dtype, shape, fortran_order = read_header(member, path)
    return Stored(name, from_npy(dtype), shape, path, None, fortran_order, read=read)


def _check_sums(path: str) -> None:
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()
    if damaged is not None:
        raise refused(path, f"the member {damaged!r} does not have the sum that the archive names", "write it again")


def _with_sum(stored: Stored, text: str) -> Stored:
    return Stored(stored.name, stored.dtype, stored.shape, stored.file, stored.offset, stored.fortran_order, text)


def _read_metadata(stored: Stored | None, path: str) -> dict[str, dict[str, str]]:
    empty: dict[str, dict[str, str]] = {"aliases": {}, "metadata": {}, "crc32c": {}}
    if stored is None or stored.offset is None or stored.dtype != np.uint8:
        return empty
    with open(path, "rb") as file:
        file.seek(stored.offset)
        text = file.read(stored.nbytes)
    try:
        said = json.loads(text)
        return {key: dict(said.get(key, {})) for key in empty}
    except (ValueError, TypeError, AttributeError) as error:
        raise refused(path, f"its metadata is damaged ({error})", "write it again") from error


class _NpzSession:
    """See :class:`Session`."""

    def __init__(self, target: Target) -> None:
        self._target = target
        options = target.options
        self.order = None if target.known is None else [e for e in target.known if e.alias_of is None]
        self._aliases = {e.name: e.alias_of for e in target.known or () if e.alias_of is not None}
        self._members: list[Member] = []
        self._sums: dict[str, str] = {}
        total = None
        if self.order is not None:
            total = sum(entry.tensor.nbytes + len(entry.name.encode()) + 256 for entry in self.order)
        self._file = NewFile(target.path, options)
        try:
            self._sink = Sink(self._file.fd, self._file.path, options, target.pipeline, total)
        except BaseException:
            self._file.abort()
            raise
        self.is_direct, self.reason = self._sink.medium.is_direct, self._sink.medium.reason

    def put(self, entry: Entry) -> None:
        """See :class:`Session`."""
        if self._target.known is None:
            require_zip_name(self._target.path, entry.name)
        sums = self._target.options.sums()
        self._append(entry, sums)
        if sums:
            self._sums[entry.name] = sums[0].text
        if self._target.known is None:
            self._sink.settle()

    def _append(self, entry: Entry, sums: list[Any]) -> None:
        name = f"{entry.name}.npy".encode()
        start = header(entry.tensor.dtype, entry.tensor.shape)
        offset, nbytes = self._sink.position, len(start) + entry.tensor.nbytes
        crc32 = Crc32()
        crc32.update(np.frombuffer(start, np.uint8))
        self._sink.append(local_header(Member(name, nbytes, 0, offset)))
        self._sink.append(start)
        self._sink.append_tensor(entry.tensor, [crc32, *sums])
        self._members.append(Member(name, nbytes, crc32.value, offset))

    def finish(self) -> list[str]:
        """See :class:`Session`."""
        said: dict[str, Any] = {"aliases": self._aliases, "crc32c": self._sums}
        said["metadata"] = dict(self._target.options.metadata or {})
        if any(said.values()):
            text = json.dumps({key: value for key, value in said.items() if value}).encode()
            self._append(Entry(_METADATA, readable(np.frombuffer(text, np.uint8))), [])
        self._sink.append(central_directory(self._members, self._sink.position))
        for member in self._members:
            self._sink.patch(member.offset, local_header(member))
        self.is_direct, self.reason = self._sink.medium.is_direct, self._sink.medium.reason
        self._sink.finish()
        self._file.commit()
        return [self._target.path]

    def abort(self) -> None:
        """See :class:`Session`."""
        self._sink.close()
        self._file.abort()


NPZ = _Npz()
