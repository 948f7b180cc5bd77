"""Checks of a destination (``out=``) before anything is written to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorferry._convert.region import Region, meet, region_of_source
from tensorferry._convert.take import refuse_array
from tensorferry._errors import ArgumentError, BufferMismatchError, DTypeError, ReadOnlyError
from tensorferry._native import core

__all__ = ["agreed_dtype", "refuse_overlap", "require_agreement", "require_fit", "require_separate"]


# Candidate solutions that NumPy may try to tell interleaved memory from shared memory (see numpy.shares_memory).
_MAX_WORK = 10_000


def _source_of(out: Any) -> core.Source:
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        raise ArgumentError(
            f"out of type {type(out).__name__}", "only a plain ndarray can be filled", "pass a numpy.ndarray"
        )
    try:
        return core.Source.from_array(out)
    except DTypeError:
        raise refuse_array(out, "a tensor") from None


def agreed_dtype(out: Any, wanted: str, asked: object) -> str:
    """The destination's dtype wins, and must agree with ``dtype=``."""
    found = _source_of(out).dtype
    require_agreement(found, wanted, asked)
    return found


def require_agreement(found: str, wanted: str, asked: object) -> None:
    """Raise when a destination of dtype `found` contradicts ``dtype=``."""
    if wanted == "bits":
        raise ArgumentError(
            'out= with dtype="bits"', "a destination has its own dtype", "pass a view of the source's bits instead"
        )
    if asked is not None and wanted not in ("keep", "numpy", found):
        raise BufferMismatchError(
            f"out of dtype {found} with dtype={wanted}",
            "the two disagree",
            "leave dtype out: the destination's dtype is used",
        )


def require_fit(out: np.ndarray[Any, Any], source: core.Source, decision: core.Decision) -> None:
    """Raise unless `out` can be filled with what `decision` makes of `source`."""
    given = f"out of shape {out.shape} and dtype {out.dtype}"
    if out.shape != decision.shape:
        raise BufferMismatchError(
            given, f"the result has shape {decision.shape}", f"pass an array of shape {decision.shape}"
        )
    if not out.flags.writeable:
        raise ReadOnlyError(given, "it is read-only", "pass a writable array")
    destination = _source_of(out)
    if destination.layout_facts()["may_overlap_itself"]:
        raise BufferMismatchError(
            given, "its elements overlap each other", "pass an array without broadcast or overlapping strides"
        )
    refuse_overlap(destination, source)


def refuse_overlap(destination: core.Source, source: core.Source) -> None:
    """Raise when source and destination share bytes, or when that cannot be told with little work."""
    if meet(region_of_source(destination), region_of_source(source), max_work=_MAX_WORK):
        raise BufferMismatchError(
            f"out of shape {tuple(destination.shape)} and dtype {destination.dtype}",
            "it overlaps the source, whose values would change while they are read",
            "pass other memory",
        )


def require_separate(pairs: list[tuple[Any, core.Source | None]]) -> None:
    """Raise when a destination of a nest overlaps another destination, or another leaf's source."""
    written = [region_of_source(_source_of(out)) for out, _ in pairs if out is not None]
    read = [region_of_source(source) for _, source in pairs if source is not None]
    regions = [(region, True) for region in written] + [(region, False) for region in read]
    active: list[tuple[Region, bool]] = []  # those that reach beyond the present one's beginning
    for region, is_written in sorted(regions, key=lambda pair: pair[0].bounds()[0]):
        active = [other for other in active if other[0].bounds()[1] > region.bounds()[0]]
        for other, other_is_written in active:
            if (is_written or other_is_written) and meet(region, other, max_work=_MAX_WORK):
                raise BufferMismatchError(
                    "a nest of destinations",
                    "one of them overlaps another, or the source of another leaf",
                    "give each leaf memory of its own",
                )
        active.append((region, is_written))
