"""``torch.cuda`` for the fake driver: devices, streams and events as torch's Python interface has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from helpers.fake_cuda import as_test
from helpers.fake_cuda_driver import NOT_READY, Driver, DriverError
from helpers.torch_on_fake_build import guard_library, kernels_library
from helpers.torch_on_fake_memory import device_of

__all__ = ["Event", "ExternalStream", "Stream", "forget_streams", "replace_torch_cuda"]

_STREAMS_IN_POOL = 32
_pools: dict[tuple[int, int], list[int]] = {}
_taken: dict[tuple[int, int], int] = {}
_driver: list[Driver] = []
_world = [0]


def _ask(device: int, call: Callable[[Driver], Any]) -> Any:
    """Call the driver as torch does: in the device's context. Not in the product's trace."""
    if not _driver:
        _driver.append(Driver())
    with torch.cuda.device(device), as_test():
        return call(_driver[0])


def _initialize() -> None:
    guard_library().torch_on_fake_initialize()


def _index(device: Any) -> int:
    return device if isinstance(device, int) else device_of(device)


class Stream:
    """A stream of torch's pool: 32 for each device and priority, given out in turn, never destroyed."""

    device_type = 1

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        _initialize()
        key = (_index(device), min(priority, 0))
        pool, turn = _pools.setdefault(key, []), _taken.get(key, 0)
        if turn >= len(pool):
            pool.append(_ask(key[0], lambda driver: driver.stream()))
        _taken[key] = (turn + 1) % _STREAMS_IN_POOL
        self._set(pool[turn], key[0], priority)

    def _set(self, handle: int, device: int, priority: int = 0) -> None:
        self.cuda_stream = self.stream_id = handle
        self.device_index, self.priority = device, priority
        self.device = torch.device("cuda", device)

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.cuda_stream)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.cuda_stream, self.device) == (other.cuda_stream, other.device)

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self.device))

    def wait_event(self, event: Event) -> None:
        """Later work here waits for what was recorded."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Later work here waits for all work so far of another stream."""
        guard_library().torch_on_fake_need_context()
        code = kernels_library().fake_order_across(
            self.cuda_stream, self.device_index, stream.cuda_stream, stream.device_index
        )
        assert code == 0, f"the wait was refused: {code}"

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one by default."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Is all work done?"""
        code = _ask(self.device_index, lambda driver: driver.code("cuStreamQuery", self.cuda_stream))
        if code not in (0, NOT_READY):
            raise DriverError("cuStreamQuery", code)
        return code == 0

    def synchronize(self) -> None:
        """Wait for all work."""
        _ask(self.device_index, lambda driver: driver("cuStreamSynchronize", self.cuda_stream))


class ExternalStream(Stream):
    """A stream that somebody else made."""

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        self._set(stream_ptr, _index(device))


def _default_stream(device: Any = None) -> Stream:
    _initialize()
    return ExternalStream(0, device)


def _current_stream(device: Any = None) -> Stream:
    _initialize()
    index = _index(device)
    return ExternalStream(guard_library().torch_on_fake_stream(index) or 0, index)


class Event:
    """An event, made at the first record as torch does."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.cuda_event, self._world, self._device = 0, -1, 0
        self._flags = (0 if enable_timing else 2) | (1 if blocking else 0)
        self._ask, self._worlds = _ask, _world  # at interpreter exit modules are gone

    def record(self, stream: Stream | None = None) -> None:
        """Record the work of a stream so far, the current one by default."""
        stream = _current_stream() if stream is None else stream
        if not self.cuda_event:
            self._world, self._device = _world[0], stream.device_index
            self.cuda_event = _ask(self._device, lambda driver: driver.event(self._flags))
        _ask(stream.device_index, lambda driver: driver("cuEventRecord", self.cuda_event, stream.cuda_stream))

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a stream wait for what was recorded."""
        stream = _current_stream() if stream is None else stream
        if self.cuda_event:
            at = stream.device_index
            _ask(at, lambda driver: driver("cuStreamWaitEvent", stream.cuda_stream, self.cuda_event, 0))

    def query(self) -> bool:
        """Is what was recorded done?"""
        return not self.cuda_event or bool(_ask(self._device, lambda driver: driver.is_done(self.cuda_event)))

    def synchronize(self) -> None:
        """Wait for what was recorded."""
        if self.cuda_event:
            _ask(self._device, lambda driver: driver("cuEventSynchronize", self.cuda_event))

    def __del__(self) -> None:
        if self.cuda_event and self._world == self._worlds[0]:
            self._ask(self._device, lambda driver: driver.code("cuEventDestroy", self.cuda_event))


def _current_device() -> int:
    _initialize()
    device: int = guard_library().torch_on_fake_device()
    return device


def _set_device(device: Any) -> None:
    if _index(device) >= 0:
        guard_library().torch_on_fake_set_device(_index(device))


def _exchange_device(device: int) -> int:
    before = guard_library().torch_on_fake_device()
    _set_device(device)
    return before


def _set_stream(stream: Stream | None) -> None:
    if stream is not None:
        _set_device(stream.device_index)  # torch switches the device, too
        guard_library().torch_on_fake_set_stream(stream.device_index, stream.cuda_stream)


def _synchronize(device: Any = None) -> None:
    _ask(_index(device), lambda driver: driver("cuCtxSynchronize"))


def _is_capturing() -> bool:
    stream = _current_stream()
    status = _ask(stream.device_index, lambda driver: driver.get_handle("cuStreamIsCapturing", stream.cuda_stream))
    return bool(status)


def forget_streams(devices: int) -> None:
    """The driver was reset and has so many devices: handles of before are worth nothing."""
    _pools.clear()
    _taken.clear()
    _world[0] += 1
    guard_library().torch_on_fake_forget(devices)


def replace_torch_cuda() -> None:
    """Let ``torch.cuda`` speak of the fake driver; for good."""
    replaced = {
        "Stream": Stream,
        "ExternalStream": ExternalStream,
        "Event": Event,
        "_lazy_init": _initialize,
        "is_available": lambda: True,
        "is_initialized": lambda: bool(guard_library().torch_on_fake_is_initialized()),
        "device_count": lambda: guard_library().torch_on_fake_devices(),
        "current_device": _current_device,
        "set_device": _set_device,
        "_exchange_device": _exchange_device,
        "_maybe_exchange_device": _exchange_device,
        "default_stream": _default_stream,
        "current_stream": _current_stream,
        "set_stream": _set_stream,
        "synchronize": _synchronize,
        "is_current_stream_capturing": _is_capturing,
    }
    for name, value in replaced.items():
        setattr(torch.cuda, name, value)
