"""Several threads at once, and calls beside and inside of other people's graph captures."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
import torch

import tensorferry as ferry


def run_together(*tasks: Callable[[], None]) -> None:
    """Run each task in a thread of its own; whatever one raises is raised here."""
    errors: list[BaseException] = []

    def guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]


@pytest.mark.parametrize("own_streams", [False, True], ids=["one stream", "a stream each"])
def test_two_threads_get_their_own_values(gpu, own_streams):
    def worker(number: int) -> Callable[[], None]:
        def work() -> None:
            stream = torch.cuda.Stream() if own_streams else torch.cuda.default_stream()
            with torch.cuda.stream(stream):
                x = torch.zeros(50_000 + number, device=gpu)
                for step in range(100):
                    value = number * 1000 + step
                    x.fill_(value)
                    transfer = ferry.to_numpy_async(x)
                    strided = ferry.to_numpy(x[::3])
                    x.fill_(-1)
                    assert (strided == value).all()
                    assert (transfer.result() == value).all()

        return work

    run_together(worker(1), worker(2))


def test_a_waiting_thread_lets_others_run(gpu, sleep):
    x = torch.zeros(1 << 18, device=gpu)
    ferry.to_numpy(x)
    counted = 0
    waiting = threading.Event()
    arrived = threading.Event()

    def wait() -> None:
        sleep(300)
        x.fill_(7)
        waiting.set()
        assert (ferry.to_numpy(x) == 7).all()
        arrived.set()

    def count() -> None:
        nonlocal counted
        waiting.wait()
        while not arrived.is_set():
            counted += 1

    run_together(wait, count)
    assert counted > 10_000, "the wait held the GIL"


def test_a_transfer_can_be_finished_in_another_thread(gpu, sleep):
    x = torch.zeros(1 << 18, device=gpu)
    sleep(20)
    x.fill_(7)
    transfer = ferry.to_numpy_async(x)
    results: list[np.ndarray] = []
    run_together(lambda: results.append(transfer.result()))
    assert (results[0] == 7).all()


def captured_doubling(x: torch.Tensor, inside: Callable[[], None]) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
    """A graph that doubles ``x``; ``inside`` runs while it is captured."""
    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm):
        x * 2
    warm.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
        inside()
    return graph, y


def test_a_capture_survives_copies_in_another_thread(gpu):
    x = torch.arange(1000.0, device=gpu)
    other = torch.full((1 << 16,), 7.0, device=gpu)
    torch.cuda.synchronize()
    ferry.to_numpy(other)

    def copy_beside() -> None:
        def copy() -> None:
            with torch.cuda.stream(side):
                for _ in range(20):
                    assert (ferry.to_numpy(other) == 7).all()
                    assert (ferry.to_numpy_async(other).result() == 7).all()

        run_together(copy)

    side = torch.cuda.Stream()
    graph, y = captured_doubling(x, copy_beside)
    graph.replay()
    np.testing.assert_array_equal(ferry.to_numpy(y), np.arange(1000.0, dtype=np.float32) * 2)


def test_a_call_inside_of_a_capture_is_refused_and_the_capture_survives(gpu):
    x = torch.arange(1000.0, device=gpu)
    messages: list[str] = []

    def copy_inside() -> None:
        with pytest.raises(ferry.FerryError) as caught:
            ferry.to_numpy(x)
        messages.append(str(caught.value))

    graph, y = captured_doubling(x, copy_inside)
    assert "captur" in messages[0]
    graph.replay()
    np.testing.assert_array_equal(ferry.to_numpy(y), np.arange(1000.0, dtype=np.float32) * 2)
