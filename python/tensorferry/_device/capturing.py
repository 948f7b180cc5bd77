"""CUDA graph captures, which belong to somebody else: found before anything of a call is enqueued."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tensorferry._device.streams import number_of, torch_cuda, torch_stream
from tensorferry._errors import DeviceError
from tensorferry._native import core

if TYPE_CHECKING:
    from tensorferry._device.on_device import OnDevice

__all__ = ["captures", "refuse_in_capture", "refuse_in_torchs_capture"]

_INSTEAD = (
    "call it before the capture begins or after it has ended; in a capture only to_numpy_async(x, out=...) into pinned "
    "memory works"
)


def captures(on_device: OnDevice, stream: Any, known: dict[tuple[int, int], str]) -> bool:
    """Would a copy of this be captured into a graph? Asks the driver once for each stream, enqueues nothing.

    Parameters
    ----------
    on_device : OnDevice
        The tensor.
    stream : stream or None
        In which its value is ordered; None asks its library.
    known : dict
        What was asked in the same call.

    Raises
    ------
    DeviceError
        Where a copy would end somebody's capture, where its capture was invalidated, and where the tensor's library
        does not tell its stream while a capture goes on in this thread.
    """
    number = on_device.current_stream() if stream is None else number_of(stream)
    device, given = on_device.device, f"a tensor on {on_device.name}"
    if number is not None:
        if (device, number) not in known:
            known[device, number] = _state(given, device, number)
        return known[device, number] == "active"
    for library, other in _streams_of_libraries(device):
        if _state(given, device, other) == "active":
            raise DeviceError(
                f"{given} whose library does not tell its stream, while {library}'s current stream is being captured",
                "to be ordered before a copy it may draw a stream of ours into the capture",
                "name the stream that its value is ordered in: stream=...",
            )
    return False


def refuse_in_capture(what: str, device: int, stream: Any, instead: str = _INSTEAD) -> None:
    """Raise when `stream`, or torch's current one, is being captured; `what` would then be in a graph, or wait."""
    number = torch_stream(device) if stream is None else number_of(stream)
    try:
        state = _state(what, device, number)
    except DeviceError:
        if device in core.devices_in_use():
            raise
        return  # nobody uses it yet, so nobody captures there
    if state == "active":
        raise DeviceError(
            f"{what} in a stream that is being captured into a graph",
            "inside a capture nothing may wait, and memory that is taken there is gone, or in other use, at a replay",
            instead,
        )


def refuse_in_torchs_capture(what: str) -> None:
    """The same where torch is loaded and uses a device; nothing else can be asked without a tensor."""
    cuda = torch_cuda()
    if cuda is not None and not core.driver_problem(initialise=True):
        refuse_in_capture(what, int(cuda.current_device()), None)


def _state(what: str, device: int, number: int) -> str:
    state = core.capture_state(device, number)
    if state == "invalidated":
        raise DeviceError(
            f"{what} in a stream whose capture was invalidated",
            "a call that is not allowed during a capture has ended it, and the stream takes no work until that is seen",
            "end the capture, find that call (not one of tensorferry's), and capture again",
        )
    if state == "implicit":
        raise DeviceError(
            f"{what} in the legacy default stream, while another stream is being captured",
            "work on the legacy stream would destroy that capture",
            "call it before the capture begins or after it has ended, or use the tensor on a non-blocking stream",
        )
    return state


def _streams_of_libraries(device: int) -> list[tuple[str, int]]:
    found = [] if torch_cuda() is None else [("torch", torch_stream(device))]
    cupy = getattr(sys.modules.get("cupy"), "cuda", None)
    if cupy is not None:
        found.append(("CuPy", number_of(cupy.get_current_stream())))
    return found
