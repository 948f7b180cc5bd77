"""Several steps delivered as one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry

Steps = list[tuple[int, dict[str, Any]]]


def logged(values: list[Any], *, every: int, agg: Any) -> Steps:
    steps: Steps = []
    with ferry.MetricLog(lambda step, found: steps.append((step, found)), every=every, agg=agg) as log:
        for value in values:
            log.log({"x": value})
    return steps


ORACLES: dict[str, Any] = {"last": lambda x: x[-1], "mean": np.mean, "sum": np.sum, "min": np.min, "max": np.max}


@pytest.mark.parametrize("agg", ORACLES)
@pytest.mark.parametrize("every", [1, 3, 4])
def test_each_window_gets_the_aggregate_of_its_steps(agg: str, every: int):
    values = [3.0, -1.5, 2.25, 8.0, 0.5, -4.0, 7.0]
    windows = [values[i : i + every] for i in range(0, len(values), every)]
    expected = [(min((i + 1) * every, 7) - 1, {"x": ORACLES[agg](window)}) for i, window in enumerate(windows)]
    assert logged(values, every=every, agg=agg) == expected
    assert logged([torch.tensor(value) for value in values], every=every, agg=agg) == expected


@pytest.mark.parametrize("agg", ["mean", "sum", "min", "max"])
@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "middle", "last"])
def test_nan_stays_nan(agg: str, place: int):
    values = [1.0, 2.0, 3.0]
    values[place] = math.nan
    assert math.isnan(logged(values, every=3, agg=agg)[0][1]["x"])


def test_integers_stay_exact_beyond_what_a_float_holds():
    assert logged([2**62, 2**62, 1], every=3, agg="sum") == [(2, {"x": 2**63 + 1})]
    assert logged([2**62 + 1, 2**62], every=2, agg="max") == [(1, {"x": 2**62 + 1})]


def test_names_choose_their_aggregation_by_themselves_by_group_or_by_default():
    steps: Steps = []
    agg = {"loss": "mean", "loss/total": "sum", "*": "max"}
    with ferry.MetricLog(lambda step, found: steps.append((step, found)), every=2, agg=agg) as log:
        for value in (1.0, 3.0):
            log.log({"loss": {"total": value, "part": value}, "other": -value})
    assert steps == [(1, {"loss/total": 4.0, "loss/part": 2.0, "other": -1.0})]


def test_names_that_are_not_in_every_step_count_where_they_are():
    steps: Steps = []
    with ferry.MetricLog(lambda step, found: steps.append((step, found)), every=4, agg="mean") as log:
        for step in range(4):
            log.log({"a": step, **({"b": step} if step % 2 else {})})
    assert steps == [(3, {"a": 1.5, "b": 2.0})]


def test_several_values_of_one_step_are_aggregated_too():
    steps: Steps = []
    with ferry.MetricLog(lambda step, found: steps.append((step, found)), agg={"loss": "mean"}) as log:
        for micro_batch in range(4):
            log.log({"loss": micro_batch, "lr": micro_batch}, step=7)
    assert steps == [(7, {"loss": 1.5, "lr": 3})]


def test_steps_are_counted_as_they_come_whatever_their_numbers():
    steps: Steps = []
    with ferry.MetricLog(lambda step, found: steps.append((step, found)), every=2, agg="sum") as log:
        for step in (0, 100, 200, 300, 400):
            log.log({"a": 1}, step=step)
    assert steps == [(100, {"a": 2}), (300, {"a": 2}), (400, {"a": 1})]
