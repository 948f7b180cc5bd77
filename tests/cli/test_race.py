"""``tensorferry demo race``: the usual way races on a simulated device, ours does not, a broken rule is noticed."""

from __future__ import annotations

import dataclasses

import pytest

from helpers.console import run_here, run_outside
from tensorferry._demo import _race
from tensorferry._demo._race import Nest, Race, Report

SEEDS = 60


@pytest.fixture(scope="module")
def outside():
    """One run of the real command, in a new interpreter, which must not need torch."""
    return run_outside("demo", "race", "--json", "--seeds", str(SEEDS), without=("torch",))


def races(document, name, **wanted):
    return [race for race in document[name] if all(race[key] == value for key, value in wanted.items())]


def test_the_usual_way_reads_poison_each_time_that_work_runs_late(outside):
    (race,) = races(outside.document, "usual", schedule="lazy")
    assert race["poisoned"] == race["wrong"] == race["seeds"] == SEEDS


def test_the_usual_way_is_right_where_the_device_is_fast(outside):
    (race,) = races(outside.document, "usual", schedule="eager")
    assert race["wrong"] == 0


def test_ours_are_right_in_every_order(outside):
    assert outside.code == 0, outside.stderr
    ours = outside.document["ours"]
    assert {race["code"] for race in ours} == {"to_numpy(x)", "to_numpy_async(x).result()"}
    assert [(race["wrong"], race["violations"], race["seeds"]) for race in ours] == [(0, [], SEEDS)] * 4
    assert max(race["orders"] for race in races(outside.document, "ours", schedule="shuffled")) > 20


def test_each_rule_that_is_switched_off_is_noticed(outside):
    for rule in ("the host waits for the copy's event", "the copy waits for the snapshot's event"):
        assert races(outside.document, "switched_off", rule=rule, schedule="lazy", wrong=SEEDS) != []


def test_a_nest_is_one_batch(outside):
    nest = Nest(**outside.document["nest"])
    assert (nest.tensors, nest.wrong, nest.violations) == (64, 0, [])
    assert (nest.copies, nest.events, nest.waits) == (64, 1, 1)


def test_it_is_called_simulated_in_the_document_and_progress_goes_to_stderr(outside):
    assert outside.document["simulated"] is True
    assert outside.document["complaints"] == []
    assert outside.stdout.startswith("{")
    assert "simulated" in outside.stderr


def report(**changes):
    """A report without a complaint, but for the changes."""
    right = Race("to_numpy(x)", "", "shuffled", 1000, 0, 0, None, 12, [])
    raced = Race("host.numpy()", "", "lazy", 1000, 1000, 1000, 0, 1, [])
    noticed = Race("to_numpy(x)", "the host waits", "shuffled", 1000, 19, 0, 7, 12, [])
    trace = ["cuCtxGetCurrent"] * 3 + [f"cuMemcpyDtoHAsync bytes=64 from=device#{i}+0 to=host#1+0" for i in range(2)]
    trace += ["cuEventRecord event=event#2 stream=legacy", "cuEventQuery event#2", "cuEventQuery event#2"]
    made = Report([raced], [right], [noticed], Nest("to_numpy(nest)", 2, 0, trace, []), 1.5)
    return dataclasses.replace(made, **changes)


def shown(capsys, monkeypatch, made, *options):
    monkeypatch.setattr(_race, "run", lambda progress, checkout, seeds: made)
    return run_here(capsys, "demo", "race", *options)


def test_the_text_tells_outcomes_and_the_compacted_trace(capsys, monkeypatch):
    ran = shown(capsys, monkeypatch, report())
    assert ran.code == 0
    assert "lazy, 1,000 times: poison every time" in ran.stdout
    assert "shuffled, 1,000 seeds in 12 orders: right every time" in ran.stdout
    assert "wrong values 19 times, first with seed 7" in ran.stdout
    assert "2 x cuMemcpyDtoHAsync bytes=64\n" in ran.stdout
    assert "2 x cuEventQuery event#2" in ran.stdout
    assert "3 calls ask" in ran.stdout
    assert "2 tensors: 2 copies, 1 event, 1 wait" in ran.stdout
    assert ran.stdout.count("imulated") >= 4


@pytest.mark.parametrize("columns", [80, 120])
def test_no_line_is_wider_than_the_terminal(capsys, monkeypatch, columns):
    from tensorferry.cli import _race_view

    monkeypatch.setenv("COLUMNS", str(columns))
    _race_view.show(report())
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= columns


ASKED_TWICE = Nest(
    "to_numpy(nest)",
    2,
    0,
    ["cuMemcpyDtoHAsync", "cuEventRecord", "cuEventQuery", "cuMemcpyDtoHAsync", "cuEventRecord", "cuEventQuery"],
    [],
)
BAD = {
    "a wrong value of ours": (
        {"ours": [dataclasses.replace(report().ours[0], wrong=3, first_wrong_seed=5)]},
        "to_numpy(x): 3 of 1,000 wrong",
    ),
    "a violation of ours": (
        {"ours": [dataclasses.replace(report().ours[0], violations=["ran after device#1 was freed"])]},
        "to_numpy(x): ran after device#1 was freed",
    ),
    "a rule that nobody noticed": (
        {"switched_off": [dataclasses.replace(report().switched_off[0], wrong=0)]},
        'the check did not notice that "the host waits" was switched off',
    ),
    "a usual way that was right": (
        {"usual": [dataclasses.replace(report().usual[0], wrong=990, poisoned=990)]},
        "the usual way was right 10 times",
    ),
    "a nest in two batches": ({"nest": ASKED_TWICE}, "not one event and one wait, but 2 and 2"),
    "a wrong leaf": (
        {"nest": dataclasses.replace(report().nest, wrong=1)},
        "to_numpy(nest): 1 of 2 tensors wrong",
    ),
}


@pytest.mark.parametrize(("changes", "complaint"), BAD.values(), ids=BAD)
def test_what_must_not_be_exits_1_and_is_named(capsys, monkeypatch, changes, complaint):
    ran = shown(capsys, monkeypatch, report(**changes))
    assert ran.code == 1
    assert complaint in " ".join(ran.stdout.split())
    document = shown(capsys, monkeypatch, report(**changes), "--json").document
    assert document["ok"] is False
    assert any(complaint in line for line in document["complaints"])


def test_a_directory_that_is_no_checkout_is_wrong_usage(capsys, tmp_path):
    ran = run_here(capsys, "demo", "race", "--checkout", tmp_path)
    assert ran.code == 2
    assert "no checkout of tensorferry" in " ".join(ran.stderr.replace("│", " ").split())


def test_without_a_checkout_the_error_says_what_it_needs(capsys, monkeypatch):
    monkeypatch.setattr(_race, "is_checkout", lambda directory: False)
    ran = run_here(capsys, "demo", "race")
    assert (ran.code, ran.stdout) == (1, "")
    assert "--checkout DIRECTORY" in ran.stderr
    assert "compiler" in ran.stderr


def test_without_a_compiler_the_error_says_so(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TENSORFERRY_TEST_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("TENSORFERRY_FAKE_CUDA", raising=False)
    ran = run_here(capsys, "demo", "race", "--seeds", "1")
    assert (ran.code, ran.stdout) == (1, "")
    assert "C++20 compiler" in ran.stderr
    assert "race.py" in ran.stderr
