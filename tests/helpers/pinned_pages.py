"""Pages that are not the product's, and how many registrations the simulated driver has."""

from __future__ import annotations

import gc
import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import tensorferry as ferry
from helpers import device_path
from helpers.fake_cuda import FakeCuda

__all__ = ["PAGE", "is_pinned", "pages", "registrations"]

PAGE = mmap.PAGESIZE


def pages(count: int, dtype: Any = np.uint8) -> Any:
    """An array of whole pages, which nothing else lies in."""
    return np.frombuffer(mmap.mmap(-1, count * PAGE), dtype)


def is_pinned(x: Any) -> bool:
    """Is it described as pinned? For arrays the driver must say the same of both ends."""
    described = bool(ferry.describe(x).pinned)
    if isinstance(x, np.ndarray) and x.nbytes and x.flags.c_contiguous:
        assert device_path.is_pinned(x) == described
    return described


@contextmanager
def registrations(fake: FakeCuda) -> Iterator[Callable[[], int]]:
    """How many more registrations there are than at the beginning; none may be left at the end."""
    before = fake.live("host_registrations")
    yield lambda: fake.live("host_registrations") - before
    gc.collect()
    # What is done may just be in the hands of the internal thread.
    device_path.until(lambda: fake.live("host_registrations") == before)
    assert fake.live("host_registrations") == before
