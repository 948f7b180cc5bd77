"""Files of metrics: each step is one line that is appended by one write, so that a kill at any time tears none."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorferry._errors import ArgumentError
from tensorferry._metrics.histogram import Histogram

__all__ = ["CsvFile", "JsonLinesFile", "file_sink"]


def file_sink(path: str, rank_suffix: Callable[[], str]) -> JsonLinesFile | CsvFile:
    """Return the sink for a path.

    Raises
    ------
    ArgumentError
        For any other ending than ``.jsonl`` and ``.csv``.
    """
    stem, ending = os.path.splitext(path)
    if ending not in (".jsonl", ".csv"):
        raise ArgumentError(f"the path {path!r}", "its ending names no format", "let it end in .jsonl or .csv")
    kind = JsonLinesFile if ending == ".jsonl" else CsvFile
    return kind(lambda: f"{stem}{rank_suffix()}{ending}")


class _LinesFile:
    """A file that is opened at the first step; what a killed process left half written at its end is cut off then."""

    def __init__(self, path: Callable[[], str]) -> None:
        self._path_of = path
        self._descriptor: int | None = None
        self._path = ""
        self.name = "a file"

    @abstractmethod
    def take(self, step: int, values: dict[str, Any]) -> None:
        """Append one step."""

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        """Return the open file; a forked process may have put another one in its place."""
        if self._descriptor is not None:
            if _is_at(self._descriptor, self._path):
                return self._descriptor
            self.close()
        self._path = self.name = self._path_of()
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        _cut_torn_line(self._descriptor)
        return self._descriptor

    def _append(self, line: bytes) -> None:
        descriptor = self._open()
        written = os.write(descriptor, line)
        if written < len(line):  # the disk is full: no half line stays
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
            raise OSError(f"{self._path}: no room for {len(line):,} bytes")


class JsonLinesFile(_LinesFile):
    """One JSON object a step, with its number under "step". NaN and infinities, which JSON has not, become text."""

    def take(self, step: int, values: dict[str, Any]) -> None:
        """Append one line."""
        record: dict[str, Any] = {"step": step}
        for name, value in values.items():
            plain = value if isinstance(value, (bool, int)) else _as_json(value)
            record["metrics/step" if name == "step" else name] = plain
        text = json.dumps(record, allow_nan=False, separators=(",", ":"))
        self._append(text.encode() + b"\n")


class CsvFile(_LinesFile):
    """One row a step. The first line names the columns; a new metric adds one, by a new file in place of the old one.

    Histograms and arrays have no place in a row and are left out.
    """

    def __init__(self, path: Callable[[], str]) -> None:
        super().__init__(path)
        self._columns: list[str] = []

    def take(self, step: int, values: dict[str, Any]) -> None:
        """Append one row, after new columns if there are any."""
        known: dict[str, Any] = {"step": step}
        for name, value in values.items():
            if isinstance(value, (bool, int, float)):
                known["metrics/step" if name == "step" else name] = value
        descriptor = self._open()
        if not self._columns or os.fstat(descriptor).st_size == 0:
            self._columns = self._read_columns()
        new = [name for name in known if name not in set(self._columns)]
        if new:
            self._add_columns(new)
        self._append(_row([known.get(name, "") for name in self._columns]))

    def close(self) -> None:
        """Close the file and forget its columns."""
        super().close()
        self._columns = []

    def _read_columns(self) -> list[str]:
        with open(self._path, newline="", encoding="utf-8") as file:
            return next(csv.reader(file), [])

    def _add_columns(self, new: list[str]) -> None:
        with open(self._path, newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))[1:]
        columns = self._columns + new
        text = _row(columns) + b"".join(_row(row + [""] * (len(columns) - len(row))) for row in rows)
        beside = f"{self._path}.{os.getpid()}.new"
        try:
            with open(beside, "wb") as file:
                file.write(text)
            os.replace(beside, self._path)
        except BaseException:
            if os.path.exists(beside):
                os.remove(beside)
            raise
        self.close()
        self._open()
        self._columns = columns


def _row(cells: list[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()


def _is_at(descriptor: int, path: str) -> bool:
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))


def _cut_torn_line(descriptor: int) -> None:
    """Cut off what stands behind the last end of a line."""
    end = os.fstat(descriptor).st_size
    at = end
    while at > 0:
        begin = max(0, at - 65536)
        found = os.pread(descriptor, at - begin, begin).rfind(b"\n")
        if found >= 0:
            begin += found + 1
            break
        at = begin
    else:
        begin = 0
    if begin < end:
        os.ftruncate(descriptor, begin)


def _as_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Histogram):
        return {key: _as_json(part) for key, part in value._asdict().items()}
    if isinstance(value, np.ndarray):
        return _as_json((value if value.dtype.kind in "biuf" else value.astype(np.float64)).tolist())
    if isinstance(value, dict):
        return {key: _as_json(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_as_json(part) for part in value]
    return value
