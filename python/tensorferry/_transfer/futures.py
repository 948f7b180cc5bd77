"""A transfer as a concurrent.futures.Future, for code that takes nothing else."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from tensorferry._transfer.once import Value

if TYPE_CHECKING:
    from tensorferry._transfer.transfer import Transfer

__all__ = ["future_of"]

T = TypeVar("T")


class _TransferFuture(Future[T]):
    """Counts the transfer's error as delivered once it was asked for here."""

    def __init__(self, transfer: Transfer[T]) -> None:
        super().__init__()
        self._transfer = transfer

    def exception(self, timeout: float | None = None) -> BaseException | None:
        error = super().exception(timeout)
        self._transfer._note_delivery()
        return error

    def result(self, timeout: float | None = None) -> T:
        self.exception(timeout)
        return super().result()


def future_of(transfer: Transfer[T]) -> Future[T]:
    """Return a future, running already, that gets what the transfer brings."""
    future = _TransferFuture(transfer)
    future.set_running_or_notify_cancel()
    transfer._arrival.call_when_done(partial(_complete, future, transfer))
    return future


def _complete(future: _TransferFuture[T], transfer: Transfer[T]) -> None:
    try:
        kept = transfer._outcome()
    except BaseException as interrupt:
        future.set_exception(interrupt)  # nobody may wait for ever
        raise
    if isinstance(kept, Value):
        future.set_result(kept.value)
    else:
        future.set_exception(kept.error)
