"""The thread behind a ``Writer``: who gives tensors waits only until they are staged."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tensorferry._errors import ArgumentError
from tensorferry._io.destinations import destination_of
from tensorferry._io.entries import Entry
from tensorferry._io.exit import expect, forget, warn, warn_of_loss
from tensorferry._io.failures import refused, reported
from tensorferry._io.format import Target
from tensorferry._io.handover import Handover
from tensorferry._io.options import SaveOptions
from tensorferry._io.pipeline import Pipeline
from tensorferry._io.report import SaveReport
from tensorferry._io.rows import Rows, described
from tensorferry._io.save import nbytes_at
from tensorferry._io.staging import StagingPool
from tensorferry._io.writer_backends import begin

__all__ = ["WriterThread"]


@dataclass(frozen=True)
class _Job:
    run: Callable[[], Any]
    done: Future[Any] | None = None
    always: bool = False  # also after an error


class WriterThread:
    """What a ``Writer`` does; it does not know that object, so that it notices when nobody has it any more.

    Parameters
    ----------
    path, format, mode, dtype
        As for :class:`tensorferry.Writer`.
    options : SaveOptions
        How to write.

    Attributes
    ----------
    path : str
        Absolute.
    """

    def __init__(self, path: Any, format: Any, mode: Any, dtype: Any, options: SaveOptions) -> None:
        if mode not in ("create", "append"):
            raise ArgumentError(f"mode={mode!r}", "that is no choice for this argument", 'pass "create" or "append"')
        self._began = time.perf_counter()
        self._goes_on = mode == "append"
        self._place = place = destination_of(path, options, resume=mode == "append")
        self.path = place.path if place.is_local else place.url
        self._dtype = dtype
        self._options = options = place.options
        self._pool = StagingPool(options.max_staging_nbytes // 2)
        inner = replace(options, max_staging_nbytes=max(options.max_staging_nbytes // 2, 16 << 10))
        self._pipeline = Pipeline(inner)
        target = Target(place.path, inner, self._pipeline, None)
        try:
            with reported(place.path):
                self._backend = begin(path, format, target, resume=mode == "append")
        except BaseException:
            place.close()
            raise
        self._names = set(self._backend.names)
        self.rows = Rows(self.path, self._backend.takes_rows, self._backend.kinds)
        self._giving = threading.RLock()  # one tensor at a time: two half staged ones could wait for each other
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._error: BaseException | None = None
        self._end: Future[Any] | None = None
        self._is_over = self._is_told = False
        self._tensors = self._nbytes = 0
        expect(self)

    def put(self, name: Any, x: Any) -> None:
        """See :meth:`tensorferry.Writer.put`."""
        if not isinstance(name, str):
            raise ArgumentError(f"the name {name!r}", "a tensor's name is text", "pass a str")
        with self._giving:
            self._require_open()
            if name in self._names or name in self.rows.kinds:
                raise ArgumentError(f"a second tensor named {name!r}", "a name stands for one tensor", "rename one")
            tensor = described(name, x, self._dtype)
            self._names.add(name)
            handover = Handover(self._pool, tensor)
            self._give(partial(self._backend.put, Entry(name, handover.staged)), [handover])
            self._tensors += 1
            self._nbytes += tensor.nbytes

    def append(self, batch: Any, name: Any) -> None:
        """See :meth:`tensorferry.Writer.append`."""
        with self._giving:
            self._require_open()
            columns = self.rows.columns_of(batch, name)
            clash = next((column for column in columns if column in self._names), None)
            if clash is not None:
                raise ArgumentError(f"rows for {clash!r}", "a whole tensor has that name", "use another name")
            for part in self.rows.parts(columns, self._dtype, self._pool.block_nbytes):
                handovers = {column: Handover(self._pool, tensor) for column, tensor in part.items()}
                staged = {column: handover.staged for column, handover in handovers.items()}
                self._give(partial(self._backend.append, staged), list(handovers.values()))
                self.rows.count(part)
                self._nbytes += sum(tensor.nbytes for tensor in part.values())

    def flush(self) -> None:
        """See :meth:`tensorferry.Writer.flush`."""
        with self._giving:
            self._require_open()
            done: Future[Any] = Future()
            self._send(_Job(self._backend.flush, done))
        self._wait_for(done)

    def close(self) -> SaveReport:
        """See :meth:`tensorferry.Writer.close`."""
        with self._giving:
            failed = self._error if self._end is None and self._pid == os.getpid() else None
            if self._end is None and failed is None:
                self._require_open()
                self._end = Future()
                self._send(_Job(self._finish, self._end))
                self._jobs.put(None)
            end = self._end
        if end is None:
            assert failed is not None
            self._is_told = True
            self.abort()
            raise failed
        report: SaveReport = self._wait_for(end)
        return report

    def abort(self) -> None:
        """See :meth:`tensorferry.Writer.abort`."""
        if self._pid != os.getpid():
            return
        if self._goes_on:
            self._drain()
        self._fail(refused(self.path, "the writer was given up", "begin a new one"))
        with self._giving:
            self._jobs.put(None)
        if self._thread is not None:
            self._thread.join()
        self._give_up()

    def _drain(self) -> None:
        """Wait until the rows that were given are written: they are to be kept."""
        with self._giving:
            if self._thread is None or self._is_over or self._end is not None:
                return
            done: Future[Any] = Future()
            self._send(_Job(lambda: None, done, always=True))
        done.result()

    def when_dropped(self) -> None:
        """Nobody has the writer any more: end it behind what was given, and say so. Does not wait."""
        if self._is_over or self._pid != os.getpid():
            return
        if self._thread is None:
            self._leave()
        else:
            self._jobs.put(_Job(self._leave, always=True))
            self._jobs.put(None)

    def finish_at_exit(self, seconds: float) -> None:
        """See :class:`Unfinished`."""
        left: Future[Any] = Future()
        if self._is_over or self._pid != os.getpid():
            return
        if self._thread is None:
            self._leave()
            return
        self._jobs.put(_Job(self._leave, left, always=True))
        wait([left], seconds)
        if not left.done():
            late = TimeoutError("the interpreter ended before everything was written")
            warn_of_loss(f"a Writer of {self.path!r}", late)

    def _give(self, write: Callable[[], None], handovers: list[Handover]) -> None:
        self._send(_Job(write))
        try:
            for handover in handovers:
                handover.fill()
        except BaseException as error:
            self._is_told = True
            self._fail(error)
            raise

    def _send(self, job: _Job) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="tensorferry writer", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def _require_open(self) -> None:
        if self._pid != os.getpid():
            raise refused(self.path, "its writer belongs to the parent process", "make a writer in this process")
        if self._error is not None:
            self._is_told = True
            raise self._error
        if self._end is not None or self._is_over:
            raise refused(self.path, "its writer is closed", 'go on with Writer(path, mode="append")')

    def _wait_for(self, done: Future[Any]) -> Any:
        try:
            return done.result()
        except BaseException:
            if self._error is not None:
                self._is_told = True
                self.abort()
            raise

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._pool.fail(self._error)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            result: Any = None
            if self._error is None or job.always:
                try:
                    with reported(self._place.path):
                        result = job.run()
                except BaseException as error:
                    self._fail(error)
            if job.done is not None and (self._error is None or job.always):
                job.done.set_result(result)
            elif job.done is not None:
                job.done.set_exception(self._error)
            del job

    def _give_up(self) -> None:
        if not self._is_over:
            self._pipeline.close()
            self._backend.abort()
            self._note_end()

    def _leave(self) -> None:
        """End without :meth:`close`, which nobody will call any more."""
        if self._is_over:
            return
        keeps = self._backend.keeps_rows and self._place.is_local
        kept = "rows that are whole are kept" if keeps else "nothing was written"
        self._backend.leave()
        self._pipeline.close()
        self._note_end()
        if self._error is None:
            warn(f"a Writer of {self.path!r} was never closed: {kept}")
        elif not self._is_told:
            warn_of_loss(f"a Writer of {self.path!r}", self._error)

    def _note_end(self) -> None:
        self._is_over = True
        self._place.close()
        forget(self)

    def _finish(self) -> SaveReport:
        paths = self._backend.finish()
        self._pipeline.close()
        report = self._place.deliver(self._report(paths))
        self._note_end()
        return report

    def _report(self, paths: list[str]) -> SaveReport:
        return SaveReport(
            path=self._place.path,
            paths=tuple(paths),
            format=self._backend.format,
            tensors=self._tensors + len(self.rows.kinds),
            aliases=0,
            nbytes=self._nbytes,
            file_nbytes=sum(map(nbytes_at, paths)),
            seconds=time.perf_counter() - self._began,
            durable=self._options.durable,
            io="direct" if self._backend.is_direct else "buffered",
            io_reason=self._backend.reason,
            checksum=self._options.checksum,
        )
