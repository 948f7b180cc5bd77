"""A future that knows whether anybody was told of its error."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TypeVar

__all__ = ["NotedFuture"]

T = TypeVar("T")


class NotedFuture(Future[T]):
    """A future that runs already.

    Attributes
    ----------
    is_noted : bool
        Did somebody ask for the result, or for the error?
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_noted = False
        self.set_running_or_notify_cancel()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end and return the error, if any."""
        error = super().exception(timeout)
        self.is_noted = True
        return error

    def result(self, timeout: float | None = None) -> T:
        """Wait for the end and return the result, or raise the error."""
        self.exception(timeout)
        return super().result()
