"""Settings of the whole process: what they may be, and what held before."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from tensorferry._errors import ArgumentError
from tensorferry._memory.pool import as_nbytes
from tensorferry._native import core
from tensorferry._transfer.background import background as internal_thread
from tensorferry._transfer.limits import change_limits

__all__ = ["RestoredOptions", "options"]


class RestoredOptions:
    """Brings back, at the end of a ``with`` block, the options that held before."""

    def __init__(self, restore: list[Callable[[], object]]) -> None:
        self._restore = restore

    def __enter__(self) -> None:
        """The options hold already."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Set the options that held before."""
        for restore in reversed(self._restore):
            restore()


def options(
    *,
    host_pool_nbytes: Any = None,
    pinned_nbytes: Any = None,
    ring_nbytes: Any = None,
    staging_nbytes: Any = None,
    background: Any = None,
) -> RestoredOptions:
    """See :func:`tensorferry.options`."""
    # Everything is checked before anything changes.
    pool = None if host_pool_nbytes is None else as_nbytes("host_pool_nbytes", host_pool_nbytes)
    given = {"pinned_nbytes": pinned_nbytes, "ring_nbytes": ring_nbytes, "staging_nbytes": staging_nbytes}
    limits = {name: as_nbytes(name, value) for name, value in given.items() if value is not None}
    if background is not None and not isinstance(background, bool):
        raise ArgumentError(
            f"background={background!r}", "the internal thread is on or off", "pass background=True or False"
        )
    restore: list[Callable[[], object]] = []
    if pool is not None:
        pool_before = core.set_pool_limit(pool)
        restore.append(lambda: core.set_pool_limit(pool_before))
    if limits:
        limits_before = change_limits(limits)
        restore.append(lambda: change_limits(limits_before))
    if background is not None:
        background_before = internal_thread.switch(background)
        restore.append(lambda: internal_thread.switch(background_before))
    return RestoredOptions(restore)
