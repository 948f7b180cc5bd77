"""Writers on an operating system of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorferry as ferry
from tensorferry._io.options import SaveOptions
from tensorferry._io.system import System
from tensorferry._io.writer import WriterThread

__all__ = ["fail_within", "writer_on"]


def writer_on(system: System, path: Any, *, mode: str = "create", **arguments: Any) -> ferry.Writer:
    """Return a Writer whose calls of the system go to `system`."""
    made = ferry.Writer.__new__(ferry.Writer)
    made._thread = WriterThread(path, None, mode, None, SaveOptions.parse(system=system, **arguments))
    return made


def fail_within(writer: ferry.Writer, use: Callable[[ferry.Writer], object]) -> None:
    """Use a writer as a context manager, and raise ``ZeroDivisionError`` inside."""
    with writer:
        use(writer)
        raise ZeroDivisionError
