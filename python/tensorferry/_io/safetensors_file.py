"""One .safetensors file on its way: its header is written first where all tensors are known, else last."""

from __future__ import annotations

import mmap
from dataclasses import replace
from typing import Any

import numpy as np

from tensorferry._io.atomic import NewFile
from tensorferry._io.entries import Entry
from tensorferry._io.failures import refused
from tensorferry._io.format import Target
from tensorferry._io.readable import Readable
from tensorferry._io.safetensors_header import LARGEST_NBYTES, NO_SUM, Row, rendered, require_writable
from tensorferry._io.sink import Sink

__all__ = ["SafetensorsFile", "in_order_of_file"]

_RESERVED_NBYTES = 256 << 10  # for a header that is not known yet
_PAGE_NBYTES, _LINE_NBYTES = 4096, 64  # what the data is aligned to, in large files and in others
_LARGE_NBYTES = 1 << 20


def in_order_of_file(entries: list[Entry]) -> list[Entry]:
    """Sort by size of element, so that each tensor is aligned to it: the format allows no gaps."""
    return sorted(entries, key=lambda entry: -entry.tensor.dtype.itemsize)


class SafetensorsFile:
    """A file that is filled tensor by tensor, and then committed under a name that may be decided on late.

    Parameters
    ----------
    target : Target
        Its path is provisional.
    known : list of Entry or None
        What will be put, in order; ties go by :meth:`alias`.

    Attributes
    ----------
    rows : list of Row
        What was put so far, or all of it where that was known.
    nbytes : int
        Bytes of tensors that were put so far.
    """

    def __init__(self, target: Target, known: list[Entry] | None, aliases: dict[str, str] | None = None) -> None:
        self._target = target
        self._options = target.options
        self._known = known
        self.aliases: dict[str, str] = dict(aliases or {})
        self.rows: list[Row] = []
        self.nbytes = 0
        self._count = 0  # of tensors that were put
        header = self._placeholder(known) if known is not None else b" " * _RESERVED_NBYTES
        self._header_nbytes = len(header)
        total = None if known is None else len(header) + sum(entry.tensor.nbytes for entry in known)
        self.file = NewFile(target.path, target.options)
        try:
            self._sink = Sink(self.file.fd, self.file.path, target.options, target.pipeline, total)
            self._sink.append(header)
        except BaseException:
            self.file.abort()
            raise

    @property
    def is_direct(self) -> bool:
        """Do bytes go past the page cache?"""
        return self._sink.medium.is_direct

    @property
    def reason(self) -> str:
        """Why they go the way they go."""
        return self._sink.medium.reason

    @property
    def file_nbytes(self) -> int:
        """How long the file is."""
        return self._header_nbytes + self.nbytes

    def _placeholder(self, known: list[Entry]) -> bytes:
        begin = 0
        for entry in known:
            self.rows.append(self._row(entry, begin))
            begin = self.rows[-1].end
        alignment = _PAGE_NBYTES if begin >= _LARGE_NBYTES else _LINE_NBYTES
        header = rendered(self.rows, self.aliases, self._options.metadata, alignment=alignment)
        assert header is not None
        if len(header) > LARGEST_NBYTES:
            raise self._too_many(len(header))
        return header

    def _row(self, entry: Entry, begin: int) -> Row:
        require_writable(self._target.path, entry)
        tensor = entry.tensor
        crc32c = NO_SUM if self._options.checksum else None
        end = begin + tensor.nbytes
        return Row(entry.name, tensor.dtype, tensor.shape, begin, end, crc32c, tensor.paired_shape)

    def _too_many(self, nbytes: int) -> Exception:
        return refused(
            self._target.path,
            f"its header would take {nbytes:,} bytes, and readers accept {LARGEST_NBYTES:,}",
            "save in shards (max_shard_size=), or to a folder",
        )

    def put(self, entry: Entry) -> None:
        """Append one tensor."""
        if self._known is None:
            self.rows.append(self._row(entry, self.nbytes))
        row = self.rows[self._count]
        self._count += 1
        sums = self._options.sums()
        self._sink.append_tensor(entry.tensor, sums)
        if sums:
            row.crc32c = sums[0].text
        self.nbytes = row.end
        if self._known is None:
            self._sink.settle()

    def finish(self) -> None:
        """Write what was not known before, and flush; the file is then ready to be committed."""
        if self._known is None and self._is_to_be_rearranged():
            self._rearrange()
            return
        if self._known is None or self._options.checksum:
            header = self._rendered(self._header_nbytes)
            assert header is not None
            self._sink.patch(0, header)
        self._sink.finish()

    def abort(self) -> None:
        """Remove it, unless it was committed."""
        self._sink.close()
        self.file.abort()

    def _rendered(self, nbytes: int | None) -> bytes | None:
        return rendered(self.rows, self.aliases, self._options.metadata, nbytes=nbytes)

    def _is_to_be_rearranged(self) -> bool:
        misaligned = any(row.begin % row.dtype.itemsize for row in self.rows if row.dtype.itemsize)
        return misaligned or self._rendered(self._header_nbytes) is None

    def _rearrange(self) -> None:
        """Write the file once more, with all that is known now: for the few whose header or order came out wrong."""
        self._sink.finish()
        draft, start, rows = self.file, self._header_nbytes, self.rows
        mapped = mmap.mmap(draft.fd, 0, access=mmap.ACCESS_READ)
        entries = in_order_of_file([Entry(row.name, _in_draft(row, mapped, start)) for row in rows])
        again = SafetensorsFile(replace(self._target, known=entries), entries, self.aliases)
        try:
            for entry in entries:
                again.put(entry)
            again.finish()
        except BaseException:
            again.abort()
            raise
        draft.abort()
        self.file, self._sink, self.rows, self._header_nbytes = (
            again.file,
            again._sink,
            again.rows,
            again._header_nbytes,
        )


def _in_draft(row: Row, mapped: Any, start: int) -> Readable:
    memory = np.frombuffer(mapped, np.uint8, row.end - row.begin, start + row.begin)
    return Readable(row.dtype, row.shape, memory, "in place", (row.name,), paired_shape=row.paired_shape)
