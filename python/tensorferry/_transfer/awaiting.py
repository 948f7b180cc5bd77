"""``await transfer`` under asyncio, by public functions of the loop alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tensorferry._errors import ArgumentError
from tensorferry._transfer.background import background

if TYPE_CHECKING:
    import asyncio

    from tensorferry._transfer.transfer import Transfer

__all__ = ["awaited"]

T = TypeVar("T")

# What takes longer than some tens of microseconds does not belong in a loop's thread.
_MOST_NBYTES_IN_LOOP = 256 << 10

# With the internal thread its call wakes the loop, and asking is for the case that it is switched off meanwhile.
_PAUSE_S = 0.1
_FIRST_PAUSE_WITHOUT_THREAD_S, _LONGEST_PAUSE_WITHOUT_THREAD_S = 0.0005, 0.01


def awaited(transfer: Transfer[T]) -> Generator[Any, None, T]:
    """Yield to the running loop until the result is there, and return it."""
    loop = _running_loop()
    pause_s = _FIRST_PAUSE_WITHOUT_THREAD_S
    while not transfer._arrival.ask():
        waiter = loop.create_future()
        key = transfer._arrival.call_when_done(partial(_wake, loop, waiter))
        timer = loop.call_later(_PAUSE_S if background.on else pause_s, _set, waiter)
        try:
            yield from waiter.__await__()
        finally:
            timer.cancel()
            transfer._arrival.forget(key)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_WITHOUT_THREAD_S)
    in_loop = transfer._known_stats.nbytes <= _MOST_NBYTES_IN_LOOP
    # The last step may copy on the host, or be under way in another thread.
    if not (transfer._is_settled() or (in_loop and transfer._settle(time.monotonic()))):
        yield from loop.run_in_executor(None, transfer._settle, None).__await__()
    return transfer.result()


def _wake(loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody waits there any more
        loop.call_soon_threadsafe(_set, waiter)


def _set(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _running_loop() -> asyncio.AbstractEventLoop:
    import asyncio

    library = _library_in_charge()
    if library == "asyncio":
        try:
            return asyncio.get_running_loop()
        except RuntimeError:
            library = ""
    raise ArgumentError(
        f"await of a Transfer under {library}" if library else "await of a Transfer",
        "only a running asyncio loop can be told of its end",
        "write await trio.to_thread.run_sync(transfer.result)" if library else "await it in a coroutine of asyncio",
    )


def _library_in_charge() -> str:
    # Trio says by sniffio that it runs, also as a guest in asyncio's loop.
    sniffio = sys.modules.get("sniffio")
    if sniffio is None:
        return "asyncio"
    try:
        return str(sniffio.current_async_library())
    except sniffio.AsyncLibraryNotFoundError:
        return "asyncio"
