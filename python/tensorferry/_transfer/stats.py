"""The figures of one transfer."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TransferStats"]


@dataclass(frozen=True)
class TransferStats:
    """What a transfer moved, how, and how long callers waited for it. Times are seconds of ``time.monotonic()``.

    Attributes
    ----------
    nbytes : int
        Bytes that the device moves.
    driver_copies : int
        How many copies the driver was given.
    snapshot : bool
        Was the value first copied on the device, so that the producer's stream need not wait for the link?
    enqueued_at : float
        When the transfer was handed to the device.
    finished_at : float or None
        When the host learned that the device was done or had failed; None while it has not. Asking ``done``, waiting
        and the internal thread all teach it.
    wait_s : float
        Seconds that callers have spent in ``result`` and ``exception``, all threads together.
    launches : int
        How many kernels of ours were launched, to pack, cast, gather or store.
    """

    nbytes: int
    driver_copies: int
    snapshot: bool
    enqueued_at: float
    finished_at: float | None = None
    wait_s: float = 0.0
    launches: int = 0
