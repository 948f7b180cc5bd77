"""Copies from devices that become part of a CUDA graph: all are checked, then captured together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorferry._device.streams import number_of
from tensorferry._errors import BufferMismatchError, DeviceError, DTypeError
from tensorferry._native import core

if TYPE_CHECKING:
    from tensorferry._device.on_device import OnDevice

__all__ = ["GraphCopies", "mixture_refused", "wait_refused"]


class GraphCopies:
    """The copies of one call.

    Parameters
    ----------
    stream : stream or None
        That is being captured; None asks each producer.

    Attributes
    ----------
    asks : list of (int, callable or None)
        For each device, what gives the stream that its tensors' library works in.
    held_for_good : bool
        What the copies touch is never let go, since the driver does not tell when a graph is gone.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._capture = core.Capture()
        self.asks: list[tuple[int, Callable[[], int | None] | None]] = []
        self.nbytes = 0
        self.driver_copies = 0
        self.held_for_good = False

    def add(self, on_device: OnDevice, out: Any) -> None:
        """Check that one tensor can be copied into `out` as it is; enqueues nothing.

        Raises
        ------
        FerryError
            Where a host pass, packing or new memory would be needed.
        """
        if out is None:
            raise DeviceError(
                f"a tensor on {on_device.name} without out=, inside a capture",
                "memory that is taken inside a capture is gone, or in other use, when the graph is replayed",
                "pass out=, made by ferry.empty_pinned(...) before the capture",
            )
        lying, destination = on_device.lying, core.Source.from_array(out)
        if lying.conjugated or lying.negated:
            raise DTypeError(
                f"a conjugate or negative view on {on_device.name}, inside a capture",
                "its values are made on the host, and no host runs at a replay",
                "call .resolve_conj() or .resolve_neg() on it first, which becomes part of the graph",
            )
        if destination.dtype != lying.dtype or destination.byte_swapped:
            raise DTypeError(
                f"out of dtype {out.dtype} for {lying.dtype} on {on_device.name}, inside a capture",
                "values are cast on the host, and no host runs at a replay",
                "cast on the device first (x.to(...), which becomes part of the graph), or pass an out of its dtype",
            )
        number = on_device.current_stream() if self._stream is None else number_of(self._stream)
        assert number is not None
        self._capture.add(on_device.as_it_is(number), destination)
        self.nbytes += on_device.nbytes
        if on_device.device not in [device for device, _ in self.asks]:
            self.asks.append((on_device.device, on_device.asks_for_stream))

    def enqueue(self) -> None:
        """Make all copies part of the graph."""
        self.driver_copies, self.held_for_good = self._capture.enqueue()


def wait_refused(name: str) -> DeviceError:
    """Return the error of a call that waits, on a tensor whose stream is being captured."""
    return DeviceError(
        f"a tensor on {name} whose stream is being captured into a graph",
        "the values are not there before a replay, so that a call that returns them would wait for ever",
        "call it before the capture begins or after it has ended, or capture the copy: "
        "ferry.to_numpy_async(x, out=ferry.empty_pinned(...)), with out made before the capture",
    )


def mixture_refused(name: str) -> BufferMismatchError:
    """Return the error of a nest of which only a part lies in a capture."""
    return BufferMismatchError(
        f"a nest of tensors of which one on {name} is in a capture and others are not",
        "those would be copied now, and not at each replay",
        "convert them in two calls",
    )
