"""Logging inside compiled functions: no graph breaks, and the values of each call."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import torch

import tensorferry as ferry

Steps = list[tuple[int, dict[str, Any]]]
BACKENDS = (
    ["eager", "aot_eager", "inductor"] if shutil.which("g++") or shutil.which("clang++") else ["eager", "aot_eager"]
)


@pytest.fixture(params=BACKENDS)
def compiled(request: pytest.FixtureRequest) -> Any:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield lambda function: torch.compile(function, backend=request.param, fullgraph=True)
    assert dict(torch._dynamo.utils.counters["graph_break"]) == {}
    torch._dynamo.reset()


@pytest.fixture
def steps() -> Steps:
    return []


@pytest.fixture
def log(steps: Steps) -> ferry.MetricLog:
    return ferry.MetricLog(lambda step, values: steps.append((step, values)))


def test_values_are_those_of_each_call_and_keep_their_order(compiled: Any, log: Any, steps: Steps):
    def step(x: torch.Tensor, number: int) -> torch.Tensor:
        y = x * 2
        log.log({"sum": y.sum(), "nested": {"first": y[0], "count": 3, "ok": True}}, step=number)
        y = y + 1
        log.log({"later": y.sum().to(torch.bfloat16), "rate": 0.25}, step=number)
        return y

    run = compiled(step)
    for number in range(3):
        assert torch.equal(run(torch.full((4,), float(number)), number), torch.full((4,), 2.0 * number + 1))
    log.close()
    assert steps == [
        (
            n,
            {
                "sum": 8.0 * n,
                "nested/first": 2.0 * n,
                "nested/count": 3,
                "nested/ok": True,
                "later": 8.0 * n + 4,
                "rate": 0.25,
            },
        )
        for n in range(3)
    ]
    assert list(steps[0][1]) == ["sum", "nested/first", "nested/count", "nested/ok", "later", "rate"]


def test_gradients_are_the_same_with_and_without(compiled: Any, log: Any, steps: Steps):
    weight = torch.tensor([1.0, 2.0], requires_grad=True)

    def loss_of(x: torch.Tensor) -> torch.Tensor:
        loss = (weight * x).square().sum()
        log.log({"loss": loss})
        return loss * 2

    run = compiled(loss_of)
    for number in range(1, 3):
        weight.grad = None
        run(torch.full((2,), float(number))).backward()
        assert weight.grad is not None
        assert weight.grad.tolist() == [4.0 * number**2, 8.0 * number**2]
    log.close()
    assert steps == [(0, {"loss": 5.0}), (1, {"loss": 20.0})]


def test_a_result_that_nobody_uses_is_logged_all_the_same(compiled: Any, log: Any, steps: Steps):
    def only_logs(x: torch.Tensor) -> None:
        log.log({"mean": x.mean()})

    run = compiled(only_logs)
    for number in range(3):
        run(torch.full((5,), float(number)))
    log.close()
    assert [values["mean"] for _, values in steps] == [0.0, 1.0, 2.0]


def test_a_step_that_changes_with_each_call_is_not_compiled_anew_each_time(compiled: Any, log: Any, steps: Steps):
    run = compiled(lambda x, number: log.log({"x": x.sum()}, step=number))
    for number in range(100, 120):
        run(torch.ones(3), number)
    log.close()
    assert [number for number, _ in steps] == list(range(100, 120))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 2


def test_two_logs_of_one_function_get_their_own_values(compiled: Any, log: Any, steps: Steps):
    others: Steps = []
    other = ferry.MetricLog(lambda step, values: others.append((step, values)))

    def both(x: torch.Tensor) -> None:
        log.log({"x": x.sum()})
        other.log({"y": x.prod()})

    compiled(both)(torch.full((2,), 3.0))
    log.close()
    other.close()
    assert (steps, others) == ([(0, {"x": 6.0})], [(0, {"y": 9.0})])
