"""What a transfer asks of the native side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

__all__ = ["Pending"]


class Pending(Protocol):
    """Work on a device that was enqueued together. Any thread may call."""

    def done(self) -> bool:
        """Is it done? Never waits; raises what the device answered."""

    def wait(self, timeout: float | None) -> bool:
        """Wait at most `timeout` seconds, without the GIL; False when the time is up. Raises as ``done`` does."""

    def add_callback(self, call: Callable[[], None]) -> None:
        """Call once when it is done or has failed: from the internal thread, from ``reap``, or at once.

        Keeps `call` until then, and itself alive as far as that needs.
        """
