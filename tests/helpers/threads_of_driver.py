"""Other threads that use the driver."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from helpers.fake_cuda_driver import Driver

__all__ = ["in_another_thread"]


def in_another_thread(run: Callable[[], Any], *, timeout_s: float = 60) -> Any:
    """Run in a thread of its own, with the primary context of device 0 current; what `run` returns."""
    answers: list[Any] = []

    def inside() -> None:
        Driver().context()
        answers.append(run())

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join(timeout=timeout_s)
    assert answers, "the thread failed or did not come back"
    return answers[0]
