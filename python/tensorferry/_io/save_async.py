"""Saves that go on in the background: one thread copies from the sources, another one writes."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, wait
from dataclasses import replace
from typing import Any

from tensorferry import _torch
from tensorferry._io.destinations import Destination, destination_of
from tensorferry._io.entries import Entries, Entry, entries_of
from tensorferry._io.exit import expect, forget, warn_of_loss
from tensorferry._io.format import Format
from tensorferry._io.handover import Handover, require_values_now
from tensorferry._io.noted_future import NotedFuture
from tensorferry._io.options import SaveOptions
from tensorferry._io.registry import format_for
from tensorferry._io.report import SaveReport
from tensorferry._io.save import write
from tensorferry._io.save_handle import SaveHandle
from tensorferry._io.staging import StagingPool
from tensorferry._torch.current_streams import CurrentStreams

__all__ = ["save_async"]

_TO_CLEAN_UP_S = 5.0


def save_async(tree: Any, path: Any, /, *, format: Any = None, dtype: Any = None, **arguments: Any) -> SaveHandle:
    """See :func:`tensorferry.save_async`; `arguments` are those of :class:`SaveOptions`."""
    began = time.perf_counter()
    options = SaveOptions.parse(**arguments)
    chosen = format_for(path, format)
    entries = entries_of(tree, dtype)
    for entry in entries.known or ():
        require_values_now(entry.tensor)
    running = _Running(entries, chosen, destination_of(path, options), began)
    handle = SaveHandle(running.path, running.staged, running.written, running.cancel)
    running.start()
    return handle


class _Running:
    """One such save. Holds no reference to its handle."""

    def __init__(self, entries: Entries, chosen: Format, place: Destination, began: float) -> None:
        self.path = place.path if place.is_local else place.url
        self._place, options = place, place.options
        self.staged: Future[None] = Future()
        self.written: NotedFuture[SaveReport] = NotedFuture()
        self.staged.set_running_or_notify_cancel()
        self._entries, self._chosen, self._began = entries, chosen, began
        self._pool = StagingPool(options.max_staging_nbytes * 3 // 4)
        self._options = replace(options, max_staging_nbytes=max(options.max_staging_nbytes // 4, 16 << 10))
        self._lock = threading.Lock()
        self._is_too_late = self._is_cancelled = False
        self._streams = CurrentStreams(None if entries.known is None else map(_source, entries.known))
        self._stages_here = any(_is_known_to_this_thread_only(entry) for entry in entries.known or ())
        # What is to be staged, in order; None when nothing will be.
        self._work: queue.SimpleQueue[Iterator[Handover] | None] = queue.SimpleQueue()

    def start(self) -> None:
        """Begin; what another thread could not read in order is staged in this one."""
        expect(self)
        _thread(self._write)
        if self._stages_here:
            self._stage()
        else:
            _thread(self._stage)

    def cancel(self) -> bool:
        """See :meth:`SaveHandle.cancel`."""
        with self._lock:
            if self._is_too_late or self.written.done():
                return False
            self._is_cancelled = True
        self._pool.fail(CancelledError())
        return True

    def finish_at_exit(self, seconds: float) -> None:
        """See :class:`Unfinished`."""
        wait([self.written], seconds)
        if not self.written.done():
            self.cancel()
            wait([self.written], _TO_CLEAN_UP_S)
            late = TimeoutError("the interpreter ended before it was written")
            warn_of_loss(f"save_async to {self.path!r}", late)
        elif not self.written.is_noted and (error := self.written.exception()) is not None:
            warn_of_loss(f"save_async to {self.path!r}", error)

    def _write(self) -> None:
        try:
            with self._place as place:
                made = write(self._handed_over(), self._chosen, place.path, self._options, self._began)
                report = place.deliver(made)
        except BaseException as error:  # raised by whoever asks for the result
            self._pool.fail(error)
            self._work.put(None)
            self._end_staging(error)
            self.written.set_exception(error)
        else:
            self.written.set_result(report)
            forget(self)  # but a failure is remembered as long as there is a handle

    def _handed_over(self) -> Entries:
        """Return what the writing thread sees: the same entries, whose values come from the other thread."""
        known, stream = self._entries.known, self._entries.stream
        del self._entries
        if known is None:
            entries: queue.SimpleQueue[Entry | BaseException | None] = queue.SimpleQueue()
            self._work.put(self._made_on_the_way(stream, entries))
            return Entries(None, self._until_the_end(_received(entries)))
        staged, handovers = [], {}
        for entry in known:
            handovers[entry.name] = Handover(self._pool, entry.tensor)
            staged.append(replace(entry, tensor=handovers[entry.name].staged))

        def in_order(order: list[Entry]) -> Iterator[Entry]:
            self._work.put(handovers[entry.name] for entry in order)
            return self._until_the_end(iter(order))

        return Entries(staged, iter(staged), in_order=in_order)

    def _made_on_the_way(self, stream: Iterator[Entry], entries: Any) -> Iterator[Handover]:
        try:
            for entry in stream:
                handover = Handover(self._pool, entry.tensor)
                entries.put(replace(entry, tensor=handover.staged))
                yield handover
        except BaseException as error:
            entries.put(error)
            raise
        entries.put(None)

    def _until_the_end(self, entries: Iterator[Entry]) -> Iterator[Entry]:
        """Yield them; after the last one it is too late to cancel."""
        yield from entries
        with self._lock:
            if self._is_cancelled:
                raise CancelledError
            self._is_too_late = True

    def _stage(self) -> None:
        """Copy everything to memory of ours, or enqueue that."""
        work = self._work.get()
        try:
            if work is not None:
                with self._streams:
                    for handover in work:
                        handover.fill()
        except BaseException as error:
            self._pool.fail(error)
            self._end_staging(error)
            if not isinstance(error, Exception) and self._stages_here:
                raise
        else:
            self._end_staging(None)

    def _end_staging(self, error: BaseException | None) -> None:
        with self._lock:
            if self.staged.done():
                return
            if error is None:
                self.staged.set_result(None)
            else:
                self.staged.set_exception(error)


def _thread(run: Callable[[], None]) -> None:
    threading.Thread(target=run, name="tensorferry save", daemon=True).start()


def _received(entries: Any) -> Iterator[Entry]:
    while (item := entries.get()) is not None:
        if isinstance(item, BaseException):
            raise item
        yield item


def _source(entry: Entry) -> Any:
    return None if entry.tensor.filler is None else entry.tensor.filler.tensor


def _is_known_to_this_thread_only(entry: Entry) -> bool:
    """Is the order of its device's work known by what is current in this thread, and not by torch's streams?"""
    return entry.tensor.is_on_device and not _torch.is_tensor(_source(entry))
