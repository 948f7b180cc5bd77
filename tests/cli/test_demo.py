"""``tensorferry demo``: every value is checked, every plan is told, and the times are real times."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.console import run_here, run_outside
from tensorferry import _demo
from tensorferry._demo import _compare, _minilm, _timings
from tensorferry.cli import _demo_view

_ENCODER = ["Sentence embeddings"] if _minilm.model_folder() is not None else []
_TITLES = ["Metrics", "Activations", "Weights", "Files", *_ENCODER, "Photographs"]


@pytest.fixture(scope="module")
def said():
    """The lines of progress of the run below."""
    return []


@pytest.fixture(scope="module")
def report(said):
    """One whole run."""
    return _demo.run(said.append)


def test_every_value_is_right_on_real_data(report):
    assert report.ok
    assert [section.title for section in report.sections] == _TITLES
    checks = [check for section in report.sections for check in section.checks]
    assert [check.what for check in checks if check.wrong] == []
    assert sum(check.values for check in checks) > 2 * 427 * 640 * 3


def test_the_classifier_learns_the_digits(report):
    assert 0.9 < report.accuracy <= 1.0


def test_it_takes_under_a_minute_and_tells_its_progress(report, said):
    assert report.seconds < 60
    assert len(said) == 5


def test_every_conversion_has_its_plan(report):
    paths = {conversion.call: conversion.plan.path for section in report.sections for conversion in section.conversions}
    assert paths["to_numpy(hidden)"] == "view"
    assert paths["to_numpy(state)"] == "nest"
    assert paths["from_numpy(photo)"] == "copy"


def test_bytes_of_plans_are_those_of_the_results(report):
    plans = {conversion.call: conversion.plan for section in report.sections for conversion in section.conversions}
    assert plans["from_numpy(photo)"].nbytes_moved == 427 * 640 * 3
    assert plans['to_numpy(half, dtype="numpy")'].nbytes_moved == 397 * 128 * 4


def test_times_are_positive_and_the_ratio_is_that_of_the_medians_up_to_noise(report):
    assert len(report.timings) == 12
    for timing in report.timings:
        assert timing.ours_s > 0
        assert timing.usual_s > 0
        low, high = timing.ratio_quartiles
        assert low <= timing.ratio <= high
        assert 0 < timing.cpu_share <= 1
        assert (timing.memcpy_s > 0) == (timing.nbytes > 0)
        if timing.steady and not report.busy:
            assert timing.ratio == pytest.approx(timing.ours_s / timing.usual_s, rel=0.5)
    assert report.memcpy_bytes_per_s > 1e8


def test_the_json_holds_all_of_it_in_plain_values(report):
    document = json.loads(json.dumps(report.document()))
    assert document["ok"] is True
    assert document["accuracy"] == report.accuracy
    assert [section["title"] for section in document["sections"]] == _TITLES
    assert document["timings"][0]["ours"] == "to_numpy(t)"
    assert document["sections"][1]["conversions"][0]["plan"]["shape"] == [397, 128]


def test_the_text_shows_plans_checks_times_and_the_missing_gpu(report, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "110")
    _demo_view.show(report)
    text = capsys.readouterr().out
    plans = [str(c.plan) for section in report.sections for c in section.conversions]
    joined = " ".join(text.split())
    assert [plan for plan in plans if " ".join(plan.split()) not in joined] == []
    assert f"{report.accuracy:.1%}" in text
    for timing in report.timings:
        assert timing.what in joined
        assert f"{timing.ratio:.2f}" in text
    assert ("No GPU" in text) == (report.gpu == "")
    assert "values are right" in text


def test_the_gpu_is_looked_for_without_initialising_it(report):
    assert report.gpu == "" or torch.version.cuda or torch.version.hip or torch.backends.mps.is_built()
    assert not torch.cuda.is_initialized()


def test_a_wrong_value_is_counted_shown_and_exits_1(capsys, monkeypatch):
    right = ferry.to_numpy

    def one_wrong(x, /, **arguments):
        array = right(x, **arguments)
        if isinstance(array, np.ndarray) and array.dtype == np.uint8:
            array = array.copy()
            array.flat[17] += 1
        return array

    monkeypatch.setattr(ferry, "to_numpy", one_wrong)
    monkeypatch.setattr(_timings, "measure", lambda trained, photographs: [])
    ran = run_here(capsys, "demo")
    assert ran.code == 1
    assert "WRONG the pixels: equal to the photographs: 1 of 1,639,680 values" in ran.stdout
    assert re.search(r"\b2 of [\d,]{9,} values are WRONG", ran.stdout)
    assert "timing" in ran.stderr


@pytest.mark.parametrize(("missing", "package"), [("torch", "torch"), ("sklearn", "scikit-learn"), ("PIL", "pillow")])
def test_a_missing_package_is_named_with_what_to_install(missing, package):
    ran = run_outside("demo", without=(missing,))
    assert (ran.code, ran.stdout) == (1, "")
    assert package in ran.stderr
    assert "pip install" in ran.stderr


@pytest.mark.parametrize(
    ("got", "expected", "wrong"),
    [
        pytest.param([1.0, np.nan], [1.0, np.nan], 0, id="NaN is equal to itself"),
        pytest.param([1.0, 2.0], [1.0, 3.0], 1, id="one value differs"),
        pytest.param([1.0], [1.0, 3.0], 2, id="another shape"),
    ],
)
def test_arrays_are_compared_value_by_value(got, expected, wrong):
    assert _compare.same_arrays("", np.array(got), np.array(expected)).wrong == wrong


def test_another_dtype_is_wrong_everywhere():
    assert _compare.same_arrays("", np.ones(3, "f4"), np.ones(3, "f8")).wrong == 3


@pytest.mark.parametrize(
    ("got", "wrong"),
    [
        pytest.param({"loss": 0.5, "sizes": [1, 2]}, 0, id="equal"),
        pytest.param({"loss": 0.5, "sizes": [1, 3]}, 1, id="one number differs"),
        pytest.param({"loss": 0.5, "sizes": [1, 2.0]}, 1, id="a float where an int was"),
        pytest.param({"loss": 0.5, "sizes": [1]}, 5, id="a number is missing"),
        pytest.param({"cost": 0.5, "sizes": [1, 2]}, 1, id="another name"),
    ],
)
def test_python_values_are_compared_with_their_types(got, wrong):
    assert _compare.same_values("", got, {"loss": 0.5, "sizes": [1, 2]}).wrong == wrong
