"""``tensorferry demo traps``: what happened on both sides is observed, and ours is right."""

from __future__ import annotations

import re

import pytest

from helpers.console import run_here, run_outside
from tensorferry._demo import _probes, _traps

_NAMES = ["gradient", "negative", "strides", "mean", "readonly", "mapped"]


@pytest.fixture(scope="module")
def outside():
    """One run of the real command, in a new interpreter."""
    return run_outside("demo", "traps", "--json")


def test_no_accident_happens_with_tensorferry(outside):
    assert outside.code == 0
    assert outside.document["ok"]
    assert [trap["name"] for trap in outside.document["traps"]] == _NAMES
    assert [trap["name"] for trap in outside.document["traps"] if not trap["ours"]["right"]] == []


def test_progress_goes_to_stderr_and_json_alone_to_stdout(outside):
    assert outside.stdout.startswith("{")
    assert outside.stderr.count("running") == len(_NAMES)


@pytest.mark.parametrize("name", _NAMES)
def test_every_side_says_what_it_ran_and_what_it_saw(outside, name):
    trap = next(trap for trap in outside.document["traps"] if trap["name"] == name)
    assert all(trap[side]["code"] and trap[side]["seen"] for side in ("usual", "ours"))


def test_values_that_both_sides_saw(outside):
    seen = {trap["name"]: (trap["usual"]["seen"], trap["ours"]["seen"]) for trap in outside.document["traps"]}
    assert "RuntimeError" in seen["gradient"][1]
    assert "read-only" in seen["gradient"][1]
    assert seen["negative"][1].startswith("[-2.0] and [-2.0]")
    assert "[3.0, 2.0, 1.0, 0.0]" in seen["strides"][1]
    assert "CopyRequiredError" in seen["strides"][1]
    assert "the mean is 1" in seen["mean"][1]
    assert "[0.0, 1.0, 2.0]" in seen["readonly"][1]
    assert "ReadOnlyError" in seen["mapped"][1]


def test_what_the_other_side_saw_agrees_with_its_verdict(outside):
    for trap in outside.document["traps"]:
        usual = trap["usual"]
        died = usual["signal"] in ("SIGABRT", "SIGSEGV", "SIGBUS")
        assert died == ("died of" in usual["seen"]), trap["name"]
        assert not (died and usual["right"]), trap["name"]


def _replaced(monkeypatch, **outcomes):
    """Let every probe run here, those named with the outcome given and the others with a good one."""
    probes = {name: lambda: _probes.Outcome(True, "all well") for name in _probes.PROBES}
    probes.update({name: (lambda outcome=outcome: outcome) for name, outcome in outcomes.items()})
    monkeypatch.setattr(_probes, "PROBES", probes)
    monkeypatch.setattr(_traps, "_observe_outside", _traps._observe_here)


def test_a_trap_that_no_longer_happens_is_called_fine(capsys, monkeypatch):
    _replaced(monkeypatch, gradient_usual=_probes.Outcome(False, "no error; gradient [0.0]"))
    ran = run_here(capsys, "demo", "traps")
    assert ran.code == 0
    assert len(re.findall(r"^usual +TRAP ", ran.stdout, re.MULTILINE)) == 1
    assert len(re.findall(r"^usual +fine here ", ran.stdout, re.MULTILINE)) == len(_NAMES) - 1
    assert "1 of 6 accidents happened just now" in ran.stdout


def test_an_accident_of_ours_exits_1_and_is_named(capsys, monkeypatch):
    _replaced(monkeypatch, mean_ours=_probes.Outcome(False, "mean 0.256"))
    ran = run_here(capsys, "demo", "traps")
    assert ran.code == 1
    assert re.search(r"^tensorferry +WRONG .*\n +mean 0\.256", ran.stdout, re.MULTILINE)
    assert "WRONG with tensorferry: The mean of 1,000 ones is not 1" in " ".join(ran.stdout.split())


def test_an_unexpected_error_of_ours_is_wrong_not_fine(capsys, monkeypatch):
    def broken():
        raise KeyError("lost")

    _replaced(monkeypatch)
    monkeypatch.setitem(_probes.PROBES, "negative_ours", broken)
    ran = run_here(capsys, "demo", "traps", "--json")
    assert ran.code == 1
    ours = next(trap["ours"] for trap in ran.document["traps"] if trap["name"] == "negative")
    assert (ours["right"], ours["seen"]) == (False, "KeyError: 'lost'")


def test_without_torch_the_command_says_what_to_install():
    ran = run_outside("demo", "traps", without=("torch",))
    assert (ran.code, ran.stdout) == (1, "")
    assert "tensorferry[torch]" in ran.stderr
