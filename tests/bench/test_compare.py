"""Rounds: who takes part, in which order, on which inputs, with how many threads."""

from __future__ import annotations

import gc
import itertools
import sys
import time
import types

import numpy as np
import pytest
import torch

import tensorferry as ferry
from tensorferry.bench import (
    BEST_PEER,
    LIMIT,
    Interrupted,
    at_least,
    at_most,
    best,
    compare,
    naive,
    ours,
    share_of_limit,
)


def numbers(rng, size=100):
    """Random inputs."""
    return {"x": rng.random(size)}


def slow(value):
    """Return a candidate that takes a fifth of a millisecond."""
    return lambda inputs: (time.sleep(0.0002), value)[1]


def test_every_candidate_has_a_figure_for_every_round():
    result = compare(
        {"a": "x.sum()", "b": "np.add.reduce(x)"}, setup=numbers, expected=lambda i: i["x"].sum(), rounds=7
    )
    assert result.rounds == 7
    assert [len(found.samples_s) for found in result.measurements] == [7, 7]
    assert result.complete
    assert result.ours.form == "ours"
    assert result.ours.code == "x.sum()"
    assert result.ours.kept == "least"
    assert result.ours.calls >= 10_000


def test_nobody_always_follows_the_same_one():
    log = []

    def logged(name):
        return lambda inputs: (log.append(name), time.sleep(0.0003))[1]

    compare({name: logged(name) for name in "abc"}, setup=numbers, rounds=40, warmup=1, seed=5)
    turns = [name for i, name in enumerate(log) if i == 0 or log[i - 1] != name]
    followers = {name: {b for a, b in itertools.pairwise(turns) if a == name} for name in "abc"}
    assert followers == {"a": {"b", "c"}, "b": {"a", "c"}, "c": {"a", "b"}}


def test_warm_up_rounds_do_not_count():
    result = compare({"a": slow(1)}, setup=numbers, expected=lambda inputs: 1, rounds=3, warmup=4)
    assert len(result.ours.samples_s) == 3


def test_samples_have_four_significant_digits():
    result = compare({"a": slow(1)}, setup=numbers, expected=lambda inputs: 1, rounds=3)
    assert [float(f"{sample:.3e}") for sample in result.ours.samples_s] == list(result.ours.samples_s)


def test_inputs_are_fresh_after_some_rounds_and_for_the_last_check():
    made = []

    def setup(rng):
        made.append(rng.random(100))
        return {"x": made[-1]}

    compare({"a": slow(1)}, setup=setup, expected=lambda inputs: 1, rounds=7, refresh=3)
    assert len(made) == 1 + 2 + 1  # at the start, after rounds 3 and 6, at the end
    assert len({inputs.tobytes() for inputs in made}) == len(made)


def test_the_same_seed_makes_the_same_inputs():
    made = []
    for _ in range(2):
        compare({"a": slow(1)}, setup=lambda rng: made.append(rng.random()) or {}, rounds=2, seed=7)
    assert made[:2] == made[2:]
    assert made[0] != made[1]


def test_the_point_is_handed_to_setup_and_kept():
    result = compare({"a": "len(x)"}, setup=numbers, expected=lambda i: 5, rounds=2, point={"size": 5})
    assert result.ours.error is None
    assert result.point == {"size": 5}


def test_expressions_know_numpy_and_the_modules_that_they_need():
    needing = best("b", "json.dumps(int(np.size(x)))", needs=("json",))
    result = compare([ours("a", "str(x.size)"), needing], setup=numbers, expected=lambda i: "100", rounds=2)
    assert [found.error for found in result.measurements] == [None, None]


def test_bytes_and_limit_are_measured_in_the_same_rounds():
    result = compare(
        {"a": "x.copy()"},
        setup=lambda rng: numbers(rng, 1 << 16),
        expected=lambda inputs: inputs["x"].copy(),
        nbytes=lambda inputs: 2 * inputs["x"].nbytes,
        limit="memcpy",
        rounds=6,
        goals=[share_of_limit(1e-9), share_of_limit(1e9)],  # however busy the machine is
    )
    assert result.nbytes == 1 << 20
    assert result.limit.form == "limit"
    assert len(result.limit.samples_s) == 6
    assert result.ratio(LIMIT).median > 0
    assert [goal.met for goal in result.goals] == [True, False]


def test_goals_are_judged_by_the_paired_ratio_where_they_hold():
    candidates = [
        ours("a", slow(1)),
        naive("b", lambda inputs: (time.sleep(0.05), 1)[1]),
        best("c", slow(1), ("nix",)),
    ]
    goals = [
        at_most(0.9, "b"),
        at_least(1000, BEST_PEER),
        at_most(1, "c"),
        at_most(1, "b", where=lambda point: point["size"] > 5),
    ]
    result = compare(candidates, setup=numbers, expected=lambda i: 1, rounds=5, goals=goals, point={"size": 4})
    assert [(goal.against, goal.met) for goal in result.goals] == [("b", True), (BEST_PEER, False), ("c", None)]
    assert result.goals[0].reached == result.ratio("b").median
    assert result.goals[2].reached == 0


def test_the_plan_is_told_in_words():
    result = compare({"a": "x + 1"}, setup=numbers, rounds=1, plan="'a view of %d' % x.size")
    assert result.plan == "a view of 100"
    failing = compare({"a": "x + 1"}, setup=numbers, rounds=1, plan="x.nothing")
    assert failing.plan.startswith("no plan: raised AttributeError")


@pytest.mark.parametrize(("rounds", "measured"), [(100, 30), (4, 4)], ids=["not below 30", "not below what is asked"])
def test_a_budget_ends_the_rounds(rounds, measured):
    result = compare({"a": slow(1)}, setup=numbers, expected=lambda i: 1, rounds=rounds, budget_s=0)
    assert result.rounds == measured
    assert result.complete


def test_threads_are_equal_for_all_and_then_what_they_were(monkeypatch):
    cv2 = types.SimpleNamespace(count=3)
    cv2.getNumThreads = lambda: cv2.count
    cv2.setNumThreads = lambda count: setattr(cv2, "count", count)
    monkeypatch.setitem(sys.modules, "cv2", cv2)
    before = torch.get_num_threads()
    seen = set()

    def look(inputs):
        seen.add((torch.get_num_threads(), cv2.count))
        time.sleep(0.0002)

    result = compare({"a": look}, setup=numbers, rounds=2, threads=before + 2)
    assert seen == {(before + 2, before + 2)}
    assert result.threads == before + 2
    assert (torch.get_num_threads(), cv2.count) == (before, 3)


def test_the_garbage_collector_rests_while_candidates_run():
    seen = set()
    assert gc.isenabled()
    compare({"a": lambda inputs: seen.add(gc.isenabled())}, setup=numbers, rounds=1)
    assert seen == {False}
    assert gc.isenabled()


def test_an_interrupt_keeps_the_rounds_that_were_completed():
    turns = []

    def interrupted(inputs):
        turns.append(1)
        time.sleep(0.0002)
        if rounds_done >= 4:
            raise KeyboardInterrupt

    rounds_done = 0

    def count(done, total):
        nonlocal rounds_done
        rounds_done = done

    before = torch.get_num_threads()
    with pytest.raises(KeyboardInterrupt) as stop:
        compare({"a": slow(None), "b": interrupted}, setup=numbers, rounds=9, on_round=count, threads=before + 1)
    assert isinstance(stop.value, Interrupted)
    result = stop.value.result
    assert not result.complete
    assert result.rounds == 4
    assert [len(found.samples_s) for found in result.measurements] == [4, 4]
    assert torch.get_num_threads() == before
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        pytest.param({"candidates": [ours("a"), best("a")]}, "labelled", id="two labels are equal"),
        pytest.param({"candidates": []}, "labelled", id="no candidates"),
        pytest.param({"rounds": 0}, "rounds=0", id="no rounds"),
        pytest.param({"threads": 0}, "threads=0", id="no threads"),
        pytest.param({"limit": "speed of light", "nbytes": 8}, "speed of light", id="no such limit"),
        pytest.param({"limit": "memcpy"}, "nbytes=0", id="a limit that moves nothing"),
        pytest.param({"destinations": ["out"]}, "out", id="a destination that setup did not make"),
        pytest.param({"device": "abacus"}, "abacus", id="no such device"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, given):
    call = {"candidates": {"a": "x"}, "setup": numbers, **arguments}
    with pytest.raises(ferry.FerryError) as refusal:
        compare(call.pop("candidates"), **call)
    assert given in refusal.value.given
    assert refusal.value.why
    assert refusal.value.instead


def test_figures_are_times_of_calls():
    result = compare({"a": lambda inputs: time.sleep(0.002)}, setup=numbers, rounds=3)
    assert np.all(np.array(result.ours.samples_s) >= 0.002)
    assert result.ours.median_s < 2
    assert (result.ours.calls, result.ours.kept) == (1, "mean")
    assert result.ours.cpu_share < 0.5
