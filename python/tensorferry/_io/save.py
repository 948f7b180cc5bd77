"""The whole way from a nest of tensors to a file."""

from __future__ import annotations

import os
import time
from typing import Any

from tensorferry._io.destinations import destination_of
from tensorferry._io.entries import Entries, entries_of
from tensorferry._io.failures import reported
from tensorferry._io.format import Format, Session, Target
from tensorferry._io.options import SaveOptions
from tensorferry._io.pipeline import Pipeline
from tensorferry._io.registry import format_for
from tensorferry._io.report import SaveReport

__all__ = ["nbytes_at", "save", "write"]


def save(tree: Any, path: Any, /, *, format: Any = None, dtype: Any = None, **arguments: Any) -> SaveReport:
    """See :func:`tensorferry.save`; `arguments` are those of :class:`SaveOptions`."""
    began = time.perf_counter()
    options = SaveOptions.parse(**arguments)
    chosen = format_for(path, format)
    entries = entries_of(tree, dtype)
    with destination_of(path, options) as place:
        return place.deliver(write(entries, chosen, place.path, place.options, began))


def write(entries: Entries, chosen: Format, path: str, options: SaveOptions, began: float) -> SaveReport:
    """Write entries; whole, or nothing is left.

    Raises
    ------
    ExportError
        For what the system or the format refuses.
    """
    known = entries.known
    pipeline = Pipeline(options)
    with reported(path):
        session, paths, tensors, nbytes = _written(entries, chosen, Target(path, options, pipeline, known))
    aliases = 0 if known is None else len(known) - tensors
    return SaveReport(
        path=path,
        paths=tuple(paths),
        format=chosen.name,
        tensors=tensors + aliases,
        aliases=aliases,
        nbytes=nbytes,
        file_nbytes=sum(map(nbytes_at, paths)),
        seconds=time.perf_counter() - began,
        durable=options.durable,
        io="direct" if session.is_direct else "buffered",
        io_reason=session.reason,
        checksum=options.checksum,
    )


def _written(entries: Entries, chosen: Format, target: Target) -> tuple[Session, list[str], int, int]:
    """Write everything; return the session, the paths, and how many tensors and bytes."""
    session: Session | None = None
    tensors = nbytes = 0
    try:
        session = chosen.begin(target)
        if session.order is not None:
            target.pipeline.total_nbytes = sum(entry.tensor.nbytes for entry in session.order if not entry.alias_of)
        for entry in entries.stream if session.order is None else entries.in_order(session.order):
            session.put(entry)
            tensors += 1
            nbytes += entry.tensor.nbytes
        return session, session.finish(), tensors, nbytes
    except BaseException:
        target.pipeline.close()
        if session is not None:
            session.abort()
        raise
    finally:
        target.pipeline.close()


def nbytes_at(path: str) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    if not os.path.isdir(path):
        return os.path.getsize(path)
    with os.scandir(path) as found:
        return sum(nbytes_at(item.path) if item.is_dir() else item.stat().st_size for item in found)
