"""Captures as a framework makes them, as ``with`` blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from helpers.fake_cuda import FakeCuda

__all__ = ["MODES", "Captured", "capture", "order_after"]

MODES = ("global", "thread_local", "relaxed")


@dataclass
class Captured:
    """What came of a capture.

    Attributes
    ----------
    graph : int
        Ready to be launched, once the block was left; 0 before.
    """

    graph: int = 0


@contextmanager
def capture(fake: FakeCuda, stream: int, mode: str = "global") -> Iterator[Captured]:
    """Capture what is enqueued in `stream` inside the block; fails when somebody has invalidated the capture."""
    captured = Captured()
    fake.begin_capture(stream, mode)
    try:
        yield captured
    finally:
        code, graph = fake.try_end_capture(stream)
    assert code == 0, f"the capture did not survive: {fake.captures()}"
    assert graph is not None
    captured.graph = graph


def order_after(fake: FakeCuda, later: int, earlier: int) -> None:
    """What a framework does to fork a capture to another stream, and to join it again."""
    assert fake.library.fake_order_after(later, earlier, 0) == 0
