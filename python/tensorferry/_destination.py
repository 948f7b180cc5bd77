"""Checks of a destination (``out=``) before anything is written to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorferry._errors import ArgumentError, BufferMismatchError, DTypeError, ReadOnlyError
from tensorferry._native import core
from tensorferry._take import refuse_array

__all__ = ["agreed_dtype", "refuse_overlap", "require_fit"]


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
    return found


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
    """Raise when source and destination may share bytes; compares the address ranges they span."""
    if source.no_memory:
        return
    (low, high), (source_low, source_high) = (_address_range(s) for s in (destination, source))
    if max(low, source_low) < min(high, source_high):
        raise BufferMismatchError(
            f"out of shape {tuple(destination.shape)} and dtype {destination.dtype}",
            "it overlaps the source, whose values would change while they are read",
            "pass other memory",
        )


def _address_range(source: core.Source) -> tuple[int, int]:
    low, high = source.layout_facts()["span"]
    return source.address + low, source.address + high
