"""Metrics of a device that only torch can read: the same numbers, with a wait."""

from __future__ import annotations

from typing import Any

import torch

import tensorferry as ferry
from helpers.remote_device import Remote


def test_the_values_are_those_of_the_call(remote: Remote) -> None:
    steps: list[tuple[int, dict[str, Any]]] = []
    values = {"a": torch.tensor(0.5), "n": torch.tensor(2**60), "half": torch.tensor(1.5, dtype=torch.bfloat16)}
    tensors = {name: value.to("remote") for name, value in {**values, "v": torch.arange(3)}.items()}
    with ferry.MetricLog(lambda step, found: steps.append((step, found))) as log:
        log.log({"first": 1, **tensors, "last": torch.tensor(True)})
        for tensor in tensors.values():
            tensor.copy_(torch.zeros_like(tensor, device="cpu").to("remote"))
    assert steps == [
        (0, {"first": 1, "a": 0.5, "n": 2**60, "half": 1.5, "v/0": 0, "v/1": 1, "v/2": 2, "last": True}),
    ]
    assert list(steps[0][1]) == ["first", "a", "n", "half", "v/0", "v/1", "v/2", "last"]


def test_values_that_were_not_there_yet_are_waited_for(remote: Remote) -> None:
    steps: list[dict[str, Any]] = []
    x = torch.tensor(0.0).to("remote")
    x.copy_(torch.tensor(7.0).to("remote"), non_blocking=True)
    with ferry.MetricLog(lambda step, found: steps.append(found)) as log:
        assert len(remote.waiting) == 1
        log.log({"x": x})
        assert remote.waiting == []
    assert steps == [{"x": 7.0}]
