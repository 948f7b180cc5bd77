"""The stopwatch: what it times, how often it calls, and what it leaves as it was."""

from __future__ import annotations

import gc
import time
import weakref

import pytest

from tensorferry.bench._clock import SHORT_CALLS, Bound, Size, Tally, bind, collector_resting, loop_over, size


class Counter:
    """Counts its calls and how many of its results live at once."""

    def __init__(self) -> None:
        self.calls = 0
        self.alive: weakref.WeakSet[Counter] = weakref.WeakSet()
        self.most_alive = 0

    def __call__(self, *_: object) -> object:
        self.calls += 1
        result = Counter()
        self.alive.add(result)
        self.most_alive = max(self.most_alive, len(self.alive))
        return result


def test_an_expression_sees_inputs_before_other_names():
    bound = bind("x + y", {"x": 1}, {"x": 100, "y": 10})
    assert bound.once() == 11


def test_a_function_gets_the_inputs():
    assert bind(lambda inputs: inputs["x"] * 2, {"x": 21}).once() == 42


@pytest.mark.parametrize("code", ["f()", lambda inputs: inputs["f"]()], ids=["an expression", "a function"])
def test_a_loop_makes_as_many_calls_as_it_is_told_and_drops_each_result(code):
    counter = Counter()
    assert bind(code, {"f": counter}).loop(100) > 0
    assert counter.calls == 100
    # The last result is dropped after the next is made where a name holds it; here none does.
    assert counter.most_alive == 1


@pytest.mark.parametrize("code", ["x = 1", "import os", "x) + (y", "del x"])
def test_what_is_no_expression_is_refused(code):
    with pytest.raises(SyntaxError):
        bind(code, {"x": 1, "y": 2})


def test_the_loop_around_an_expression_costs_less_than_a_call_of_an_empty_function():
    bare, called = bind("x", {"x": 1}).loop, bind("f()", {"f": lambda: None}).loop
    assert min(bare(10_000) for _ in range(20)) < min(called(10_000) for _ in range(20))


def test_a_sleep_lasts_as_long_as_it_says():
    seconds = bind("sleep(0.005)", {"sleep": time.sleep}).loop(3)
    assert 0.015 <= seconds < 10


def test_short_calls_are_made_ten_thousand_times_in_many_batches():
    counted = size(loop_over(lambda: None))
    assert counted.calls_in_all >= SHORT_CALLS
    assert counted.repeats >= 5


def test_long_calls_are_made_once():
    counted = size(loop_over(lambda: time.sleep(0.012)))
    assert (counted.calls, counted.repeats) == (1, 1)


def test_one_call_goes_untimed_before_each_figure():
    counter = Counter()
    bound = bind("f()", {"f": counter})
    tally, counted = Tally(), size(loop_over(lambda: time.sleep(0.012)))
    tally.take(bound, counted)
    assert counter.calls == 2
    assert len(tally.samples_s) == 1


def test_a_figure_is_the_least_mean_of_its_batches():
    batches = iter([8.0, 6.0, 10.0])
    tally = Tally()
    tally.take(Bound(once=lambda: None, loop=lambda calls: calls * next(batches)), Size(calls=5, repeats=3))
    assert tally.samples_s == [6.0]


def test_a_sleeping_thread_has_a_small_share_of_the_core():
    tally = Tally()
    tally.take(bind("sleep(0.05)", {"sleep": time.sleep}), size(loop_over(lambda: time.sleep(0.012))))
    assert 0 <= tally.cpu_share < 0.5


@pytest.mark.parametrize("collecting", [True, False], ids=["garbage collector on", "garbage collector off"])
def test_the_garbage_collector_rests_and_is_left_as_it_was(collecting):
    before = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        with collector_resting():
            assert not gc.isenabled()
        assert gc.isenabled() == collecting
        with pytest.raises(ZeroDivisionError), collector_resting():
            raise ZeroDivisionError
        assert gc.isenabled() == collecting
    finally:
        (gc.enable if before else gc.disable)()
