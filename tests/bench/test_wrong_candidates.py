"""A candidate that fails or lies is named and left out, and the rest goes on."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

import tensorferry as ferry
from tensorferry.bench import Measurement, Ratio, best, compare, ours


def numbers(rng):
    """Random inputs, and somewhere to write to."""
    return {"x": rng.random(1000), "out": np.empty(1000)}


def doubled(inputs):
    """Return what every candidate should."""
    return inputs["x"] * 2


def measure(**candidates):
    """Compare a right candidate of ours with others."""
    return compare(
        {"right": "x + x", **candidates}, setup=numbers, expected=doubled, rounds=4, destinations=["out"], seed=1
    )


class Stale:
    """Keeps its first answer for ever."""

    def __init__(self) -> None:
        self.answer = None

    def __call__(self, inputs):
        if self.answer is None:
            self.answer = doubled(inputs)
        return self.answer


class FailsLater:
    """Is right a few times and then raises."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, inputs):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("worn out")
        return doubled(inputs)


def write_half(inputs):
    """Write the first half only."""
    np.add(inputs["x"][:500], inputs["x"][:500], out=inputs["out"][:500])
    return inputs["out"]


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        pytest.param("x + x + 1e-9", "wrong value before timing: the result: 1,000 of 1,000", id="values"),
        pytest.param("(x + x).astype('f4')", "wrong value before timing: the result has dtype float32", id="dtype"),
        pytest.param("(x + x)[None]", "wrong value before timing: the result has shape (1, 1000)", id="shape"),
        pytest.param("[x + x]", "wrong value before timing: the result is a list", id="a nest"),
        pytest.param("None", "wrong value before timing: the result is a NoneType", id="nothing"),
        pytest.param(Stale(), "wrong value after timing: the result: ", id="a stale answer"),
        pytest.param("x.nothing()", "raised AttributeError", id="raises at once"),
        pytest.param("x +", "raised SyntaxError", id="is no expression"),
        pytest.param(FailsLater(1), "raised RuntimeError: worn out", id="raises when timed"),
        pytest.param(FailsLater(20), "raised RuntimeError: worn out", id="raises later"),
        pytest.param(write_half, "wrong value before timing: the result: 500 of 1,000", id="leaves memory unwritten"),
    ],
)
def test_a_bad_peer_has_an_error_and_no_samples_and_the_rest_goes_on(bad, error):
    result = measure(bad=bad, good="np.add(x, x, out=out)")
    right, wrong, good = result.measurements
    assert wrong.error.startswith(error)
    assert wrong.samples_s == ()
    assert (right.error, good.error) == (None, None)
    assert len(right.samples_s) == len(good.samples_s) == 4
    assert result.complete
    assert result.best_peer is good
    assert result.ratio("bad") is None


def test_ours_failing_is_told_in_the_same_way():
    result = compare(
        {"ours": "x * 3", "peer": "x * 2"}, setup=numbers, expected=doubled, rounds=3, destinations=["out"]
    )
    assert result.ours.error.startswith("wrong value before timing")
    assert len(result.peers[0].samples_s) == 3
    assert result.ratio("peer") is None


def test_no_round_is_run_for_a_limit_alone():
    candidates = {"ours": "x * 3", "peer": "1 / 0"}
    result = compare(candidates, setup=numbers, expected=doubled, rounds=3, nbytes=4096, limit="memcpy")
    assert (result.rounds, result.limit.samples_s) == (0, ())
    assert result.peers[0].error == "raised ZeroDivisionError: division by zero"


@pytest.mark.parametrize("name", ["no_such_module_anywhere", "gone.part"])
def test_a_module_that_is_missing_is_named(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "gone", None)
    peers = [best("peer", "x * 2", needs=(name,)), best("other", "x + x", needs=("json", "numpy"))]
    result = compare([ours("x + x"), *peers], setup=numbers, expected=doubled, rounds=2, destinations=["out"])
    assert result.measurements[1].error.startswith(f"not installed: {name}")
    assert len(result.measurements[2].samples_s) == 2


def test_every_element_of_every_right_candidate_is_counted_before_and_after():
    result = measure(second="x * 2", bad="x * 3")
    assert result.checked_values == 2 * 2 * 1000


def test_a_check_without_expected_values_gets_the_inputs():
    seen = []

    def check(result, inputs):
        seen.append(sorted(inputs))
        assert np.array_equal(result, inputs["x"] * 2), "not doubled"

    result = compare({"a": "x + x", "b": "x"}, setup=numbers, check=check, rounds=2, destinations=["out"])
    assert seen[0] == ["out", "x"]
    assert result.ours.error is None
    assert result.peers[0].error.startswith("wrong value before timing: not doubled")
    assert result.checked_values == 2 * 1000


def test_a_check_with_expected_values_gets_them():
    def check(result, expected):
        assert abs(result - expected).max() < 1e-6

    result = compare(
        {"a": "x * 2 + 1e-9"}, setup=numbers, check=check, expected=doubled, rounds=2, destinations=["out"]
    )
    assert result.ours.error is None


def test_without_either_candidates_are_held_against_the_first_peer():
    result = compare({"ours": "x * 3", "b": "x * 2", "c": "x + x"}, setup=numbers, rounds=2, destinations=["out"])
    assert "held against what 'b' gave" in result.ours.error
    assert [found.error for found in result.peers] == [None, None]


def test_an_old_answer_in_the_destination_is_not_taken_for_a_new_one():
    result = measure(idle=lambda inputs: inputs["out"], good="np.add(x, x, out=out)")
    assert "1,000 of 1,000 values differ, the first is nan" in result.measurements[1].error


def everything(name, value):
    """Return a setup whose one large input has one value over and over."""
    return lambda rng: {"fine": rng.random(50), name: value}


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(np.zeros((40, 50)), id="zeros"),
        pytest.param(np.full(100, 7, np.int8), id="one value"),
        pytest.param(np.broadcast_to(np.float32(2.5), (30, 30)), id="one repeated element"),
        pytest.param(np.zeros(3), id="a few zeros"),
        pytest.param({"deep": [np.ones(64)]}, id="inside a nest"),
        pytest.param(torch.zeros(100, dtype=torch.bfloat16), id="a bfloat16 tensor"),
    ],
)
def test_inputs_that_prove_nothing_are_refused(value):
    with pytest.raises(ferry.ArgumentError) as refusal:
        compare({"a": "fine.sum()"}, setup=everything("stuff", value), rounds=1)
    assert "stuff" in refusal.value.given
    assert "values are" in refusal.value.why
    assert "generator" in refusal.value.instead


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(np.full(3, 0.5), id="a parameter of three equal values"),
        pytest.param(np.array(0.0), id="one number"),
        pytest.param(np.empty(0), id="nothing"),
        pytest.param(np.eye(200), id="mostly zeros"),
        pytest.param("text", id="text"),
    ],
)
def test_inputs_with_some_variety_are_taken(value):
    result = compare({"a": "fine.sum()"}, setup=everything("stuff", value), rounds=1)
    assert result.ours.error is None


def test_views_of_destinations_may_hold_zeros():
    def setup(rng):
        out = np.zeros((100, 2))
        return {"x": rng.random(100), "out": out, "view": out[:, 1]}

    candidate = "(np.copyto(view, x), view)[1]"
    result = compare({"a": candidate}, setup=setup, expected=lambda i: i["x"], destinations=["out"], rounds=1)
    assert result.ours.error is None


def test_a_ratio_has_the_quantiles_of_the_paired_ratios():
    rng = np.random.default_rng(3)
    ours_s, other_s = rng.random(30) + 0.5, rng.random(30) + 0.5
    ratio = Ratio.of(
        Measurement("a", "a", "ours", tuple(ours_s.tolist())), Measurement("b", "b", "best", tuple(other_s.tolist()))
    )
    wanted = np.quantile(ours_s / other_s, [0.1, 0.5, 0.9])
    np.testing.assert_allclose([ratio.low, ratio.median, ratio.high], wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.5, 0.99, "faster"),
        (0.5, 1.0, "no difference"),
        (0.9, 1.1, "no difference"),
        (1.0, 1.5, "no difference"),
        (1.01, 1.5, "slower"),
    ],
)
def test_an_interval_that_holds_one_is_no_difference(low, high, verdict):
    assert Ratio((low + high) / 2, low, high).verdict == verdict
