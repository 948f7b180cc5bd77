"""Shows on stderr how far a save is: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tensorferry._units import human_bytes, human_seconds
from tensorferry.cli import _output

__all__ = ["shown"]

_LINE_EVERY_S = 10.0

Progress = Callable[[int, "int | None"], object]


@contextmanager
def shown(total: int | None) -> Iterator[Progress]:
    """Give what ``progress=`` of ``save`` takes.

    Parameters
    ----------
    total : int or None
        Bytes that will be written, where that is known.
    """
    from rich.console import Console

    console = Console(file=sys.stderr, markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        yield _Lines(total).wrote
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn())
    with Bar(TextColumn("{task.description}"), *columns, console=console, transient=True) as bar:
        task = bar.add_task("writing", total=total)

        def wrote(done: int, _: int | None) -> None:
            bar.update(task, completed=done)

        yield wrote


class _Lines:
    """Says a line every ten seconds, so that a log stays short."""

    def __init__(self, total: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._total = total
        self._clock = clock
        self._began = self._said = clock()

    def wrote(self, done: int, _: int | None) -> None:
        now = self._clock()
        if now - self._said < _LINE_EVERY_S:
            return
        self._said = now
        rate = done / (now - self._began)
        text = f"writing: {human_bytes(done)}"
        if self._total:
            left = max(0.0, (self._total - done) / rate) if rate else 0.0
            text += f" of {human_bytes(self._total)}, {human_seconds(left)} left"
        _output.progress(f"{text}, {human_bytes(rate)}/s")
