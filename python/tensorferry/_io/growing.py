"""What a format has to do for a writer: take tensors one by one, and rows of arrays that grow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tensorferry._io.entries import Entry
from tensorferry._io.failures import refused
from tensorferry._io.format import Session
from tensorferry._io.readable import Readable

__all__ = ["Backend", "RowKind", "SessionBackend"]


@dataclass(frozen=True)
class RowKind:
    """Which rows an array takes, and how many it had when the writer began."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    rows: int = 0


class Backend(Protocol):
    """Writes in the writer's thread.

    Attributes
    ----------
    format : str
        Its name.
    kinds : mapping of str to RowKind
        Growing arrays that were found; "" for the only one of a format without names.
    names : set of str
        Of other tensors that were found.
    takes_rows : {"", "one", "many", "table"}
        Rows of no array, of one without a name, of several, or of columns that all grow together.
    """

    format: str
    kinds: Mapping[str, RowKind]
    names: set[str]
    takes_rows: str

    @property
    def is_direct(self) -> bool:
        """Did bytes go past the page cache?"""

    @property
    def reason(self) -> str:
        """Why."""

    @property
    def keeps_rows(self) -> bool:
        """Does :meth:`leave` leave anything?"""

    def put(self, entry: Entry) -> None:
        """Write one tensor, whose values are a stream."""

    def append(self, columns: Mapping[str, Readable]) -> None:
        """Append rows, whose values are streams that come one after the other."""

    def flush(self) -> None:
        """Let a reader see every row."""

    def finish(self) -> list[str]:
        """Make everything appear; return the paths."""

    def abort(self) -> None:
        """Remove everything that this writer made; for good, and without raising."""

    def leave(self) -> None:
        """End without finishing: whole rows stay where they are of value, everything else goes. Never raises."""


class SessionBackend:
    """Any format, for whole tensors; see :class:`Backend`."""

    takes_rows = ""
    keeps_rows = False

    def __init__(self, format: str, path: str, session: Session) -> None:
        self.format = format
        self.kinds: Mapping[str, RowKind] = {}
        self.names: set[str] = set()
        self._path = path
        self._session = session

    @property
    def is_direct(self) -> bool:
        """See :class:`Session`."""
        return self._session.is_direct

    @property
    def reason(self) -> str:
        """See :class:`Session`."""
        return self._session.reason

    def put(self, entry: Entry) -> None:
        """See :class:`Backend`."""
        self._session.put(entry)

    def append(self, columns: Mapping[str, Readable]) -> None:
        """See :class:`Backend`.

        Raises
        ------
        ExportError
            Always.
        """
        del columns
        raise refused(
            self._path,
            f"arrays of the format {self.format} cannot grow",
            "append rows to .npy, .zarr, .parquet, .arrow, or a folder (a path that ends with /)",
        )

    def flush(self) -> None:
        """Nothing is visible before the end."""

    def finish(self) -> list[str]:
        """See :class:`Backend`."""
        return self._session.finish()

    def abort(self) -> None:
        """See :class:`Backend`."""
        self._session.abort()

    leave = abort
