"""What Parquet and Arrow's IPC files have in common: a table on its way to a file, group of rows by group of rows."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensorferry._io.arrow_columns import KEY, array_of, field_of, library
from tensorferry._io.atomic import NewFile
from tensorferry._io.failures import refused
from tensorferry._io.format import Target
from tensorferry._io.growing import RowKind

__all__ = ["Open", "TableFile", "metadata_of", "notes_of", "require_rows"]

_Array = np.ndarray[Any, Any]

Open = Callable[[str, Any], Any]  # of a path and a schema: a writer with write_table and close


def notes_of(schema: Any) -> dict[str, Any]:
    """Return what we noted in a schema."""
    found: dict[str, Any] = json.loads((schema.metadata or {}).get(KEY, b"{}"))
    return found


def metadata_of(schema: Any) -> dict[str, str]:
    """Return the metadata of a schema, but for what libraries keep there for themselves."""
    ours = ("tensorferry", "ARROW:schema", "pandas")
    pairs = {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
    return {key: value for key, value in pairs.items() if key not in ours}


class TableFile:
    """A file of rows, under a temporary name until :meth:`commit`.

    Parameters
    ----------
    target : Target
        Where and how.
    open_writer : callable
        The library's writer for a path and a schema.
    kinds : mapping of str to RowKind
        The columns.
    aliases : mapping of str to str
        Columns that are the same as another.

    Attributes
    ----------
    rows_at_once : int
        How many rows make a group.
    """

    def __init__(
        self, target: Target, open_writer: Open, kinds: Mapping[str, RowKind], aliases: Mapping[str, str]
    ) -> None:
        self._target = target
        self._pa = library("pyarrow", target.path)
        fields = [field_of(target.path, name, kind) for name, kind in kinds.items()]
        metadata: dict[Any, str] = dict(target.options.metadata or {})
        metadata[KEY] = json.dumps({"version": 1, "aliases": dict(aliases)})
        self._schema = self._pa.schema(fields, metadata=metadata)
        self._sums = {name: target.options.sums() for name in kinds}
        row_nbytes = sum(kind.dtype.itemsize * int(np.prod(kind.shape, dtype=np.int64)) for kind in kinds.values())
        rows = target.options.max_staging_nbytes // 4 // max(row_nbytes, 1)
        self.rows_at_once = max(1, rows - rows % 2)
        self._waiting: list[Any] = []
        self._rows_waiting = 0
        self._file = NewFile(target.path, target.options)
        try:
            self._writer = open_writer(self._file.path, self._schema)
        except BaseException:
            self._file.abort()
            raise

    def append(self, columns: Mapping[str, _Array]) -> None:
        """Append rows; their memory may change when this returns."""
        arrays = []
        for field in self._schema:
            values = columns[field.name]
            for running in self._sums[field.name]:
                running.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8))
            arrays.append(array_of(self._target.path, field, values))
            self._target.pipeline.wrote(values.nbytes)
        batch = self._pa.record_batch(arrays, schema=self._schema)
        rows = batch.num_rows
        if rows >= self.rows_at_once:
            self.flush()
            self._writer.write_table(self._pa.Table.from_batches([batch]))
        elif rows:
            self._waiting.append(self._pa.Table.from_batches([batch]).take(np.arange(rows)))  # memory of its own
            self._rows_waiting += rows
            if self._rows_waiting >= self.rows_at_once:
                self.flush()

    def flush(self) -> None:
        """Write what waits for a group to be full."""
        if self._waiting:
            table = self._pa.concat_tables(self._waiting).combine_chunks()
            self._waiting, self._rows_waiting = [], 0
            self._writer.write_table(table)

    def finish(self) -> None:
        """Write what is left, and flush; the file can then be committed."""
        self.flush()
        if self._target.options.checksum:
            sums = {name: running[0].text for name, running in self._sums.items()}
            self._writer.add_key_value_metadata({"tensorferry.crc32c": json.dumps(sums)})
        self._writer.close()
        if self._target.options.durable:
            self._target.options.system.fsync(self._file.fd)

    def commit(self) -> None:
        """Give the file its name."""
        self._file.commit()

    def abort(self) -> None:
        """Remove it, unless it was committed. Never raises."""
        with contextlib.suppress(Exception):  # whatever the library says of a file that is thrown away
            self._writer.close()
        self._file.abort()


def require_rows(path: str, name: str, shape: tuple[int, ...], rows: int | None) -> None:
    """Refuse a tensor that is no column of a table.

    Raises
    ------
    ExportError
        For one without rows, or with more or fewer than the others.
    """
    if not shape:
        raise refused(path, f"tensor {name!r} is a number, and a table has rows", "save it elsewhere, or in metadata=")
    if rows is not None and shape[0] != rows:
        raise refused(
            path,
            f"tensor {name!r} has {shape[0]:,} rows, and those before have {rows:,}",
            "save tensors of equally many rows, or to another format",
        )
