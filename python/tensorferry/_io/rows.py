"""Batches of rows: which arrays they belong to, and whether they fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tensorferry._errors import ArgumentError, DTypeError, FerryError, LayoutError
from tensorferry._io.failures import refused
from tensorferry._io.growing import RowKind
from tensorferry._io.handover import require_values_now
from tensorferry._io.readable import Readable, readable

__all__ = ["DEFAULT", "Rows", "described"]

DEFAULT = "rows"  # the array that a batch without a name belongs to


def described(name: str, x: Any, dtype: object) -> Readable:
    """Describe a tensor; an error says its name.

    Raises
    ------
    FerryError
        For what cannot be written.
    """
    try:
        made = readable(x, dtype)
        require_values_now(made)
        return made
    except FerryError as error:
        error.given = f"tensor {name!r}: {error.given}"
        raise


class Rows:
    """The growing arrays of one writer.

    Parameters
    ----------
    path : str
        For messages.
    takes : str
        See :class:`Backend`.
    kinds : mapping of str to RowKind
        What was found.
    """

    def __init__(self, path: str, takes: str, kinds: Mapping[str, RowKind]) -> None:
        self._path = path
        self._takes = takes
        self.kinds: dict[str, RowKind] = dict(kinds)

    def columns_of(self, batch: Any, name: Any) -> dict[str, Any]:
        """Return tensors by the array that they are rows of.

        Raises
        ------
        ArgumentError
            For names where there are none, and a name beside a mapping.
        ExportError
            Where arrays cannot grow at all.
        """
        if self._takes == "":
            raise refused(
                self._path,
                "arrays of this format cannot grow",
                "append rows to .npy, .zarr, .parquet, .arrow, or a folder (a path that ends with /)",
            )
        if name is not None and not isinstance(name, str):
            raise ArgumentError(f"name={name!r}", "an array's name is text", "pass a str")
        named = isinstance(batch, Mapping)
        if self._takes == "one" and (named or name is not None):
            what = "a mapping" if named else f"name={name!r}"
            raise ArgumentError(what, "this format holds one array without a name", "append a tensor, or use a folder")
        if named and name is not None:
            raise ArgumentError(f"name={name!r} and a mapping", "a mapping has names of its own", "pass one of them")
        columns = dict(batch) if named else {"" if self._takes == "one" else name or DEFAULT: batch}
        if not columns or not all(isinstance(column, str) for column in columns):
            raise ArgumentError(
                "a batch", "a mapping of rows has text for keys, and at least one", "pass such a mapping"
            )
        if self._takes == "table" and self.kinds and set(columns) != set(self.kinds):
            raise LayoutError(
                f"rows of the columns {sorted(columns)}",
                f"the first batch had {sorted(self.kinds)}",
                "pass all columns in each call",
            )
        return {column: columns[column] for column in self.kinds if column in columns} | columns

    def parts(self, columns: Mapping[str, Any], dtype: object, limit_nbytes: int) -> Iterator[dict[str, Readable]]:
        """Yield what is to be appended at once; a table's rows in parts of at most `limit_nbytes`.

        Raises
        ------
        LayoutError, DTypeError
            For rows that do not fit; nothing was yielded before.
        """
        whole = {column: described(column or "rows", x, dtype) for column, x in columns.items()}
        counts = {tensor.shape[0] if tensor.shape else None for tensor in whole.values()}
        if None in counts:
            raise LayoutError("a number", "a batch has rows along its first axis", "pass x[None] for a single row")
        if len(counts) > 1:
            said = ", ".join(f"{column}: {tensor.shape[0]}" for column, tensor in whole.items())
            raise LayoutError(
                f"a batch with different numbers of rows ({said})", "rows belong together", "pass equal ones"
            )
        for column, tensor in whole.items():
            self._require_fit(column, tensor)
        (rows,) = counts
        assert rows is not None
        row_nbytes = sum(tensor.nbytes for tensor in whole.values()) // max(rows, 1)
        step = max(1, limit_nbytes // max(row_nbytes, 1))
        if self._takes != "table" or rows <= step:
            yield whole
            return
        for start in range(0, rows, step):
            yield {column: described(column, x[start : start + step], dtype) for column, x in columns.items()}

    def count(self, part: Mapping[str, Readable]) -> None:
        """Note that rows were given."""
        for column, tensor in part.items():
            kind = self.kinds.setdefault(column, RowKind(tensor.dtype, tensor.shape[1:]))
            self.kinds[column] = replace(kind, rows=kind.rows + tensor.shape[0])

    def _require_fit(self, column: str, tensor: Readable) -> None:
        kind = self.kinds.get(column)
        if kind is None:
            return
        named = f"rows for {column!r}" if column else "rows"
        if tensor.shape[1:] != kind.shape:
            raise LayoutError(
                f"{named} of shape {tensor.shape[1:]}", f"those before have shape {kind.shape}", "pass equal shapes"
            )
        if tensor.dtype != kind.dtype:
            raise DTypeError(
                f"{named} of dtype {tensor.dtype}",
                f"those before are {kind.dtype}, and nothing is converted in silence",
                f'convert them, or make the Writer with dtype="{kind.dtype}"',
            )
