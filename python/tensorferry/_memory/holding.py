"""Pinned memory that work of others may still touch."""

from __future__ import annotations

from typing import Any

from tensorferry._convert.take import take
from tensorferry._device.streams import number_of
from tensorferry._errors import ArgumentError
from tensorferry._native import core

__all__ = ["hold"]


def hold(array: Any, stream: Any, pool: core.PinnedPool | None = None) -> None:
    """See :func:`tensorferry.hold`; with a pool, for its arrays only."""
    number = number_of(stream)
    taken = take(array, move=False)
    source = taken.source
    if (
        source is not None
        and taken.moved_from is None
        and (core.hold(source, pool, number, _device_of(stream)) or core.is_pinnable(source))
    ):
        return  # no device touches ordinary memory after the call that it was given to
    given = f"hold() of {source.summary()}" if source is not None else f"hold() of a {type(array).__name__}"
    raise ArgumentError(
        given,
        "its memory was lent by no pool of pinned memory" if pool is None else "its memory was not lent by this pool",
        "keep the array until that work is done",
    )


def _device_of(stream: Any) -> int | None:
    """Return the device of a stream object, which says whose default stream it means; None where it does not tell."""
    device = getattr(stream, "device_id", None)
    if device is None:
        device = getattr(getattr(stream, "device", None), "index", None)
    return device if isinstance(device, int) and device >= 0 else None
