"""Values that were taken from a device and are not on the host yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tensorferry._errors import TransferTimeout

if TYPE_CHECKING:
    from tensorferry._transfer.transfer import Transfer

__all__ = ["Awaited", "AwaitedTransfer", "OnTheWay"]


class Awaited(Protocol):
    """Work on a device, as the native side or a transfer shows it. Any thread may ask."""

    def done(self) -> bool:
        """Is it done? Never waits; raises what the device answered."""

    def wait(self, timeout: float | None) -> bool:
        """Wait without the GIL; False when the time is up. Raises as ``done``."""


class AwaitedTransfer:
    """A transfer as work on a device."""

    def __init__(self, transfer: Transfer[Any]) -> None:
        self._transfer = transfer

    def done(self) -> bool:
        """Is it done?"""
        return self._transfer.done()

    def wait(self, timeout: float | None) -> bool:
        """Wait for it; its error is raised by its result."""
        try:
            self._transfer.exception(timeout)
        except TransferTimeout:
            return False
        return True


class OnTheWay:
    """Named values that come together.

    Parameters
    ----------
    names : sequence of str
        Of the values, in their order.
    pending : Awaited or None
        What has to be done first; nothing any more once it was read.
    read : callable
        Gives the values once that is done; called once.
    """

    __slots__ = ("_read", "names", "pending")

    def __init__(self, names: Sequence[str], pending: Awaited | None, read: Callable[[], Sequence[Any]]) -> None:
        self.names = names
        self.pending = pending
        self._read = read

    def done(self) -> bool:
        """Are the values there, or is it known that they never come? Never waits and never raises."""
        try:
            return self.pending is None or self.pending.done()
        except Exception:
            return True  # read() says why

    def wait(self, deadline: float | None) -> bool:
        """Wait for the values or their error; False when the time is up."""
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            return self.pending is None or self.pending.wait(left)
        except Exception:
            return True

    def read(self) -> Sequence[Any]:
        """Return the values. Raises what the device answered."""
        if self.pending is not None:
            self.pending.wait(None)
            self.pending = None
        return self._read()
