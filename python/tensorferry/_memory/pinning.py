"""Memory that others own, pinned for a while."""

from __future__ import annotations

import time
import weakref
from types import TracebackType
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert.region import region_of_source
from tensorferry._convert.take import is_array_like, take
from tensorferry._errors import ArgumentError, DeviceError, LayoutError
from tensorferry._memory.torch_state import torch_device
from tensorferry._native import core
from tensorferry._nest import is_nest

__all__ = ["Pinned", "pinned"]

_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 20e-6, 1e-3
_PATIENCE_S = 1.0  # with work that will never be done, since its device is lost


class Pinned:
    """Keeps memory of others pinned until it is closed, or gone.

    Attributes
    ----------
    nbytes : int
        Bytes of the arrays; the pages around them are pinned, too.
    closed : bool
        Was it closed?
    """

    def __init__(self, pin: core.Pin, nbytes: int) -> None:
        self.nbytes = nbytes
        self._pin = pin
        self._finalizer = weakref.finalize(self, pin.close)
        self._finalizer.atexit = False  # a process that ends unregisters nothing

    def __enter__(self) -> Pinned:
        """The memory is pinned already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """See :meth:`close`."""
        self.close()

    def __repr__(self) -> str:
        return f"<Pinned: {self.nbytes:,} bytes{', closed' if self.closed else ''}>"

    @property
    def closed(self) -> bool:
        """Was it closed?"""
        return not self._finalizer.alive

    def close(self) -> None:
        """Unregister the memory, after waiting for tensorferry's own transfers to or from it. Again: does nothing.

        Pages that other arrays share, which are pinned too, stay until those are closed.
        """
        if not self.closed:
            _wait_until_unused(self._pin)
            self._finalizer()


def pinned(*arrays: Any) -> Pinned:
    """See :func:`tensorferry.pinned`."""
    taken = [_memory_of(x) for x in arrays]
    sources = [source for source, _ in taken]
    made = core.pin(sources, [kept for _, kept in taken], torch_device())
    return Pinned(made, sum(_nbytes(source) for source in sources))


def _wait_until_unused(pin: core.Pin) -> None:
    pause, waited, given_up = _SHORTEST_PAUSE_S, 0.0, 0.0
    while pin.in_use:
        core.reap()
        pending, abandoned = core.retired_work()
        given_up = 0.0 if pending else given_up
        if given_up > _PATIENCE_S / 10 or (abandoned and waited > _PATIENCE_S):
            return  # the registrations stay for as long as something needs them
        time.sleep(pause)
        waited, given_up = waited + pause, given_up + pause
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def _nbytes(source: core.Source) -> int:
    low, high = region_of_source(source).bounds()
    return 0 if region_of_source(source).is_empty else high - low


def _memory_of(x: Any) -> tuple[core.Source, Any]:
    """Return a description of the memory, and what keeps it there, of its size."""
    if is_nest(x):
        raise ArgumentError(
            f"pinned() of a {type(x).__name__}", "it is a nest", "pass its arrays one by one: pinned(*x)"
        )
    if _torch.is_tensor(x) and x.device.type != "cpu":
        raise DeviceError(
            f"pinned() of a tensor on {x.device}", "only host memory can be pinned", "leave it out: it is fast already"
        )
    if not is_array_like(x) and (export := _export_of(x)) is not None:
        x = np.frombuffer(export, np.uint8)  # such as a mmap
    taken = take(x, move=False)
    source = taken.source
    if taken.moved_from is not None:
        raise DeviceError(
            f"pinned() of a tensor on {taken.moved_from}", "only host memory can be pinned", "leave it out"
        )
    if source is None:
        assert isinstance(taken.array, np.ndarray)
        source = _as_bytes(taken.array)
    if not source.layout_facts()["dense"]:
        raise LayoutError(
            f"pinned() of {source.summary()} with gaps between its elements",
            "all memory in between would be locked, and it is not the array's",
            "pin the array that it is a view of",
        )
    return source, (source, x, _export_of(x))


def _as_bytes(x: np.ndarray[Any, Any]) -> core.Source:
    """Describe an array of a dtype that only NumPy has."""
    if x.dtype.hasobject or not (x.flags.c_contiguous or x.flags.f_contiguous):
        raise LayoutError(
            f"pinned() of a {x.shape} {x.dtype} array",
            "its elements are Python objects" if x.dtype.hasobject else "its elements do not fill one block",
            "copy it into one of ferry.empty_pinned(...)",
        )
    flat = x.T if x.flags.f_contiguous and not x.flags.c_contiguous else x
    return core.Source.from_array(flat.reshape(-1).view(np.uint8))


def _export_of(x: Any) -> memoryview | None:
    """Return an export of the buffer, which keeps resizable owners from moving it; None for what has no buffer."""
    try:
        return memoryview(x)
    except (TypeError, ValueError, BufferError):
        return None
