"""``check`` and ``stack`` let other Python threads run, and give the same answers beside them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.violations import violations


@pytest.fixture
def _never_switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # another thread runs only where this one lets go of the interpreter
    yield
    sys.setswitchinterval(before)


def _lets_others_run(work: Callable[[], object]) -> bool:
    """Does another thread, which waits for nothing but the interpreter, run while `work` does?"""
    told, ran = threading.Event(), []
    other = threading.Thread(target=lambda: (told.wait(), ran.append(True)))
    other.start()
    told.set()
    work()
    seen = bool(ran)
    other.join()
    return seen


BIG = torch.ones(16 << 20)
HALF = [np.ones(4 << 20, np.uint8)] * 2
WORK: dict[str, Callable[[], object]] = {
    "a scan for infinities": lambda: ferry.check(BIG, finite=True),
    "a scan for a range": lambda: ferry.check(BIG, range=(0, 1)),
    "a scan in a nest": lambda: ferry.check({"x": BIG}, finite=True),
    "a stack": lambda: ferry.stack(HALF, dtype="float32"),
}


@pytest.mark.usefixtures("_never_switching")
@pytest.mark.parametrize("name", WORK)
def test_other_threads_run_meanwhile(name: str) -> None:
    # On a busy machine the other thread may not get a processor in time, but hardly ever fifty times.
    assert any(_lets_others_run(WORK[name]) for _ in range(50))


def test_many_threads_check_and_stack_at_once() -> None:
    bad = torch.ones(300, 1111)
    bad[77, 1000] = torch.nan
    found: list[tuple[str, ...]] = []
    stacked: list[torch.Tensor] = []

    def work() -> None:
        for _ in range(5):
            found.append(violations(bad, finite=True))
            stacked.append(ferry.stack([bad.numpy(), bad.t().contiguous().t()]))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [("1 of 333,300 values is not finite: the first, at index (77, 1000), is nan",)] * 30
    expected = np.stack([bad.numpy(), bad.numpy()])
    assert len(stacked) == 30
    for tensor in stacked:
        np.testing.assert_array_equal(tensor.numpy(), expected)
