"""Tests on hardware: skipped without a GPU; with ``TENSORFERRY_REQUIRE_GPU=1`` they fail without one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

CYCLES_PER_MS = 2_000_000  # of a device at 2 GHz; slower ones sleep longer, which does no harm


def why_no_gpu() -> str:
    """Empty where there is a GPU to test on."""
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA"
    return "" if torch.cuda.is_available() else "torch sees no CUDA device"


@pytest.fixture(scope="session", autouse=True)
def gpu() -> torch.device:
    """The device to test on."""
    reason = why_no_gpu()
    if reason and os.environ.get("TENSORFERRY_REQUIRE_GPU") == "1":
        pytest.fail(f"a GPU is required: {reason}")
    if reason:
        pytest.skip(reason)
    return torch.device("cuda", torch.cuda.current_device())


@pytest.fixture(autouse=True)
def idle(gpu: torch.device) -> Iterator[None]:
    """No test inherits another's work, and none ends with an error that nobody has asked for."""
    torch.cuda.synchronize(gpu)
    yield
    torch.cuda.synchronize(gpu)


@pytest.fixture
def sleep() -> Callable[[float], None]:
    """Keeps torch's current stream busy for some milliseconds; returns at once."""
    return lambda ms: torch.cuda._sleep(int(ms * CYCLES_PER_MS))


def per_thread_stream() -> Any:
    """CUDA's stream of the calling thread, handle 2, as a torch stream."""
    return torch.cuda.ExternalStream(2)


@pytest.fixture(params=["the default stream", "a side stream", "the per-thread stream"])
def stream(request: pytest.FixtureRequest, gpu: torch.device) -> Iterator[Any]:
    """One kind of stream after the other, current while the test runs."""
    makers: dict[str, Callable[[], Any]] = {
        "the default stream": torch.cuda.default_stream,
        "a side stream": torch.cuda.Stream,
        "the per-thread stream": per_thread_stream,
    }
    chosen = makers[request.param]()
    with torch.cuda.stream(chosen):
        yield chosen
