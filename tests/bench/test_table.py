"""The table of a run shows the figures of the run, and can be read at 100 columns without colour."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from helpers.bench_runs import against, made_up_run, ours, private_copy, run_of
from tensorferry.bench import Result, show
from tensorferry.bench._summary import summarise
from tensorferry.bench._words import number_text, point_text, share_text


def shown(found, width=100):
    """Return the lines as a terminal of that width, without colour, has them."""
    file = io.StringIO()
    show(found, Console(file=file, width=width, no_color=True, markup=False, emoji=False, highlight=False))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def row(lines, start):
    """Return the words of the first line that begins with `start`, after it."""
    return next(line[len(start) :].split() for line in lines if line.startswith(start))


@pytest.fixture
def lines():
    """One point: ours 5 ms for 64 MiB, peers 20, 10 and 10.4 ms, the limit 4 ms."""
    return shown(private_copy(64 << 20, "contiguous", 5e-3))


def test_ours_has_time_speed_and_share_of_the_limit_but_no_ratio_to_itself(lines):
    assert row(lines, "  ferry.to_numpy(t, copy=True)") == ["5.00", "ms", "26.8", "80%"]


def test_a_peer_has_the_ratio_of_ours_to_it_with_the_interval_and_the_goal_against_it(lines):
    expected = ["20.0", "ms", "6.71", "20%", "0.25", "(0.22,", "0.28)", "faster", "<=0.33", "met"]
    assert row(lines, "  t.clone().numpy()") == expected


def test_the_fastest_peer_is_marked_and_has_the_goal_against_the_best_peer(lines):
    marked = [line for line in lines if line.startswith("* ")]
    assert len(marked) == 1
    assert row(lines, "* t.numpy().copy()")[-3:] == ["faster", "<=1.00", "met"]


def test_an_interval_that_holds_1_is_no_difference(lines):
    assert row(lines, "  np.array(t) (naive)")[4:] == ["0.48", "(0.40,", "1.10)", "no", "difference"]


def test_the_limit_is_a_row_with_the_share_that_is_wanted(lines):
    assert row(lines, "  limit: non-temporal copy") == ["4.00", "ms", "33.6", "1.25", "(1.12,", "1.38)", ">=80%", "met"]


def test_no_line_is_wider_than_the_terminal_and_nothing_is_cut_off():
    for width in (80, 100, 120):
        lines = shown(made_up_run(), width)
        assert max(map(len, lines)) <= width
        assert not any("…" in line for line in lines)


def test_a_narrow_terminal_keeps_times_ratios_and_goals():
    narrow = shown(private_copy(64 << 20, "contiguous", 5e-3), 80)
    assert row(narrow, "  t.clone().numpy()") == ["20.0", "ms", "20%", "0.25", "(0.22,", "0.28)", "<=0.33", "met"]


def test_a_failure_stands_in_its_row_with_its_reason_and_no_figures():
    lines = shown(made_up_run())
    text = " ".join(" ".join(lines).split())
    assert next(line for line in lines if line.startswith("  ferry.to_numpy(t,") and "FAILED" in line)
    assert "3 of 64 values differ" in text
    assert [line.split() for line in lines if "absent" in line] == [["cupy.asarray(t)", "absent"]]
    assert "not installed: cupy" in text


def test_a_goal_against_what_is_not_there_is_not_measured():
    lines = shown(made_up_run())
    at = next(i for i, line in enumerate(lines) if line.startswith("  (goal) at most 0.5x"))
    assert "not measured" in lines[at]


def test_an_interrupted_point_says_after_how_many_rounds():
    assert "float64 to float32  [interrupted after 11 rounds]" in shown(made_up_run())


def test_a_simulated_point_says_so():
    result = replace(private_copy(1 << 20, "contiguous", 1e-4), origin="simulated")
    assert "1 MiB, contiguous  [simulated]" in shown(result)


def test_the_summary_counts_goals_and_names_those_that_are_not_met():
    text = " ".join(" ".join(shown(made_up_run())).split())
    # six points with three goals each: at the three transposed ones ours is slower than the best peer
    assert "Goals: 15 met, 4 NOT MET, 1 not measured" in text
    assert "copy.private: at most 1x the best peer: met at 3 of 6 points, worst ratio 1.50 (1 MiB, transposed)" in text
    assert "view.tensor: at most 0.45x t.numpy(): met at 0 of 1 point, worst ratio 0.48" in text


def test_the_summary_names_the_largest_ratios_first_and_the_failures():
    lines = shown(made_up_run())
    at = next(i for i, line in enumerate(lines) if line.startswith("Against the best peer: "))
    assert lines[at] == "Against the best peer: 4 faster, 0 no difference, 3 slower. The largest ratios:"
    assert lines[at + 1].strip() == "1.50 (1.32, 1.68)  copy.private (1 MiB, transposed): t.numpy().copy()"
    assert "6,064 values were compared with the expected ones; OURS ARE NOT ALL RIGHT." in lines


def test_the_last_lines_name_machine_and_versions():
    text = " ".join(" ".join(shown(made_up_run())).split())
    assert text.endswith(
        "Full run of 2026-01-02T03:04:05+00:00 on cpu; tensorferry 0.1.0, torch 2.13.0, numpy 2.4.6, "
        "processor a made-up one, threads 1 or 2."
    )


def test_a_run_with_failing_peers_only_is_ok():
    wrong_peer = replace(against(1.0, "peer", 0.5), samples_s=(), error="raised ValueError: no")
    result = Result("a.b", "", {}, (ours(1.0), wrong_peer))
    summary = summarise(run_of([result]).results)
    assert summary.ok
    assert [one.label for _, one in summary.peers_failed] == ["peer"]
    assert not summarise(made_up_run().results).ok


@pytest.mark.parametrize(
    ("point", "text"),
    [
        pytest.param({}, "", id="no parameter"),
        pytest.param({"nbytes": 64 << 20, "dtype": "float32"}, "64 MiB, float32", id="a size and a dtype"),
        pytest.param({"nbytes": 1 << 12}, "4 KiB", id="kibibytes"),
        pytest.param({"nbytes": 1048572}, "1 MiB", id="all but a mebibyte"),
        pytest.param({"rows": 4096, "columns": 512}, "4096 x 512", id="a matrix"),
        pytest.param({"items": 1000}, "1,000 items", id="a plural"),
        pytest.param({"count": 1000}, "count 1,000", id="a singular"),
        pytest.param({"share": 0.5}, "share 0.5", id="a fraction"),
    ],
)
def test_points_read_as_people_say_them(point, text):
    assert point_text(point) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0042, "0.004"), (0.0001, "1e-04"), (0.31, "0.31"), (9.999, "10.0"), (12.34, "12.3"), (1234.5, "1,234")],
)
def test_ratios_have_two_or_three_digits(number, text):
    assert number_text(number) == text


@pytest.mark.parametrize(("share", "text"), [(0.8, "80%"), (1.2, "120%"), (0.031, "3.1%"), (None, "")])
def test_shares_are_percentages(share, text):
    assert share_text(share) == text
