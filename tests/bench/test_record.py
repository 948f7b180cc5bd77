"""A run and its file."""

from __future__ import annotations

import json
import os

import pytest

import tensorferry as ferry
from tensorferry.bench import GoalOutcome, Measurement, Result, Run

FULL = Result(
    case="copy.private",
    title="a private copy",
    point={"nbytes": 1 << 20, "share": 0.5, "dtype": "float32"},
    measurements=(
        Measurement("a", "ferry.to_numpy(t)", "ours", (1.5e-3, 2.25e-3), 7, "mean", 0.75),
        Measurement("b", "t.numpy()", "best", (9e-8, 1.1e-7), 10_000, "least", 1.0),
        Measurement("c ↦ π", "np.array(t)", "naive", error="not installed: numpy"),
    ),
    limit=Measurement("memcpy", "raw_copy", "limit", (1e-3, 1e-3), 1, "mean", 0.99),
    nbytes=1 << 21,
    goals=(GoalOutcome("at most 2x b", "b", 2.0, 1.75, True), GoalOutcome("at most 1x c", "c", 1.0, 0.0, None)),
    rounds=2,
    threads=4,
    seed=17,
    checked_values=123_456_789,
    plan="view: nothing moved",
    origin="simulated",
    complete=False,
)
EMPTY = Result("x.y", "", {}, ())
RUN = Run(
    {"python": "3.11", "cores": 2, "load average": 0.5, "GPU": None},
    "2025-01-02T03:04:05+00:00",
    True,
    "cpu",
    (FULL, EMPTY),
    False,
    17,
)


def refuse(constant):
    raise AssertionError(f"{constant} is no JSON")


def test_a_run_is_the_same_after_a_round_trip(tmp_path):
    path = tmp_path / "deep" / "results.json"
    RUN.save(path)
    assert Run.load(path) == RUN
    assert Run.from_json(RUN.to_json()) == RUN


def test_the_file_is_strict_json_and_says_what_it_is(tmp_path):
    RUN.save(tmp_path / "results.json")
    document = json.loads((tmp_path / "results.json").read_text("utf-8"), parse_constant=refuse)
    assert (document["schema"], document["version"]) == ("tensorferry bench", 1)
    assert document["results"][0]["measurements"][0]["samples_s"] == [1.5e-3, 2.25e-3]
    assert document["results"][0]["limit"]["label"] == "memcpy"
    assert document == json.loads(json.dumps(RUN.to_json()))


def test_the_file_has_a_result_a_line_and_no_blanks(tmp_path):
    RUN.save(tmp_path / "results.json")
    text = (tmp_path / "results.json").read_text("utf-8")
    assert len([line for line in text.splitlines() if line.startswith('{"case"')]) == len(RUN.results)
    assert '": ' not in text


def test_a_run_without_samples_is_strict_json_too():
    run = Run({}, "now", False, "cpu", (Result("a.b", "", {}, (Measurement("a", "a", "ours", error="raised"),)),))
    assert json.loads(json.dumps(run.to_json(), allow_nan=False), parse_constant=refuse)["complete"] is True
    assert Run.from_json(run.to_json()) == run


def test_a_file_is_replaced_in_one_step(tmp_path, monkeypatch):
    path = tmp_path / "results.json"
    RUN.save(path)
    before = path.read_bytes()

    def torn(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", torn)
    with pytest.raises(OSError, match="No space"):
        Run({}, "later", False, "cpu", ()).save(path)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["results.json"]


def test_a_figure_that_json_cannot_hold_is_not_written(tmp_path):
    run = Run({"load average": float("nan")}, "now", False, "cpu", ())
    with pytest.raises(ValueError, match="JSON"):
        run.save(tmp_path / "results.json")
    assert list(tmp_path.iterdir()) == []


def changed(**fields):
    """Return the text of a results file with other top-level fields."""
    return json.dumps({**RUN.to_json(), **fields})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("not json", "no JSON", id="text"),
        pytest.param("", "no JSON", id="an empty file"),
        pytest.param('{"schema": "another"}', "no results", id="somebody else's"),
        pytest.param("[1, 2]", "no results", id="a list"),
        pytest.param(changed(version=2), "version 1", id="another version"),
        pytest.param(changed(results=[{"case": "x"}]), "damaged", id="a result without its fields"),
        pytest.param(changed(results=5), "damaged", id="no results"),
        pytest.param(changed(surprise=1), "damaged", id="an unknown field"),
        pytest.param('{"schema": "tensorferry bench", "version": 1}', "damaged", id="nothing but the header"),
    ],
)
def test_a_file_that_is_not_ours_is_refused_in_three_parts(text, says, tmp_path):
    path = tmp_path / "odd.json"
    path.write_text(text)
    with pytest.raises(ferry.ArgumentError) as refusal:
        Run.load(path)
    assert str(path) in refusal.value.given
    assert says in refusal.value.why
    assert "tensorferry bench" in refusal.value.instead


def test_a_file_that_is_missing_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        Run.load(tmp_path / "none.json")
