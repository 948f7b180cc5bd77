"""Plans an export from file to file, and carries it out."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry._errors import ArgumentError, DTypeError, ExportError
from tensorferry._io.atomic import absolute
from tensorferry._io.entries import entries_of
from tensorferry._io.failures import refused
from tensorferry._io.readable import readable
from tensorferry._io.registry import format_for
from tensorferry._io.report import SaveReport
from tensorferry._io.save import save
from tensorferry.cli._export_source import Source, open_source

__all__ = ["Arguments", "Job", "Row", "carry_out", "document", "planned", "prepared"]


@dataclass(frozen=True)
class Arguments:
    """What the command was given."""

    source: str
    target: str
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    format: str | None = None
    dtype: str | None = None
    checksum: bool = False
    durable: bool = False
    overwrite: bool = False
    max_shard_size: str | None = None


@dataclass(frozen=True)
class Job:
    """An export whose source is open.

    Attributes
    ----------
    arguments : Arguments
        What the command was given.
    source : Source
        The open source.
    names : tuple of str
        Of the tensors that will be exported.
    format : str
        That will be written.
    """

    arguments: Arguments
    source: Source
    names: tuple[str, ...]
    format: str

    @property
    def filtered_out(self) -> int:
        """How many tensors of the source were not asked for."""
        return len(self.source.names) - len(self.names)

    @property
    def nbytes(self) -> int | None:
        """How many bytes will be written; None where that would take reading the source."""
        if not self.source.is_mapped:
            return None
        known = entries_of(self.tensors(), self.arguments.dtype).known or []
        return sum(entry.tensor.nbytes for entry in known if entry.alias_of is None)

    def tensors(self) -> Iterable[tuple[str, Any]]:
        """Name and tensor: a list, so that sizes and ties are known, unless that would read everything into memory."""
        pairs = self.source.pairs(self.names)
        return list(pairs) if self.source.is_mapped else pairs


@dataclass(frozen=True)
class Row:
    """What will be done with one tensor.

    Attributes
    ----------
    name : str
        In both files.
    dtype, written_dtype : str
        Before and after.
    shape : tuple of int
        As written.
    nbytes : int
        As written; 0 for a tie.
    how : str
        "in place", "packed", "converted", or "same as NAME".
    """

    name: str
    dtype: str
    written_dtype: str
    shape: tuple[int, ...]
    nbytes: int
    how: str


def prepared(arguments: Arguments) -> Job:
    """Open the source and choose tensors; nothing is written.

    Raises
    ------
    FerryError
        When the source cannot be read, or the target's name means no format.
    ArgumentError
        When the filters leave nothing, or there is no such dtype.
    """
    chosen = format_for(arguments.target, arguments.format)
    _require_dtype(arguments.dtype)
    source = open_source(arguments.source)
    names = source.matching(arguments.include, arguments.exclude)
    if not names:
        found = ", ".join(map(repr, source.names[:3])) + (", ..." if len(source.names) > 3 else "")
        why = f"no tensor is left of the {len(source.names):,} in it" + (f" ({found})" if found else "")
        raise ArgumentError(arguments.source, why, "give other patterns, such as --include '*weight'")
    return Job(arguments, source, names, chosen.name)


def _require_dtype(dtype: str | None) -> None:
    try:
        readable(np.empty(0, np.float32), dtype)
    except DTypeError as error:
        raise ArgumentError(f"--dtype {dtype}", error.why, error.instead) from error


def planned(job: Job) -> list[Row]:
    """Tell what will happen to each tensor, in the order of the source; no values are converted.

    Raises
    ------
    FerryError
        For what cannot be written, or a target that is there and may not be replaced.
    """
    _require_free(job)
    rows = []
    for entry, (name, tensor) in zip(
        entries_of(job.tensors(), job.arguments.dtype).stream, job.source.pairs(job.names), strict=True
    ):
        before = str(tensor.dtype).removeprefix("torch.")
        tie = entry.alias_of is not None
        how = f"same as {entry.alias_of}" if tie else entry.tensor.how
        nbytes = 0 if tie else entry.tensor.nbytes
        rows.append(Row(name, before, entry.tensor.dtype.name, entry.tensor.shape, nbytes, how))
    return rows


def _require_free(job: Job) -> None:
    target = absolute(job.arguments.target)
    if os.path.lexists(target) and not job.arguments.overwrite:
        raise refused(target, "something is there", "pass --overwrite to replace it, or another path")


def carry_out(job: Job, progress: Callable[[int, int | None], object]) -> SaveReport:
    """Write.

    Raises
    ------
    FerryError
        For what cannot be written; then nothing new is there.
    """
    given = job.arguments
    try:
        return save(
            job.tensors(),
            given.target,
            format=given.format,
            dtype=given.dtype,
            durable=given.durable,
            overwrite=given.overwrite,
            checksum="crc32c" if given.checksum else None,
            metadata=dict(job.source.metadata) or None,
            max_shard_size=given.max_shard_size,
            progress=progress,
        )
    except ExportError as error:
        error.instead = error.instead.replace("overwrite=True", "--overwrite")
        raise


def document(job: Job, report: SaveReport | None, rows: list[Row] | None) -> dict[str, Any]:
    """Return plain values for JSON."""
    return {
        "ok": True,
        "source": job.source.path,
        "source_format": job.source.format,
        "target": absolute(job.arguments.target),
        "format": job.format,
        "filtered_out": job.filtered_out,
        "left_out": list(job.source.left_out),
        "plan": None if rows is None else [dataclasses.asdict(row) for row in rows],
        "report": None if report is None else dataclasses.asdict(report),
    }
