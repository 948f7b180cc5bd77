"""Threads that write the files of one save side by side: the system lets one thread at a time write to a file."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import Any, TypeVar

from tensorferry._io.entries import Entry
from tensorferry._io.format import Target
from tensorferry._io.pipeline import Pipeline
from tensorferry._native import core

__all__ = ["FileWorkers"]

T = TypeVar("T")

_MOST_THREADS = 8  # more of them wait for the lock of the folder, and for memory
_WAITING_FOR_EACH = 8
_REPORTING_S = 0.1
_WORTH_A_THREAD_NBYTES = 256 << 10  # smaller files take longer so, as the threads wait for each other in Python
_LARGE_NBYTES = 1 << 30  # all threads are used for that much


class FileWorkers:
    """Threads that write files from memory, a whole file each; as many as torch uses, and eight at most.

    Jobs get a target with a pipeline of their own, which neither has blocks nor threads: what needs those is for the
    calling thread. Progress is reported, and results are taken, in the calling thread.

    Parameters
    ----------
    target : Target
        Of the whole save.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._most = min(core.threads_for(_LARGE_NBYTES), _MOST_THREADS)
        self._threads: list[threading.Thread] = []
        self._targets: list[Target] = []
        self._jobs: queue.SimpleQueue[tuple[Future[tuple[Any, int]], Callable[[Target], Any]] | None]
        self._jobs = queue.SimpleQueue()
        self._begun: deque[tuple[Future[tuple[Any, int]], Callable[[Any], None]]] = deque()
        self._finished_nbytes = self._reported_nbytes = 0

    def takes(self, entries: Sequence[Entry]) -> bool:
        """May a file of these tensors be left to a thread, and is it faster so?

        They have to lie in memory and to stay there until the save ends. A durable save is bound by the disk, and
        writes its files one after the other.
        """
        if self._most < 2 or self._target.options.durable or self._target.known is None:
            return False
        in_memory = all(entry.tensor.memory is not None for entry in entries)
        return in_memory and sum(entry.tensor.nbytes for entry in entries) >= _WORTH_A_THREAD_NBYTES

    def run(self, job: Callable[[Target], T], done: Callable[[T], None]) -> None:
        """Let `job` run in a thread, and give `done` its result in this one, in the order of the jobs.

        Raises
        ------
        Exception
            What an earlier job raised, or its `done`.
        """
        if not self._targets:
            self._begin()
        while len(self._begun) >= _WAITING_FOR_EACH * self._most:
            self._finish_first()
        future: Future[tuple[T, int]] = Future()
        self._begun.append((future, done))
        self._jobs.put((future, job))
        if not self._threads:
            self._jobs.put(None)
            self._serve(self._targets[0])

    def finish(self) -> None:
        """Wait for all jobs; raises as :meth:`run` does."""
        while self._begun:
            self._finish_first()
        self.close()

    def close(self) -> None:
        """Let the threads end, after the jobs that run; those that wait are dropped. Never raises."""
        for future, _ in self._begun:
            future.cancel()
        self._begun.clear()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _begin(self) -> None:
        """Start the threads, none where the interpreter ends or the system has no more: then the caller does it all."""
        options = replace(self._target.options, progress=None)
        for _ in range(self._most):
            target = replace(self._target, pipeline=Pipeline(options, has_thread=False))
            self._targets.append(target)
            thread = threading.Thread(target=self._serve, args=(target,), name="tensorferry-files", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                break
            self._threads.append(thread)

    def _serve(self, target: Target) -> None:
        while (item := self._jobs.get()) is not None:
            future, job = item
            if not future.set_running_or_notify_cancel():
                continue
            before = target.pipeline.written_nbytes
            try:
                result = job(target)
            except BaseException as error:  # raised again in the calling thread
                future.set_exception(error)
            else:
                future.set_result((result, target.pipeline.written_nbytes - before))
            del item, future, job  # which hold memory of the caller

    def _finish_first(self) -> None:
        future, done = self._begun.popleft()
        while not future.done():
            if wait([future], _REPORTING_S).not_done:
                self._report(sum(target.pipeline.written_nbytes for target in self._targets))
        result, nbytes = future.result()
        self._finished_nbytes += nbytes
        self._report(self._finished_nbytes)
        done(result)

    def _report(self, written_nbytes: int) -> None:
        if written_nbytes > self._reported_nbytes:
            self._target.pipeline.wrote(written_nbytes - self._reported_nbytes)
            self._reported_nbytes = written_nbytes
