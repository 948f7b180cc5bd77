"""Rows of a table, appended batch by batch; nothing appears before the end, which says where the parts are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tensorferry._io.atomic import require_free
from tensorferry._io.entries import Entry
from tensorferry._io.failures import refused
from tensorferry._io.format import Format, Session, Target
from tensorferry._io.growing import RowKind
from tensorferry._io.readable import Readable
from tensorferry._io.slab_values import slab_values
from tensorferry._io.table_format import opener
from tensorferry._io.tables import TableFile

__all__ = ["GrowingTable"]


class GrowingTable:
    """See :class:`Backend`. Takes rows, or whole columns."""

    takes_rows = "table"
    keeps_rows = False
    is_direct = False
    reason = "pyarrow writes the file"

    def __init__(self, target: Target, chosen: Format) -> None:
        self.format = chosen.name
        self.kinds: Mapping[str, RowKind] = {}
        self.names: set[str] = set()
        self._target = target
        self._chosen = chosen
        self._open = opener(chosen.name, target)
        self._session: Session | None = None
        self._table: TableFile | None = None
        require_free(target.path, target.options)

    def put(self, entry: Entry) -> None:
        """See :class:`Backend`."""
        if self._table is not None:
            raise self._mixed()
        if self._session is None:
            self._session = self._chosen.begin(self._target)
        self._session.put(entry)

    def append(self, columns: Mapping[str, Readable]) -> None:
        """See :class:`Backend`."""
        if self._session is not None:
            raise self._mixed()
        if self._table is None:
            kinds = {name: RowKind(tensor.dtype, tensor.shape[1:]) for name, tensor in columns.items()}
            self._table = TableFile(self._target, self._open, kinds, {})
        self._table.append({name: _values(tensor) for name, tensor in columns.items()})

    def _mixed(self) -> Exception:
        return refused(self._target.path, "whole columns and rows were given for one table", "pass only one of them")

    def flush(self) -> None:
        """See :class:`Backend`; nothing can be read before the end."""
        if self._table is not None:
            self._table.flush()

    def finish(self) -> list[str]:
        """See :class:`Backend`."""
        if self._session is not None:
            return self._session.finish()
        if self._table is None:
            raise refused(self._target.path, "nothing was appended, so its columns are not known", "append a batch")
        self._table.finish()
        self._table.commit()
        return [self._target.path]

    def abort(self) -> None:
        """See :class:`Backend`."""
        for part in (self._session, self._table):
            if part is not None:
                part.abort()

    leave = abort


def _values(tensor: Readable) -> Any:
    made = np.empty(tensor.shape, tensor.dtype)
    for index, values in slab_values(tensor, max(tensor.nbytes, 1)):
        made[index if index else ...] = values
    return made
