"""What ``save_async`` returns."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout

from tensorferry._errors import TransferTimeout
from tensorferry._io.exit import warn_of_loss
from tensorferry._io.noted_future import NotedFuture
from tensorferry._io.report import SaveReport

__all__ = ["SaveHandle"]


class SaveHandle:
    """A save that goes on in the background. Any thread.

    Dropping the handle lets the save go on; an error that nobody asked for becomes a ``FerryWarning`` then. At the end
    of the interpreter saves that go on get 60 seconds in all; one that needs more is given up, and nothing appears.

    Attributes
    ----------
    path : str
        Where it goes.
    staged : concurrent.futures.Future
        Done when the sources may change: every value is in the file, in memory of ours, or enqueued on its device.
        Its result is None; it gets the error of a save that failed before.
    written : concurrent.futures.Future
        Done when the file is there; its result is the :class:`SaveReport`.
    """

    def __init__(
        self, path: str, staged: Future[None], written: NotedFuture[SaveReport], cancel: Callable[[], bool]
    ) -> None:
        self.path = path
        self.staged = staged
        self.written: Future[SaveReport] = written
        self._cancel = cancel
        weakref.finalize(self, _when_dropped, written, path).atexit = False

    def result(self, timeout: float | None = None) -> SaveReport:
        """Wait for the file.

        Parameters
        ----------
        timeout : float, optional
            Seconds.

        Raises
        ------
        TransferTimeout
            When the time is up; the save goes on.
        concurrent.futures.CancelledError
            After :meth:`cancel`.
        FerryError
            What :func:`tensorferry.save` would have raised.
        """
        try:
            return self.written.result(timeout)
        except (FutureTimeout, TimeoutError):
            if self.written.done():
                raise
            raise TransferTimeout(
                f"result(timeout={timeout})",
                f"{self.path} is not written yet, which goes on",
                "wait longer, ask written.done(), or cancel()",
            ) from None

    def cancel(self) -> bool:
        """Give the save up, and leave the path as it was; False when it is too late for that."""
        return self._cancel()

    def __repr__(self) -> str:
        state = "written" if self.written.done() else "staged" if self.staged.done() else "running"
        return f"<SaveHandle of {self.path!r}: {state}>"


def _when_dropped(written: NotedFuture[SaveReport], path: str) -> None:
    def tell(future: Future[SaveReport]) -> None:
        if isinstance(future, NotedFuture) and not future.is_noted:
            error = future.exception()
            if error is not None:
                warn_of_loss(f"save_async to {path!r}", error)

    written.add_done_callback(tell)
