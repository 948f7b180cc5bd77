"""Choosing cases and running them."""

from __future__ import annotations

import json
import signal
import time

import pytest

import tensorferry as ferry
from tensorferry.bench import Candidate, Case, Interrupted, Run, at_most, best, load_cases, ours, run, select


def case(name, *peers, setup=lambda rng, size=100: {"x": rng.random(size)}, **more):
    """Return a case in which ours adds a number to itself."""
    peers = peers or (best("x * 2"),)
    return Case(name, f"about {name}", setup, (ours("x + x"), *peers), lambda inputs: inputs["x"] * 2, **more)


CASES = [case("view.small"), case("view.large"), case("copy.small"), case("copyright.all")]


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        pytest.param([], ["view.small", "view.large", "copy.small", "copyright.all"], id="none means all"),
        pytest.param(["view"], ["view.small", "view.large"], id="a first word"),
        pytest.param(["copy.small"], ["copy.small"], id="a full name"),
        pytest.param(["*.small"], ["view.small", "copy.small"], id="a pattern"),
        pytest.param(["copyright", "view.large", "view"], ["view.small", "view.large", "copyright.all"], id="several"),
    ],
)
def test_names_choose_cases_in_their_own_order(names, chosen):
    assert [found.name for found in select(CASES, names)] == chosen


def test_an_unknown_name_is_refused_with_those_that_are_close_and_all_that_are_known():
    with pytest.raises(ferry.ArgumentError) as refusal:
        select(CASES, ["view", "veiw.small"])
    assert refusal.value.given == "case 'veiw.small'"
    assert "did you mean 'view.small'" in refusal.value.instead
    assert all(known.name in refusal.value.instead for known in CASES)


def test_the_cases_that_ship_have_names_of_their_own():
    names = [found.name for found in load_cases()]
    assert len(names) == len(set(names)) > 10
    assert all("." in name for name in names)


def test_a_run_measures_every_point_and_tells_its_progress():
    progress = []
    made = run(
        [case("a.b", points=({"size": 5}, {"size": 6}), goals=(at_most(1e9, "x * 2"),), plan="x.size"), case("c.d")],
        rounds=2,
        seed=3,
        on_progress=lambda *told: progress.append(told),
    )
    assert [(result.case, result.point, result.rounds) for result in made.results] == [
        ("a.b", {"size": 5}, 2),
        ("a.b", {"size": 6}, 2),
        ("c.d", {}, 2),
    ]
    assert progress == [(0, 3, "a.b"), (1, 3, "a.b"), (2, 3, "c.d"), (3, 3, "")]
    assert made.results[0].goals[0].met is True
    assert made.results[1].plan == "6"
    assert made.results[1].title == "about a.b"
    assert (made.complete, made.quick, made.device, made.seed, made.results[2].seed) == (True, False, "cpu", 3, 3)


def test_a_quick_run_takes_the_quick_points_and_few_rounds():
    made = run([case("a.b", points=({"size": 5}, {"size": 6}), quick=({"size": 7},)), case("c.d")], quick=True)
    assert [(result.point, result.rounds) for result in made.results] == [({"size": 7}, 5), ({}, 5)]
    assert made.quick


def test_a_full_run_takes_thirty_rounds():
    assert (
        run([case("a.b", best("slow", lambda inputs: (time.sleep(2e-5), inputs["x"] * 2)[1]))]).results[0].rounds == 30
    )


def test_a_case_that_cannot_be_set_up_is_told_and_the_rest_goes_on():
    def broken(rng):
        raise RuntimeError("out of memory")

    made = run([case("a.b", setup=broken), case("c.d")], rounds=2)
    assert [found.error for found in made.results[0].measurements] == [
        "not run: raised RuntimeError: out of memory"
    ] * 2
    assert made.results[0].measurements[1].label == "x * 2"
    assert made.results[1].ours.error is None
    assert made.complete


def test_cases_for_another_device_are_left_out():
    assert run([case("a.b", devices=("cuda",))], rounds=1).results == ()


def test_setups_for_a_device_get_its_name(monkeypatch):
    from contextlib import contextmanager

    from tensorferry.bench import _compare

    @contextmanager
    def anywhere(device):
        yield lambda bound: bound

    monkeypatch.setattr(_compare, "on_device", anywhere)

    def setup(rng, device="cpu"):
        return {"x": rng.random(10), "device": device}

    made = run([case("a.b", setup=setup, devices=("cpu", "cuda"), plan="device")], device="cuda", rounds=1)
    assert made.results[0].point == {"device": "cuda"}
    assert made.results[0].plan == "cuda"


def test_what_is_done_is_saved_after_every_point(tmp_path):
    path = tmp_path / "results.json"
    seen = []

    def look(done, total, name):
        if path.exists():
            saved = Run.load(path)
            seen.append((len(saved.results), saved.complete))

    made = run([case("a.b"), case("c.d"), case("e.f")], rounds=1, save_to=path, on_progress=look)
    assert seen == [(1, False), (2, False), (3, True)]
    assert Run.load(path) == made


def test_an_interrupted_run_keeps_its_results_and_the_rounds_so_far(tmp_path):
    path = tmp_path / "results.json"
    calls = 0

    def interrupted(inputs):
        nonlocal calls
        calls += 1
        time.sleep(0.012)
        if calls > 20:
            signal.raise_signal(signal.SIGINT)  # what Ctrl-C does
        return inputs["x"] * 2

    with pytest.raises(KeyboardInterrupt) as stop:
        run([case("a.b"), case("c.d", best("slow", interrupted)), case("e.f")], rounds=20, seed=5, save_to=path)
    assert isinstance(stop.value, Interrupted)
    saved = Run.load(path)
    assert saved == stop.value.run
    assert not saved.complete
    assert [(result.case, result.complete) for result in saved.results] == [("a.b", True), ("c.d", False)]
    rounds = saved.results[1].rounds
    assert 1 <= rounds < 20
    assert [len(found.samples_s) for found in saved.results[1].measurements] == [rounds, rounds]
    json.loads(path.read_text(), parse_constant=lambda constant: pytest.fail(constant))


def test_an_interrupt_before_the_first_figure_is_kept_too(tmp_path):
    def stopped(rng):
        raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        run([case("a.b", setup=stopped)], save_to=tmp_path / "results.json")
    assert Run.load(tmp_path / "results.json").results == ()


def test_threads_and_labels_are_kept():
    made = run([case("a.b", Candidate("by hand", lambda inputs: inputs["x"] * 2))], rounds=1, threads=1)
    assert made.results[0].threads == 1
    assert made.results[0].peers[0].code == "<lambda>"
    assert made.environment["python"]
