"""Steps and names: how calls become steps, and what is refused."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry

Steps = list[tuple[int, dict[str, Any]]]


@pytest.fixture
def steps() -> Steps:
    return []


@pytest.fixture
def log(steps: Steps) -> ferry.MetricLog:
    return ferry.MetricLog(lambda step, values: steps.append((step, values)))


def test_steps_count_up_from_zero_and_go_on_after_a_given_one(log: Any, steps: Steps):
    log.log({"a": 0})
    log.log({"a": 1})
    log.log({"a": 2}, step=10)
    log.log({"a": 3})
    log.close()
    assert steps == [(0, {"a": 0}), (1, {"a": 1}), (10, {"a": 2}), (11, {"a": 3})]


def test_one_step_merges_until_a_larger_one_arrives(log: Any, steps: Steps):
    log.log({"a": 1, "b": 1}, step=5)
    log.log({"b": 2, "c": 3}, step=5)
    assert steps == []
    log.log({"a": 4}, step=6)
    assert steps == [(5, {"a": 1, "b": 2, "c": 3})]
    log.close()


@pytest.mark.parametrize("step", [4, 0, -1])
def test_a_smaller_step_is_a_value_error_and_changes_nothing(log: Any, steps: Steps, step: int):
    log.log({"a": 1}, step=5)
    with pytest.raises(ValueError, match="step 5 was logged already"):
        log.log({"a": 2}, step=step)
    log.close()
    assert steps == [(5, {"a": 1})]


def test_a_step_that_flush_has_delivered_is_closed(log: Any, steps: Steps):
    log.log({"a": 1}, step=5)
    log.flush()
    assert steps == [(5, {"a": 1})]
    with pytest.raises(ValueError, match="delivered by flush"):
        log.log({"a": 2}, step=5)
    log.log({"a": 3})
    log.close()
    assert steps[1] == (6, {"a": 3})


def test_steps_of_numpy_count_like_ints_and_others_are_refused(log: Any, steps: Steps):
    log.log({"a": 1}, step=np.int64(3))
    with pytest.raises(ferry.ArgumentError, match="whole number"):
        log.log({"a": 1}, step=3.5)
    log.close()
    assert steps == [(3, {"a": 1})]
    assert type(steps[0][0]) is int


@dataclass
class Losses:
    total: Any
    parts: Any


Pair = namedtuple("Pair", "x y")


def test_names_are_joined_by_slashes_in_the_order_of_insertion(log: Any, steps: Steps):
    log.log(
        {
            "z": 1,
            "a": {"z": 2, "a": OrderedDict(q=3)},
            "list": [4, (5, 6)],
            "losses": Losses(torch.tensor(7.5), Pair(8, 9)),
            3: 10,
        }
    )
    log.close()
    assert list(steps[0][1].items()) == [
        *(("z", 1), ("a/z", 2), ("a/a/q", 3), ("list/0", 4), ("list/1/0", 5), ("list/1/1", 6)),
        *(("losses/total", 7.5), ("losses/parts/x", 8), ("losses/parts/y", 9), ("3", 10)),
    ]


def test_elements_of_small_tensors_have_names_of_their_own(log: Any, steps: Steps):
    log.log(
        {"first": 0, "m": torch.tensor([[1, 2], [3, 4]]), "one": torch.tensor([[5.0]]), "n": np.arange(2), "last": 1}
    )
    log.close()
    assert list(steps[0][1].items()) == [
        *(("first", 0), ("m/0/0", 1), ("m/0/1", 2), ("m/1/0", 3), ("m/1/1", 4)),
        *(("one", 5.0), ("n/0", 0), ("n/1", 1), ("last", 1)),
    ]


def test_a_namespace_stands_in_front_of_every_name(steps: Steps):
    with ferry.MetricLog(lambda step, values: steps.append((step, values)), namespace="train") as log:
        log.log({"loss": 1, "a": {"b": torch.tensor(2)}})
        log.log_histogram("h", torch.ones(3), bins=1)
    assert steps[0] == (0, {"train/loss": 1, "train/a/b": 2})
    assert list(steps[1][1]) == ["train/h"]


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "text": ({"a": "b"}, TypeError, "metric 'a'"),
    "None": ({"x": {"y": None}}, TypeError, "metric 'x/y'"),
    "a complex tensor": ({"a": torch.tensor(1j)}, TypeError, "real"),
    "a complex number": ({"a": 1j}, TypeError, "real"),
    "a large tensor": ({"a": torch.zeros(2000)}, ValueError, "log_stats"),
    "a meta tensor": ({"a": torch.zeros((), device="meta")}, RuntimeError, "metric 'a'"),
    "two values of one name": ({"a/b": 1, "a": {"b": 2}}, ValueError, "'a/b'"),
    "an element that is called like another metric": ({"a": torch.zeros(2), "a/1": 3}, ValueError, "'a/1'"),
    "no nest": (torch.tensor(1.0), ValueError, "needs a name"),
}


@pytest.mark.parametrize(("metrics", "kind", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_metric_is_refused_by_name_and_changes_nothing(
    log: Any, steps: Steps, metrics: Any, kind: type[Exception], words: str
):
    with pytest.raises(ferry.FerryError, match=words) as caught:
        log.log(metrics, step=3)
    assert isinstance(caught.value, kind)
    assert all((caught.value.given, caught.value.why, caught.value.instead))
    log.log({"a": 1}, step=2)
    log.close()
    assert steps == [(2, {"a": 1})]


def test_a_nest_that_contains_itself_is_refused(log: Any):
    nest: dict[str, Any] = {"a": 1}
    nest["b"] = nest
    with pytest.raises(ferry.LayoutError, match="contains itself"):
        log.log(nest)
    log.close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"depth": 0}, "depth=0"),
        ({"every": 1.5}, "every=1.5"),
        ({"agg": "median"}, "median"),
        ({"agg": {"a": "median"}}, "median"),
        ({"on_full": "block"}, "on_full"),
        ({"on_nan": "ignore"}, "on_nan"),
        ({"ranks": "some"}, "ranks"),
    ],
    ids=lambda value: str(value),
)
def test_arguments_that_mean_nothing_are_refused(arguments: dict[str, Any], words: str):
    with pytest.raises(ferry.ArgumentError, match=words):
        ferry.MetricLog(**arguments)


def test_a_closed_log_takes_nothing_more(log: Any, steps: Steps):
    log.log({"a": 1})
    log.close()
    log.close()
    with pytest.raises(ferry.ArgumentError, match="closed"):
        log.log({"a": 2})
    assert steps == [(0, {"a": 1})]


def test_an_error_of_the_block_goes_before_those_of_sinks():
    def fails(step: int, values: dict[str, Any]) -> None:
        raise ValueError("sink")

    def train() -> None:
        with ferry.MetricLog(fails) as log:
            log.log({"a": 1})
            raise KeyError("block")

    with pytest.raises(KeyError):
        train()


def test_latest_is_the_newest_complete_step(log: Any):
    assert log.latest() == (None, {})
    log.log({"a": 1})
    assert log.latest().step is None
    log.log({"a": 2})
    assert log.latest() == (0, {"a": 1})
    log.close()
    assert log.latest() == (1, {"a": 2})
