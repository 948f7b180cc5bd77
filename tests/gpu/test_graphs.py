"""Copies that are part of CUDA graphs, on hardware: replays, lifetime, and refusals that harm no capture."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from tensorferry.types import GraphSlot

MODES = ("global", "thread_local", "relaxed")


def captured(work: Callable[[], Any], mode: str = "global") -> tuple[torch.cuda.CUDAGraph, Any]:
    """What `work` gives inside of a capture."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode=mode):
        answer = work()
    return graph, answer


@pytest.mark.parametrize("mode", MODES)
def test_each_replay_fills_the_destination_again(gpu, mode):
    x, out = torch.zeros(100_000, device=gpu), ferry.empty_pinned(100_000)

    def work() -> Any:
        x.add_(1)
        return ferry.to_numpy_async(x, out=out)

    graph, slot = captured(work, mode)
    assert isinstance(slot, GraphSlot)
    for replay in range(1, 20):
        graph.replay()
        assert (slot.wait() == replay).all()


def test_a_nest_of_dtypes_and_rows(gpu):
    x = torch.arange(24, device=gpu).reshape(4, 6)
    y = torch.ones(5, dtype=torch.bfloat16, device=gpu)
    out = {"rows": ferry.empty_pinned((4, 3), "int64"), "y": ferry.empty_pinned(5, "bfloat16")}
    graph, slot = captured(lambda: ferry.to_numpy_async({"rows": x[:, :3], "y": y}, out=out))
    x.mul_(2)
    graph.replay()
    arrived = slot.wait()
    assert np.array_equal(arrived["rows"], 2 * np.arange(24).reshape(4, 6)[:, :3])
    assert (arrived["y"] == 1).all()


def test_the_graph_keeps_what_it_copies_until_it_is_gone(gpu):
    tensors, out = [torch.full((1 << 20,), 3.0, device=gpu)], ferry.empty_pinned(1 << 20)
    before = torch.cuda.memory_allocated(gpu)
    graph, slot = captured(lambda: ferry.to_numpy_async(tensors.pop(), out=out))
    gc.collect()
    others = [torch.full((1 << 20,), -1.0, device=gpu) for _ in range(4)]
    graph.replay()
    assert (slot.wait() == 3).all()
    del graph, slot, others
    gc.collect()
    torch.cuda.synchronize()
    ferry.to_numpy(torch.ones(3, device=gpu))  # notices that the graph is gone
    assert torch.cuda.memory_allocated(gpu) < before


REFUSED: dict[str, Callable[[Any], Any]] = {
    "to_numpy": lambda x: ferry.to_numpy(x),
    "to_numpy of a strided view": lambda x: ferry.to_numpy(x[::2]),
    "to_numpy_async without out": lambda x: ferry.to_numpy_async(x),
    "to_numpy_async into ordinary memory": lambda x: ferry.to_numpy_async(x, out=np.zeros(10, np.float32)),
    "to_python": lambda x: ferry.to_python(x),
    "to_device": lambda x: ferry.to_device(np.ones(3), x.device),
    "empty_pinned": lambda x: ferry.empty_pinned(10),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_refusals_leave_the_capture_valid(gpu, mode, call):
    x = torch.zeros(10, device=gpu)

    def work() -> None:
        x.add_(1)
        with pytest.raises(ferry.FerryError):
            call(x)
        x.add_(1)

    graph, _ = captured(work, mode)
    graph.replay()
    assert (ferry.to_numpy(x) == 2).all()
