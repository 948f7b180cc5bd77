"""Python face of the driver double: schedules, presets, faults, and what it saw.

The fake is one per process. The product opens the same file through ``TENSORFERRY_LIBCUDA``, so both talk to one fake.
Calls of the driver count as the product's, unless they are made inside :func:`as_test`.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from helpers.fake_cuda_build import fake_cuda_library

__all__ = ["ALL_SCHEDULES", "LEGACY", "PER_THREAD", "FakeCuda", "as_test", "fake_cuda"]

ALL_SCHEDULES = ("lazy", "eager", "shuffled", "threaded")
LEGACY, PER_THREAD = 1, 2
FRESH, FREED, PENDING = 0xDE, 0xF5, 0xA5

_u64, _i64, _size, _text, _int = ctypes.c_uint64, ctypes.c_int64, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_int
_pointer = ctypes.c_void_p
_CAPTURE_MODES = ("global", "thread_local", "relaxed")
_CONTROLS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "fake_reset": (None, ()),
    "fake_schedule": (_int, (_text, _u64)),
    "fake_trace": (_size, (_text, _size)),
    "fake_clear_trace": (None, ()),
    "fake_requests": (_size, (_text, _size)),
    "fake_symbols": (_size, (_text, _size)),
    "fake_violations": (_size, (_text, _size)),
    "fake_clear_violations": (None, ()),
    "fake_live": (_i64, (_text,)),
    "fake_order": (_u64, ()),
    "fake_fault": (None, (_text, _i64, _int, _int)),
    "fake_clear_faults": (None, ()),
    "fake_preset": (_int, (_text,)),
    "fake_host_budget": (None, (_u64,)),
    "fake_hold": (None, (_int,)),
    "fake_caller_is_test": (_int, (_int,)),
    "fake_use_device": (None, (_int,)),
    "fake_alloc": (_u64, (_size, _int)),
    "fake_free": (_int, (_u64, _pointer, _int)),
    "fake_peek": (_int, (_u64, _pointer, _size)),
    "fake_poke": (_int, (_u64, _pointer, _size)),
    "fake_write_later": (_int, (_u64, _pointer, _size, _pointer, _int)),
    "fake_order_after": (_int, (_pointer, _pointer, _int)),
    "fake_drain": (None, ()),
    "fake_begin_capture": (_int, (_pointer, _int, _int)),
    "fake_end_capture": (_int, (_pointer, _int, _pointer)),
    "fake_launch_graph": (_int, (_pointer, _pointer, _int)),
    "fake_destroy_graph": (_int, (_pointer,)),
    "fake_captures": (_size, (_text, _size)),
    "fake_green_context": (_pointer, (_int,)),
    "fake_kernels": (_size, (_text, _size)),
    "fake_kernel_seed": (None, (_u64,)),
    "fake_kernel_blocks": (None, (ctypes.c_uint32, ctypes.c_uint32)),
    "fake_kernel_mistake": (_int, (_text, _u64, _u64)),
}


class FakeCuda:
    """One library of the fake.

    Parameters
    ----------
    path : path-like
        The shared library.

    Attributes
    ----------
    path : str
        For ``TENSORFERRY_LIBCUDA``.
    library : ctypes.CDLL
        For the driver's own doors and for what has no method here.
    """

    def __init__(self, path: Any) -> None:
        self.path = str(path)
        self.library = ctypes.CDLL(self.path)
        for name, (result, arguments) in _CONTROLS.items():
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, list(arguments)

    def reset(self) -> None:
        """Everything as in a fresh process: one device, driver 580, lazy schedule, nothing recorded."""
        self.library.fake_reset()

    def schedule(self, kind: str, seed: int = 0) -> None:
        """When accepted work runs: "lazy", "eager", "shuffled" (by the seed) or "threaded"."""
        if not self.library.fake_schedule(kind.encode(), seed):
            raise ValueError(f"no schedule is called {kind!r}")

    def preset(self, name: str) -> None:
        """Play another driver or machine; presets add up. ``"without:cuCtxGetId"`` hides one symbol."""
        if not self.library.fake_preset(name.encode()):
            raise ValueError(f"no preset is called {name!r}")

    def fault(self, call: str, code: int, nth: int = 1, *, after_acceptance: bool = False) -> None:
        """Let the nth use of a function fail; "*" is any function, "execution" work when it runs; 0 is every use."""
        self.library.fake_fault(call.encode(), nth, code, after_acceptance)

    def clear_faults(self) -> None:
        """No further failures. A driver that was shut down is back."""
        self.library.fake_clear_faults()

    def host_budget(self, nbytes: int) -> None:
        """How much host memory may be pinned, in whole pages."""
        self.library.fake_host_budget(nbytes)

    @contextmanager
    def held(self) -> Iterator[None]:
        """No work makes progress inside, as if a long kernel ran: waits of other threads last until the end."""
        self.library.fake_hold(1)
        try:
            yield
        finally:
            self.library.fake_hold(0)

    def drain(self) -> None:
        """Run everything that is pending, destructors of user objects included."""
        self.library.fake_drain()

    def use_device(self, device: int = 0) -> None:
        """What a framework does at its first use: the primary context is active, and current to this thread."""
        self.library.fake_use_device(device)

    def begin_capture(self, stream: int, mode: str = "global", *, device: int = 0) -> None:
        """Begin a capture on this thread as a framework does, torch.cuda.graph with the default mode."""
        _must_succeed("begin", self.library.fake_begin_capture(stream, _CAPTURE_MODES.index(mode), device))

    def end_capture(self, stream: int, *, device: int = 0) -> int:
        """End it, and return the graph, ready for :meth:`launch_graph`."""
        code, graph = self.try_end_capture(stream, device=device)
        _must_succeed("end", code)
        assert graph is not None
        return graph

    def try_end_capture(self, stream: int, *, device: int = 0) -> tuple[int, int | None]:
        """End it, whatever has become of it: the driver's answer, and the graph or None."""
        graph = _pointer()
        return int(self.library.fake_end_capture(stream, device, ctypes.addressof(graph))), graph.value

    def launch_graph(self, graph: int, stream: int, *, device: int = 0) -> None:
        """Replay: enqueue everything that was captured, as it was captured, behind the stream's work."""
        _must_succeed("launch", self.library.fake_launch_graph(graph, stream, device))

    def destroy_graph(self, graph: int) -> None:
        """What happens when the framework lets go of a graph; launches that are under way are finished."""
        _must_succeed("destroy", self.library.fake_destroy_graph(graph))

    def captures(self) -> list[str]:
        """Captures since the reset, those that ended first: ``"stream#1 global ongoing"``, ``"stream#1 global ended"``,
        ``"stream#1 global invalidated by cuMemAlloc bytes=8, ended"``.
        """
        return self._lines("fake_captures")

    def green_context(self, device: int = 0) -> int:
        """A green context of the device, made at the first call; its handle. Its null stream is its own."""
        return int(self.library.fake_green_context(device))

    def kernels(self) -> dict[str, int]:
        """Every kernel that can be launched, with the bytes of its arguments."""
        return {name: int(nbytes) for name, nbytes, _ in (line.split() for line in self._lines("fake_kernels"))}

    def kernel_seed(self, seed: int) -> None:
        """Chooses the orders of blocks and threads in later launches, and the order in which their stores land."""
        self.library.fake_kernel_seed(seed)

    @contextmanager
    def only_blocks(self, first: int, count: int) -> Iterator[None]:
        """Launches inside run these blocks of their grids, and no others."""
        self.library.fake_kernel_blocks(first, count)
        try:
            yield
        finally:
            self.library.fake_kernel_blocks(0, (1 << 32) - 1)

    @contextmanager
    def kernel_mistake(self, what: str, nth: int = 1, period: int = 0) -> Iterator[None]:
        """Inside, kernels lose the nth "barrier" or "fence" of each thread, and every `period`-th after it; or a
        "release" is a plain store.
        """
        if not self.library.fake_kernel_mistake(what.encode(), nth, period):
            raise ValueError(f"no mistake is called {what!r}")
        try:
            yield
        finally:
            self.library.fake_kernel_mistake(b"none", 0, 0)

    def trace(self, *, of_test: bool = False) -> list[str]:
        """The product's calls in order, one line each: name, then the arguments that matter."""
        lines = self._lines("fake_trace")
        return lines if of_test else [line for line in lines if not line.startswith("test: ")]

    def calls(self) -> list[str]:
        """The names in the product's trace."""
        return [line.split()[0] for line in self.trace()]

    def call_counts(self) -> Counter[str]:
        """How often the product called each function."""
        return Counter(self.calls())

    def clear_trace(self) -> None:
        """Forget calls, requests and counters so far."""
        self.library.fake_clear_trace()

    def requests(self) -> list[tuple[str, int, int]]:
        """Symbols asked for: name, version, flags."""
        split = [line.split() for line in self._lines("fake_requests")]
        return [(name, int(version), int(flags)) for name, version, flags in split]

    def symbols(self) -> list[tuple[str, int]]:
        """Every symbol of the newest driver with the version that brought its signature."""
        split = [line.split() for line in self._lines("fake_symbols")]
        return [(name, int(version)) for name, version in split]

    def violations(self) -> list[str]:
        """What was done that the documentation forbids, so far."""
        return self._lines("fake_violations")

    def clear_violations(self) -> None:
        """Forget them, after a test that provoked some."""
        self.library.fake_clear_violations()

    def live(self, what: str) -> int:
        """A count: "device_bytes", "host_registrations", "host_bytes", "events", "streams", "primary_contexts",
        "pushed_contexts", "pending", "captures", "graphs", "graph_execs", "user_objects"; and since
        the last clearing of the trace "queries", "busy_waits", "blocking_waits", "pageable_copies", "pageable_waits",
        "blocked_submits", "contexts_activated", "user_objects_destroyed".
        """
        return int(self.library.fake_live(what.encode()))

    def order(self) -> int:
        """A number for the order in which work ran since the schedule was set: for counting distinct ones."""
        return int(self.library.fake_order())

    def _lines(self, name: str) -> list[str]:
        function = getattr(self.library, name)
        size = function(None, 0)
        while True:  # others may add lines meanwhile
            buffer = ctypes.create_string_buffer(size)
            needed = function(buffer, size)
            if needed <= size:
                return buffer.value.decode().splitlines()
            size = needed


def _must_succeed(what: str, code: int) -> None:
    assert code == 0, f"could not {what} the capture or graph: the driver answered {code}"


@cache
def fake_cuda() -> FakeCuda:
    """The fake of this process; built and loaded at the first call."""
    return FakeCuda(fake_cuda_library())


@contextmanager
def as_test() -> Iterator[None]:
    """Calls of this thread inside are the test's own: left out of the trace and of faults, and not judged."""
    before = fake_cuda().library.fake_caller_is_test(1)
    try:
        yield
    finally:
        fake_cuda().library.fake_caller_is_test(before)
