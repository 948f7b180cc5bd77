"""Many threads convert at once, also while others drop or change the containers; every value stays right."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.subprocess import stdout_of

THREADS = 8
LARGE = 1 << 15  # in float32 large enough for copies to release Python's lock


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def _in_threads(work: Callable[[int], None], count: int = THREADS) -> None:
    """Run ``work(0)`` to ``work(count - 1)`` at once; raise the first error of any."""
    errors: list[BaseException] = []
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _expect(array: object, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(np.asarray(array), expected)


def _conversions(tensor: torch.Tensor, values: np.ndarray) -> list[tuple[object, np.ndarray]]:
    return [
        (ferry.to_numpy(tensor), values),
        (ferry.to_numpy(tensor, copy=True), values),
        (ferry.to_numpy(tensor, copy="lazy"), values),
        (ferry.to_numpy(tensor.t(), order="C"), values.T),
        (ferry.to_numpy(tensor, dtype="float64"), values.astype(float)),
        (ferry.to_numpy({"a": [tensor, tensor[1:]]})["a"][1], values[1:]),
        (ferry.from_numpy(values[:, ::-1]), values[:, ::-1]),
        (ferry.from_numpy(ferry.to_numpy(tensor)), values),
        (ferry.from_numpy(values, dtype="float64"), values.astype(float)),
        (np.from_dlpack(ferry.to_dlpack(tensor)), values),
        (ferry.stack([tensor, tensor], to="numpy")[1], values),
    ]


@pytest.mark.parametrize("size", [64, LARGE], ids=["small", "large"])
def test_threads_convert_the_same_tensor(size):
    values = np.arange(size, dtype=np.float32).reshape(8, -1)
    tensor = torch.from_numpy(values.copy())

    def work(number: int) -> None:
        for _ in range(4):
            for result, expected in _conversions(tensor, values):
                _expect(result, expected)

    _in_threads(work)


@pytest.mark.parametrize("size", [64, LARGE], ids=["small", "large"])
def test_threads_convert_tensors_of_their_own(size):
    def work(number: int) -> None:
        for round_ in range(4):
            values = np.full((8, size // 8), number * 10 + round_, np.float32)
            for result, expected in _conversions(torch.from_numpy(values.copy()), values):
                _expect(result, expected)

    _in_threads(work)


def test_threads_make_and_drop_views_of_shared_tensors():
    tensors = [torch.full((16,), float(i)) for i in range(32)]
    views: list[np.ndarray] = []

    def work(number: int) -> None:
        for i in range(400):
            views.append(ferry.to_numpy(tensors[(i + number) % 32]))
            taken = views.pop(0)
            assert len(set(taken.tolist())) == 1
            if i % 50 == 0:
                tensors[i % 32] = torch.full((16,), float(i % 32))  # the old one lives in views only

    _in_threads(work)
    assert not views


def test_a_refusal_in_one_thread_does_not_leak_into_another():
    good, bad = torch.arange(4.0), torch.ones(2, device="meta")

    def work(number: int) -> None:
        for _ in range(200):
            if number % 2:
                with pytest.raises(ferry.DeviceError):
                    ferry.to_numpy(bad)
            else:
                assert ferry.to_numpy(good).tolist() == [0, 1, 2, 3]

    _in_threads(work)


@pytest.mark.parametrize("kind", [list, dict], ids=["list", "dict"])
def test_a_container_may_be_emptied_while_another_thread_converts_it(kind):
    for _ in range(20):
        tensors = [torch.full((LARGE,), float(i)) for i in range(8)]
        nest = tensors if kind is list else dict(enumerate(tensors))
        del tensors

        def work(number: int, nest: list | dict = nest) -> None:
            if number == 0:
                nest.clear()
                return
            converted = ferry.to_numpy(nest, copy=True)
            for i, array in enumerate(converted if kind is list else converted.values()):
                # A dict keeps the tensors that were taken away before their turn.
                assert isinstance(array, torch.Tensor) or (array == i).all()

        _in_threads(work, 2)


def test_first_conversions_race_for_everything_that_is_looked_up_once():
    printed = stdout_of(
        """
        import sys, threading, warnings
        sys.setswitchinterval(1e-6)
        import numpy as np, torch
        import tensorferry as ferry
        warnings.simplefilter("ignore")
        from dataclasses import dataclass
        @dataclass
        class Batch:
            a: object
        start, results = threading.Barrier(8), []
        def work(i):
            start.wait()
            nest = [Batch(torch.ones(2, dtype=torch.bfloat16))]
            results.append(ferry.to_numpy(nest, copy=True)[0].a.astype(int).tolist())
            results.append(ferry.from_numpy(np.arange(2)[::-1]).tolist())
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(results.count([1, 1]), results.count([1, 0]))
        """,
        timeout_s=20,
    )
    assert printed == "8 8"


def test_one_threads_lock_free_copy_does_not_block_the_others():
    source = np.zeros((8192, 8192), ml_dtypes.bfloat16).T  # takes longer than threads wait for the GIL
    progress, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            progress[0] += 1

    counting = threading.Thread(target=count)
    counting.start()
    before = progress[0]
    ferry.to_numpy(source, dtype="float32", order="C")
    during = progress[0] - before
    done.set()
    counting.join()
    assert during > 0
