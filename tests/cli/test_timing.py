"""The demo's stopwatch: interleaved, paired, and written with units that people read."""

from __future__ import annotations

import gc
import itertools
import time

import pytest

from tensorferry.bench._clock import Timed, Turn, paired_ratios, time_together
from tensorferry.cli._output import counted, human_bytes, human_seconds


def test_calls_take_turns_round_by_round():
    log = []

    def call(name):
        log.append(name)
        time.sleep(0.0002)

    time_together({name: Turn(lambda name=name: call(name)) for name in "ab"}, rounds=5)
    turns = [name for name, _ in itertools.groupby(log)]
    assert turns[-10:] == ["a", "b"] * 5


def test_every_sample_is_prepared_for():
    log = []
    time_together({"a": Turn(lambda: time.sleep(0.0002), lambda: log.append(1))}, rounds=4)
    assert len(log) == 5  # one for finding the number of calls, one a round


def test_a_sleep_is_timed_as_long_as_it_lasts_and_its_core_is_seen_idle():
    timed = time_together({"nap": Turn(lambda: time.sleep(0.002))}, rounds=5)["nap"]
    assert len(timed.samples_s) == 5
    assert 0.002 <= timed.median_s < 2  # seconds, and of one call
    assert timed.cpu_share < 0.7


def test_the_ratio_is_the_median_of_pairs_not_the_ratio_of_medians():
    ours = Timed([1.0, 10.0, 3.0], 1.0)
    other = Timed([2.0, 5.0, 4.0], 1.0)
    low, median, high = paired_ratios(ours, other)
    assert (low, median, high) == (0.625, 0.75, 1.375)


@pytest.mark.parametrize("collecting", [True, False], ids=["garbage collector on", "garbage collector off"])
def test_the_garbage_collector_is_left_as_it_was(collecting):
    before = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        time_together({"a": Turn(lambda: None)}, rounds=2)
        assert gc.isenabled() == collecting
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (4.8e-7, "480 ns"),
        (2.5e-9, "2.50 ns"),
        (1.314e-3, "1.31 ms"),
        (9.996e-7, "1.00 us"),
        (12.34, "12.3 s"),
        (0, "0.00 ns"),
    ],
)
def test_times_have_three_digits_and_a_unit(seconds, text):
    assert human_seconds(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (203264, "203 kB"), (6_558_720, "6.56 MB"), (5e15, "5000 TB")],
)
def test_sizes_have_three_digits_and_a_decimal_unit(count, text):
    assert human_bytes(count) == text


def test_numbers_agree_with_their_noun():
    assert [counted(n, "copy", "copies") for n in (0, 1, 2000)] == ["0 copies", "1 copy", "2,000 copies"]
