"""Parquet and Arrow's IPC files (Feather): a column for each tensor, a number or a list of fixed size for each row."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import Any

import numpy as np

from tensorferry._errors import ArgumentError, ExportError
from tensorferry._io.arrow_columns import column_of, kind_of, library
from tensorferry._io.atomic import NewFile, require_free
from tensorferry._io.entries import Entry
from tensorferry._io.failures import refused, unreadable
from tensorferry._io.format import Contents, Session, Stored, Target
from tensorferry._io.growing import RowKind
from tensorferry._io.readable import Readable
from tensorferry._io.sink import Sink
from tensorferry._io.tables import Open, TableFile, metadata_of, notes_of, require_rows

__all__ = ["ARROW", "PARQUET", "opener"]

_Array = np.ndarray[Any, Any]


def _open_parquet(path: str, schema: Any) -> Any:
    pq = library("pyarrow.parquet", path)
    return pq.ParquetWriter(path, schema, compression="none", use_dictionary=False, write_page_checksum=True)


def _open_arrow(path: str, schema: Any) -> Any:
    ipc = library("pyarrow.ipc", path)
    return ipc.new_file(path, schema)


_OPENERS: dict[str, Open] = {"parquet": _open_parquet, "arrow": _open_arrow}


def opener(format: str, target: Target) -> Open:
    """Return what opens the library's writer.

    Raises
    ------
    ArgumentError
        For checksums where the format has no place for them.
    """
    if format == "arrow" and target.options.checksum:
        raise ArgumentError(
            'checksum="crc32c"', "an Arrow file has no place for sums that are known at its end", "save to .parquet"
        )
    return _OPENERS[format]


class _Table:
    def __init__(self, name: str, suffixes: tuple[str, ...]) -> None:
        self.name = name
        self.suffixes = suffixes

    def begin(self, target: Target) -> Session:
        """See :class:`Format`."""
        return _TableSession(target, opener(self.name, target))

    def contents(self, path: str) -> Contents:
        """See :class:`Format`."""
        pa = library("pyarrow", path)
        try:
            return _of_parquet(path) if self.name == "parquet" else _of_arrow(path)
        except (OSError, pa.ArrowInvalid) as error:
            if isinstance(error, ExportError):
                raise
            if isinstance(error, OSError) and error.errno is not None:
                raise unreadable(path, error) from error
            raise refused(path, f"pyarrow cannot read it ({error})", "check that it is complete") from error


def _of_parquet(path: str) -> Contents:
    pq = library("pyarrow.parquet", path)
    with pq.ParquetFile(path) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows
        said = (file.metadata.metadata or {}).get(b"tensorferry.crc32c", b"{}")
    sums = json.loads(said)

    def column(name: str) -> Any:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read(columns=[name]).column(name)

    return _contents("parquet", path, schema, rows, column, sums)


def _of_arrow(path: str) -> Contents:
    pa, ipc = library("pyarrow", path), library("pyarrow.ipc", path)
    with pa.memory_map(path) as mapped:
        file = ipc.open_file(mapped)
        schema = file.schema
        rows = sum(file.get_batch(i).num_rows for i in range(file.num_record_batches))

    def column(name: str) -> Any:
        with pa.memory_map(path) as mapped:
            return ipc.open_file(mapped).read_all().column(name)

    return _contents("arrow", path, schema, rows, column, {})


def _contents(format: str, path: str, schema: Any, rows: int, column: Any, sums: dict[str, str]) -> Contents:
    def read(name: str, kind: RowKind) -> _Array:
        try:
            return column_of(path, name, column(name), kind)
        except OSError as error:
            if isinstance(error, ExportError):
                raise
            why = f"pyarrow cannot read column {name!r} ({error})"
            raise refused(path, why, "check that it is complete") from error

    if len(set(schema.names)) != len(schema.names):
        raise refused(path, "two of its columns have one name", "read it with pyarrow")
    tensors: dict[str, Stored] = {}
    for field in schema:
        kind = kind_of(path, field, rows)
        made = partial(read, field.name, kind)
        shape = (rows, *kind.shape)
        tensors[field.name] = Stored(field.name, kind.dtype, shape, path, None, False, sums.get(field.name), made)
    metadata = metadata_of(schema)
    metadata.pop("tensorferry.crc32c", None)
    return Contents(format, tensors, dict(notes_of(schema).get("aliases", {})), metadata)


class _TableSession:
    """See :class:`Session`. The table is written at the end; what comes as a stream waits in a file beside it."""

    is_direct = False
    reason = "pyarrow writes the file"

    def __init__(self, target: Target, open_writer: Open) -> None:
        self._target = target
        self._open = open_writer
        library("pyarrow", target.path)
        require_free(target.path, target.options)
        self.order = None if target.known is None else [e for e in target.known if e.alias_of is None]
        self._aliases = {e.name: e.alias_of for e in target.known or () if e.alias_of is not None}
        self._columns: dict[str, Readable] = {}
        self._draft: NewFile | None = None
        self._sink: Sink | None = None
        self._places: dict[str, int] = {}
        self._table: TableFile | None = None
        rows: int | None = None
        for entry in self.order or ():
            require_rows(target.path, entry.name, entry.tensor.shape, rows)
            rows = entry.tensor.shape[0]

    def put(self, entry: Entry) -> None:
        """See :class:`Session`."""
        first = next(iter(self._columns.values()), None)
        require_rows(self._target.path, entry.name, entry.tensor.shape, None if first is None else first.shape[0])
        if self._target.known is None or entry.tensor.stream is not None:
            self._spool(entry)
        self._columns[entry.name] = entry.tensor

    def _spool(self, entry: Entry) -> None:
        if self._sink is None:
            self._draft = NewFile(self._target.path, self._target.options)
            self._sink = Sink(self._draft.fd, self._draft.path, self._target.options, self._target.pipeline)
        self._sink.append(bytes(-self._sink.position % 64))
        self._places[entry.name] = self._sink.position
        self._sink.append_tensor(entry.tensor)
        self._sink.settle()

    def finish(self) -> list[str]:
        """See :class:`Session`."""
        if not self._columns:
            raise refused(self._target.path, "a table has at least one column", "save at least one tensor")
        if self._sink is not None:
            self._sink.finish()
        kinds = {name: RowKind(tensor.dtype, tensor.shape[1:]) for name, tensor in self._columns.items()}
        self._table = table = TableFile(self._target, self._open, kinds, self._aliases)
        rows = next(iter(self._columns.values())).shape[0]
        for start in range(0, rows, table.rows_at_once):
            stop = min(start + table.rows_at_once, rows)
            table.append({name: self._values(name, tensor, start, stop) for name, tensor in self._columns.items()})
        table.finish()
        table.commit()
        self._drop_draft()
        return [self._target.path]

    def _values(self, name: str, tensor: Readable, start: int, stop: int) -> _Array:
        shape = (stop - start, *tensor.shape[1:])
        row_nbytes = tensor.nbytes // max(tensor.shape[0], 1)
        if tensor.memory is not None and name not in self._places:
            return tensor.memory[start * row_nbytes : stop * row_nbytes].view(tensor.dtype).reshape(shape)
        values = np.empty(shape, tensor.dtype)
        if name in self._places:
            assert self._draft is not None
            _read_fully(self._draft, values, self._places[name] + start * row_nbytes)
        else:
            transfer = tensor.fill((slice(start, stop),), values)
            if transfer is not None:
                transfer.result()
        return values

    def _drop_draft(self) -> None:
        if self._sink is not None:
            self._sink.close()
        if self._draft is not None:
            self._draft.abort()

    def abort(self) -> None:
        """See :class:`Session`."""
        self._drop_draft()
        if self._table is not None:
            self._table.abort()


def _read_fully(draft: NewFile, out: _Array, offset: int) -> None:
    view, done = out.reshape(-1).view(np.uint8).data, 0
    while done < len(view):
        count = os.preadv(draft.fd, [view[done:]], offset + done)
        if count <= 0:
            raise refused(draft.target, "the draft became shorter while it was read", "check the disk")
        done += count


PARQUET = _Table("parquet", (".parquet",))
ARROW = _Table("arrow", (".arrow", ".feather"))
