"""Memory of earlier steps is used again, and nobody who kept one of their values sees it change."""

from __future__ import annotations

from typing import Any

import torch

import tensorferry as ferry
from tensorferry._native import core


def test_steps_that_a_sink_keeps_stay_as_they_were():
    kept: list[dict[str, Any]] = []
    with ferry.MetricLog(lambda step, values: kept.append(values)) as log:
        for step in range(50):
            log.log({"a": torch.tensor(step + 0.5), "b": torch.tensor(step), "c": step * 1.5})
    assert kept == [{"a": step + 0.5, "b": step, "c": step * 1.5} for step in range(50)]


def test_single_numbers_that_a_sink_keeps_stay_as_they_were():
    kept: list[float] = []
    with ferry.MetricLog(lambda step, values: kept.append(values["a"])) as log:
        for step in range(50):
            log.log({"a": torch.tensor(step + 0.5)})
    assert kept == [step + 0.5 for step in range(50)]


def test_what_latest_gave_stays_as_it_was():
    kept = []
    with ferry.MetricLog(lambda step, values: None) as log:
        for step in range(50):
            log.log({"a": torch.tensor(step + 0.5)})
            kept.append(log.latest())
    assert kept[1:] == [(step, {"a": step + 0.5}) for step in range(49)]


def test_numbers_of_the_caller_are_never_written_to():
    mine = [float(str(step)) + 0.25 for step in range(20)]  # no constants
    with ferry.MetricLog(lambda step, values: None) as log:
        for step in range(20):
            log.log({"a": mine[step]})
            log.log({"a": torch.tensor(-1.0)})
    assert mine == [step + 0.25 for step in range(20)]


def test_names_that_change_their_order_or_their_spelling_are_read_as_they_are():
    kept: list[Any] = []
    with ferry.MetricLog(lambda step, values: kept.append(list(values.items()))) as log:
        for step in range(12):
            names = ["x", "y", "z"] if step % 3 else ["z", "x", f"y{step}"]
            log.log({name: torch.tensor(float(i)) for i, name in enumerate(names)})
    for step, items in enumerate(kept):
        names = ["x", "y", "z"] if step % 3 else ["z", "x", f"y{step}"]
        assert items == [(name, float(i)) for i, name in enumerate(names)]


def test_a_dict_and_its_floats_are_filled_again_only_where_nobody_holds_them():
    metrics = {"a": torch.tensor(1.5), "b": torch.tensor(2.5)}
    spares = [core.read_metrics(metrics, [], [])]
    identity = id(spares[0])
    metrics["a"] = torch.tensor(3.5)
    again = core.read_metrics(metrics, [], spares)
    assert (id(again), again, spares) == (identity, {"a": 3.5, "b": 2.5}, [])
    held = again["a"]
    spares.append(again)
    metrics["a"] = torch.tensor(4.5)
    other = core.read_metrics(metrics, [], spares)  # `again` holds it still
    assert other is not again
    assert (held, again, other) == (3.5, {"a": 3.5, "b": 2.5}, {"a": 4.5, "b": 2.5})
