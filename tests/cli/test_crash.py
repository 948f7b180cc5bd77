"""``tensorferry demo crash``: files of torch.save are lost, ours are not, and what is lost is counted."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from helpers.console import run_here, run_outside
from tensorferry._demo import _crash, _crash_child
from tensorferry._demo._crash import Report, Side


@pytest.fixture(scope="module")
def outside():
    """One run of the real command, in a new interpreter."""
    return run_outside("demo", "crash", "--json", "--kills", "12", "--seed", "7")


def test_none_of_ours_is_lost_and_nothing_is_left_beside_them(outside):
    assert outside.code == 0, outside.stderr
    ours = [side for side in outside.document["sides"] if side["is_ours"]]
    assert [(side["kills"], side["whole"], side["left_nbytes"]) for side in ours] == [(12, 12, 0)] * 2


def test_every_kill_is_counted_once_and_the_seed_is_told(outside):
    for side in outside.document["sides"]:
        assert side["whole"] + side["unreadable"] + side["mixed"] == side["kills"] == 12
    assert outside.document["seed"] == 7
    assert "killing torch.save(state, path) 12 times" in outside.stderr


def test_torch_save_loses_files_that_it_writes_in_place(outside):
    (in_place,) = [side for side in outside.document["sides"] if side["code"] == "torch.save(state, path)"]
    assert in_place["unreadable"] > 0


def test_a_state_of_two_versions_or_with_missing_tensors_has_no_version():
    state = _crash_child.make_state(4096, 4, 3)
    assert [t.numel() for t in state.values()] == [256] * 4
    assert _crash_child.version_of(state, 4) == 3
    state["layers.2.weight"][17] = 4
    assert _crash_child.version_of(state, 4) is None
    assert _crash_child.version_of({"layers.0.weight": torch.ones(3)}, 4) is None


TORCH = Side("torch.save(state, path)", False, 40, 30, 10, 0, 0, 0.03)
OURS = Side("ferry.save(state, path)", True, 40, 40, 0, 0, 0, 0.02)


def shown(capsys, monkeypatch, *sides):
    monkeypatch.setattr(_crash, "run", lambda progress, kills, seed: Report(list(sides), 1 << 24, 5, 1.5))
    return run_here(capsys, "demo", "crash")


def test_the_text_counts_what_was_lost(capsys, monkeypatch):
    ran = shown(capsys, monkeypatch, TORCH, OURS)
    text = " ".join(ran.stdout.split())
    assert ran.code == 0
    assert "40 kills: 30 whole, 10 unreadable, and the version before is gone (a save takes 30.0 ms)" in text
    assert "No file of tensorferry was lost in 40 kills; 10 of the others" in text
    assert "seed 5" in text


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"whole": 39, "unreadable": 1}, "WRONG: 1 file of tensorferry lost", id="an unreadable file"),
        pytest.param({"whole": 39, "mixed": 1}, "1 readable and wrong", id="a file of two versions"),
        pytest.param({"left_nbytes": 5000}, "5.00 kB of temporary files stay", id="a file that was left"),
    ],
)
def test_a_loss_of_ours_exits_1(capsys, monkeypatch, changes, says):
    ran = shown(capsys, monkeypatch, TORCH, dataclasses.replace(OURS, **changes))
    assert ran.code == 1
    assert says in " ".join(ran.stdout.split())


def test_a_missing_torch_is_named():
    ran = run_outside("demo", "crash", without=("torch",))
    assert (ran.code, ran.stdout) == (1, "")
    assert "pip install" in ran.stderr
