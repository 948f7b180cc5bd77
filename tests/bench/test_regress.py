"""Two runs are compared by ratio and interval, never by time."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from helpers.bench_runs import against, failed, ours, private_copy, run_of
from tensorferry.bench import Result, regression
from tensorferry.bench._regress import Difference, show


def one(ratio, low, high, ours_s=1e-3, case="copy.private"):
    """Return a result with one peer, beside which ours has that ratio."""
    return Result(case, "", {"nbytes": 4096}, (ours(ours_s), against(ours_s, "peer", ratio, low, high)))


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        pytest.param((0.50, 0.45, 0.55), (0.60, 0.56, 0.66), "slower", id="intervals apart, the later above"),
        pytest.param((0.50, 0.45, 0.55), (0.60, 0.54, 0.66), "no difference", id="medians apart, intervals overlap"),
        pytest.param((0.60, 0.56, 0.66), (0.50, 0.45, 0.55), "faster", id="intervals apart, the later below"),
        pytest.param((0.50, 0.45, 0.55), (0.50, 0.45, 0.55), "no difference", id="the same"),
    ],
)
def test_only_intervals_that_do_not_overlap_count(before, after, verdict):
    found = regression(run_of([one(*before)]), run_of([one(*after)]))
    (change,) = found.changes
    assert change.verdict == verdict
    assert (change.before.median, change.after.median) == pytest.approx((before[0], after[0]))
    assert (change.before.low, change.after.high) == pytest.approx((before[1], after[2]))
    assert found.ok == (verdict != "slower")


def test_a_slower_machine_with_the_same_ratio_is_no_difference():
    found = regression(run_of([one(0.5, 0.45, 0.55)]), run_of([one(0.5, 0.45, 0.55, ours_s=1.0)]))
    assert [change.verdict for change in found.changes] == ["no difference"]


def test_the_first_run_s_best_peer_is_compared_even_when_another_is_best_later():
    before = Result("a.b", "", {}, (ours(1.0), against(1.0, "p", 0.8), against(1.0, "q", 0.7)))
    after = Result("a.b", "", {}, (ours(1.0), against(1.0, "p", 0.6), against(1.0, "q", 0.9)))
    found = regression(run_of([before]), run_of([after]))
    assert [(change.against, change.verdict) for change in found.changes] == [("p", "faster")]


def test_the_ratio_to_the_limit_is_compared_too():
    before = private_copy(1 << 20, "contiguous", 1e-3)
    worse = against(1e-3, "non-temporal copy", 2.0, 1.9, 2.1, form="limit")
    found = regression(run_of([before]), run_of([replace(before, limit=worse)]))
    slower = found.of("slower")
    assert [change.against for change in slower] == ["limit: non-temporal copy"]
    assert slower[0].place == "copy.private (1 MiB, contiguous)"


def test_the_largest_loss_comes_first():
    before = run_of([one(0.5, 0.5, 0.5, case=name) for name in ("a.a", "b.b", "c.c")])
    ratios = {"a.a": 0.6, "b.b": 0.9, "c.c": 0.4}
    after = run_of([one(ratio, ratio, ratio, case=name) for name, ratio in ratios.items()])
    assert [change.place[:3] for change in regression(before, after).changes] == ["b.b", "a.a", "c.c"]


def test_a_candidate_of_ours_that_begins_to_fail_is_a_regression():
    before = one(0.5, 0.4, 0.6)
    after = replace(before, measurements=(failed(before.ours.label, "raised ValueError: no", "ours"), *before.peers))
    found = regression(run_of([before]), run_of([after]))
    assert [(failure.form, failure.error) for failure in found.failing] == [("ours", "raised ValueError: no")]
    assert not found.ok
    assert found.changes == ()
    back = regression(run_of([after]), run_of([before]))
    assert back.ok
    assert [failure.label for failure in back.mended] == [before.ours.label]


def test_a_peer_that_begins_to_fail_is_told_but_is_no_regression():
    before = one(0.5, 0.4, 0.6)
    after = replace(before, measurements=(before.ours, failed("peer", "not installed: cupy")))
    found = regression(run_of([before]), run_of([after]))
    assert [failure.label for failure in found.failing] == ["peer"]
    assert found.ok


def test_points_that_only_one_run_has_are_told():
    small, large = one(0.5, 0.4, 0.6), replace(one(0.5, 0.4, 0.6), point={"nbytes": 1 << 20})
    found = regression(run_of([small]), run_of([large]))
    assert (found.lost, found.new) == (("copy.private (4 KiB)",), ("copy.private (1 MiB)",))
    assert found.ok


def test_points_match_whatever_the_order_of_their_parameters():
    first = private_copy(1 << 20, "contiguous", 1e-3)
    turned = replace(first, point=dict(reversed(first.point.items())))
    found = regression(run_of([first]), run_of([turned]))
    assert (found.lost, found.new, len(found.changes)) == ((), (), 2)


def test_differences_of_the_environment_are_told():
    found = regression(run_of([], torch="2.12.0"), run_of([], compiler="gcc 12"))
    assert set(found.environment) == {Difference("torch", "2.12.0", "2.13.0"), Difference("compiler", None, "gcc 12")}


def test_the_json_has_verdicts_and_is_plain():
    found = regression(run_of([one(0.5, 0.45, 0.55)]), run_of([one(0.9, 0.85, 0.95)]))
    document = json.loads(json.dumps(found.document()))
    assert document["ok"] is False
    assert document["changes"][0]["verdict"] == "slower"
    assert document["changes"][0]["after"]["median"] == pytest.approx(0.9)


def test_the_text_shows_both_ratios_and_the_counts():
    file = io.StringIO()
    found = regression(run_of([one(0.5, 0.45, 0.55)], torch="2.12.0"), run_of([one(0.9, 0.85, 0.95)]))
    show(found, Console(file=file, width=100, no_color=True))
    text = " ".join(file.getvalue().split())
    assert "copy.private (4 KiB) peer 0.50 (0.45, 0.55) 0.90 (0.85, 0.95)" in text
    assert "torch: 2.12.0 -> 2.13.0" in text
    assert "1 slower, 0 faster, 0 no difference (of 1 ratio that both runs have)." in text
