"""Statistics of gradients and weights, by hooks."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tensorferry as ferry
from tensorferry.metrics import watch

Steps = list[tuple[int, dict[str, Any]]]


@pytest.fixture
def steps() -> Steps:
    return []


@pytest.fixture
def log(steps: Steps) -> ferry.MetricLog:
    return ferry.MetricLog(lambda step, values: steps.append((step, values)))


def small_model() -> torch.nn.Module:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1, bias=False))
    model[1].weight.requires_grad_(False)
    return model


def train(model: torch.nn.Module, log: ferry.MetricLog, steps: int) -> list[dict[str, torch.Tensor]]:
    gradients = []
    for step in range(steps):
        model.zero_grad()
        model(torch.full((4, 3), step + 1.0)).square().sum().backward()
        gradients.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
        log.log({"loss": step})
    return gradients


def test_each_step_gets_the_statistics_of_its_backward_pass(log: Any, steps: Steps):
    model = small_model()
    watch(model, log, every=1)
    gradients = train(model, log, 3)
    log.close()
    for (_, values), expected in zip(steps, gradients, strict=True):
        for name, gradient in expected.items():
            assert values[f"gradients/{name}/norm"] == pytest.approx(gradient.norm().item())
            assert values[f"gradients/{name}/max"] == gradient.max().item()
            assert values[f"weights/{name}/mean"] == pytest.approx(model.get_parameter(name).mean().item())
    assert {name.split("/")[1] for name in steps[0][1] if "/" in name} == {"0.weight", "0.bias"}


def test_only_every_so_many_passes(log: Any, steps: Steps):
    model = small_model()
    watch(model, log, every=3, weights=False)
    train(model, log, 7)
    log.close()
    assert [any("/" in name for name in values) for _, values in steps] == [True, False, False] * 2 + [True]
    assert not any(name.startswith("weights") for _, values in steps for name in values)


def test_it_ends_when_it_is_closed(log: Any, steps: Steps):
    model = small_model()
    watching = watch(model, log, every=1)
    assert repr(watching) == "<Watch of 2 parameters>"
    watching.close()
    watching.close()
    train(model, log, 2)
    log.close()
    assert steps == [(0, {"loss": 0}), (1, {"loss": 1})]


def test_a_model_goes_on_training_when_its_log_is_gone():
    model = small_model()
    log = ferry.MetricLog()
    watch(model, log, every=1)
    log.close()
    del log
    model(torch.ones(1, 3)).sum().backward()
    assert model[0].bias.grad is not None


@pytest.mark.parametrize(("model", "every", "words"), [(3, 1, "int"), (torch.nn.Linear(1, 1), 0, "every=0")])
def test_what_cannot_be_watched_is_refused(log: Any, model: Any, every: int, words: str):
    with pytest.raises(ferry.ArgumentError, match=words):
        watch(model, log, every=every)
    log.close()
