"""The physical limits: what the machine does when it only moves bytes, timed in the same rounds as the candidates."""

from __future__ import annotations

import importlib.util
import operator
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tensorferry._errors import ArgumentError
from tensorferry._native import core
from tensorferry.bench._clock import Loop, bind, loop_over
from tensorferry.bench._device import event_loop, raw_copy_call

__all__ = ["LIMITS", "Limit", "make_limit"]

_SMALL = 256 << 10
_WORTH_THREADS = 4 << 20  # below this, threads of torch wait for each other for longer than they read

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class Limit:
    """One limit, ready to run.

    Attributes
    ----------
    label, code : str
        Its name, and what runs.
    nbytes : int
        Bytes read plus bytes written by a call.
    once : callable
        Makes one call.
    loop : callable
        Makes many and returns the seconds that all of them took.
    finish : callable
        Removes what it left behind.
    """

    label: str
    code: str
    nbytes: int
    once: Callable[[], object]
    loop: Loop
    finish: Callable[[], None] = lambda: None


def make_limit(name: str, nbytes: int, threads: int, folder: str | os.PathLike[str] | None = None) -> Limit:
    """Return the limit `name`.

    Parameters
    ----------
    name : str
        A key of ``LIMITS``.
    nbytes : int
        Bytes read plus bytes written, as the case counts them: a copy of half as many. For "d2h" and "h2d" the bytes
        that cross the link, for "write to disk" those of the file.
    threads : int
    folder : path, optional
        Where files are written; by default the system's folder for temporary files.

    Raises
    ------
    ArgumentError
        When there is no such limit, or no byte to move.
    """
    if name not in LIMITS:
        raise ArgumentError(f"limit={name!r}", "there is no such limit", f"name one of {', '.join(map(repr, LIMITS))}")
    if nbytes < 2:
        raise ArgumentError(f"limit={name!r}, nbytes={nbytes}", "a limit moves bytes", "say how many the case moves")
    return LIMITS[name](nbytes, threads, Path(folder or tempfile.gettempdir()))


def _random_bytes(count: int) -> Bytes:
    block = np.random.default_rng(0).integers(0, 256, min(count, 1 << 24), np.uint8)
    return np.resize(block, count)


def _copy(label: str, non_temporal: bool) -> Callable[[int, int, Path], Limit]:
    def make(nbytes: int, threads: int, _: Path) -> Limit:
        source = _random_bytes(nbytes // 2)
        destination = source[::-1].copy()  # written to, so that its pages are there
        if source.nbytes < _SMALL and not non_temporal:
            # No thread pays at this size, and Python's own memcpy costs a tenth of the call below.
            names = {"setitem": operator.setitem, "everything": slice(None)}
            code = "setitem(destination, everything, source)"
            arrays = {"destination": memoryview(destination), "source": memoryview(source)}  # type: ignore[arg-type]
            bound = bind(code, arrays, names)
        else:
            code = f"raw_copy(destination, source, {non_temporal}, {threads})"
            bound = bind(code, {"destination": destination, "source": source, "raw_copy": core.raw_copy})
        return Limit(label, code, 2 * source.nbytes, bound.once, bound.loop)

    return make


def _read(nbytes: int, threads: int, _: Path) -> Limit:
    source = _random_bytes(-(-nbytes // 8) * 8).view(np.int64)
    call, code = _reader(source, threads)
    return Limit("read", code, source.nbytes, call, loop_over(call))


def _reader(source: np.ndarray[Any, Any], threads: int) -> tuple[Callable[[], object], str]:
    """NumPy reads with one thread; more than one need torch, and its count is set where candidates are compared."""
    if threads > 1 and source.nbytes >= _WORTH_THREADS and importlib.util.find_spec("torch"):
        import torch

        tensor = torch.from_numpy(source)
        return tensor.sum, "int64 tensor.sum()"
    return source.view(np.uint32).max, "uint32 array.max()"


def _write(nbytes: int, _: int, folder: Path) -> Limit:
    block = memoryview(_random_bytes(min(nbytes, 16 << 20)).tobytes())
    handle, name = tempfile.mkstemp(prefix="tensorferry-bench-", dir=folder)
    os.close(handle)

    def write() -> None:
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            left = nbytes
            while left:
                left -= os.write(file, block[:left])
        finally:
            os.close(file)

    return Limit("write to disk", "os.write", nbytes, write, loop_over(write), lambda: Path(name).unlink(True))


def _across_the_link(label: str, to_host: bool) -> Callable[[int, int, Path], Limit]:
    def make(nbytes: int, _: int, __: Path) -> Limit:
        import torch

        call = raw_copy_call(nbytes, to_host)
        return Limit(label, "pinned memory, Tensor.copy_", nbytes, call, event_loop(call, torch.cuda))

    return make


LIMITS: dict[str, Callable[[int, int, Path], Limit]] = {
    "memcpy": _copy("memcpy", False),
    "non-temporal copy": _copy("non-temporal copy", True),
    "read": _read,
    "write to disk": _write,
    "d2h": _across_the_link("d2h", to_host=True),
    "h2d": _across_the_link("h2d", to_host=False),
}
