"""Metrics on a GPU: exact, those of the call, and without a wait that torch could see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import tensorferry as ferry

Steps = list[tuple[int, dict[str, Any]]]


@pytest.fixture
def steps() -> Steps:
    return []


@pytest.fixture
def log(steps: Steps) -> Iterator[ferry.MetricLog]:
    made = ferry.MetricLog(lambda step, values: steps.append((step, values)))
    yield made
    made.close()


def test_a_thousand_scalars_arrive_as_they_were_whatever_happens_then(log: Any, steps: Steps):
    dtypes = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float64, torch.float8_e4m3fn)
    tensors = {f"metric {i}": torch.tensor(float(i % 7), device="cuda").to(dtypes[i % 6]) for i in range(1000)}
    expected = {name: x.to(torch.float64).item() for name, x in tensors.items()}
    for _ in range(20):
        log.log(tensors)
    for x in tensors.values():
        x.copy_(torch.zeros((), device="cuda").to(x.dtype))
    log.flush()
    assert [values for _, values in steps] == [expected] * 20


def test_torch_sees_no_synchronisation(log: Any, steps: Steps):
    x = torch.ones((), device="cuda")
    log.log({"x": x})
    log.flush()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(100):
            x += 1
            log.log({"x": x})
    finally:
        torch.cuda.set_sync_debug_mode("default")
    log.flush()
    assert [values["x"] for _, values in steps] == [float(i + 1) for i in range(101)]


def test_log_returns_before_the_device_has_finished(log: Any, steps: Steps):
    x = torch.ones((), device="cuda")
    log.log({"x": x})
    log.flush()
    torch.cuda._sleep(1_000_000_000)
    log.log({"x": x + 1})
    assert not torch.cuda.current_stream().query()
    log.flush()
    assert steps[-1] == (1, {"x": 2.0})


@pytest.mark.parametrize("agg", ["mean", "sum", "min", "max"])
def test_steps_are_aggregated_on_the_device(steps: Steps, agg: str):
    with ferry.MetricLog(lambda step, values: steps.append((step, values)), every=10, agg=agg) as log:
        for step in range(20):
            log.log({"x": torch.tensor(float(step), device="cuda"), "n": torch.tensor(step, device="cuda")})
    expected = {"mean": (4.5, 14.5), "sum": (45, 145), "min": (0, 10), "max": (9, 19)}[agg]
    assert [(values["x"], values["n"]) for _, values in steps] == [(value, value) for value in expected]


def test_large_tensors_are_reduced_where_they_are(log: Any, steps: Steps):
    x = torch.randn(3_000_000, device="cuda").bfloat16()
    log.log_stats("w", x, step=0)
    log.log_histogram("h", x, bins=10, step=0)
    log.flush()
    wide = x.to(torch.float64)
    values = steps[0][1]
    assert values["w/mean"] == pytest.approx(wide.mean().item(), abs=1e-9)
    assert values["w/std"] == pytest.approx(wide.std(correction=0).item(), rel=1e-9)
    assert sum(values["h"].counts) == x.numel()


def test_a_graph_of_another_stream_is_captured_meanwhile(log: Any, steps: Steps):
    x = torch.ones((), device="cuda")
    log.log({"x": x})
    log.flush()
    graph, y, side = torch.cuda.CUDAGraph(), torch.zeros((), device="cuda"), torch.cuda.Stream()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        y += 1
        with torch.cuda.stream(side):
            log.log({"host": 3})
    graph.replay()
    log.log({"y": y})
    log.flush()
    assert [values for _, values in steps] == [{"x": 1.0}, {"host": 3}, {"y": 1.0}]
