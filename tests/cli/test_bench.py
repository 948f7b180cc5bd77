"""``tensorferry bench``: what it measures, prints and writes, and what its exit codes mean."""

from __future__ import annotations

import json
import threading

import pytest
import torch

from helpers.bench_runs import made_up_run, private_copy, run_of
from helpers.console import run_here, run_outside
from helpers.html_page import parse
from tensorferry.bench import Case, Run, at_most, best, load_cases, naive, ours
from tensorferry.bench._words import ratio_text, time_text
from tensorferry.cli import _bench


def tiny(name="tiny.sum", candidate="sum(x)", peer="sum(list(x))", **more):
    """Return a case without tensors that takes no time."""
    return Case(
        name=name,
        title="The sum of a list",
        setup=lambda rng, length=50: {"x": rng.integers(1, 9, length).tolist()},
        candidates=(ours("ours", candidate), best("peer", peer), naive("absent", "1", needs=("no_such_package",))),
        expected=lambda inputs: sum(inputs["x"]),
        points=({"length": 50}, {"length": 60}),
        **more,
    )


@pytest.fixture
def cases(monkeypatch):
    """Let the command know no cases but those that the test puts into this list."""
    found = []
    monkeypatch.setattr(_bench, "load_cases", lambda: found)
    return found


def test_a_run_writes_both_files_and_prints_what_is_in_them(capsys, tmp_path):
    out = tmp_path / "new" / "folder"
    ran = run_here(capsys, "bench", "view.tensor", "--quick", "--rounds", "3", "--seed", "5", "--out", out)
    assert ran.code == 0
    assert sorted(file.name for file in out.iterdir()) == ["report.html", "results.json"]
    run = Run.load(out / "results.json")
    assert (run.quick, run.complete, run.seed, run.device) == (True, True, 5, "cpu")
    (result,) = run.results
    assert (result.case, result.rounds) == ("view.tensor", 3)
    for one in result.measurements:
        assert time_text(one) in ran.stdout
    for peer in result.peers:
        assert ratio_text(result.ratio(peer.label)) in ran.stdout
    page = parse((out / "report.html").read_text(encoding="utf-8"))
    assert page.open == []
    assert [row[1] for row in page.rows if row[0] == result.ours.label] == [time_text(result.ours)]
    assert "view.tensor" in ran.stderr
    assert "Written" in ran.stderr


def test_without_out_nothing_is_written(capsys, cases, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cases.append(tiny())
    assert run_here(capsys, "bench", "--rounds", "1").code == 0
    assert list(tmp_path.iterdir()) == []


def test_the_json_is_a_results_file(capsys, cases):
    cases.append(tiny())
    ran = run_here(capsys, "bench", "tiny", "--rounds", "2", "--json")
    run = Run.from_json(ran.document)
    assert [result.point for result in run.results] == [{"length": 50}, {"length": 60}]
    assert [len(result.ours.samples_s) for result in run.results] == [2, 2]


def test_options_reach_the_run(capsys, cases):
    cases.append(tiny())
    ran = run_here(capsys, "bench", "--rounds", "4", "--threads", "1", "--seed", "11", "--quick", "--json")
    run = Run.from_json(ran.document)
    assert (run.quick, run.seed) == (True, 11)
    assert [(result.rounds, result.threads) for result in run.results] == [(4, 1)]


def test_an_unmet_goal_and_a_slow_time_exit_0(capsys, cases):
    cases.append(tiny(candidate="sum(x * 50) // 50", goals=(at_most(0.001, "peer"),)))
    ran = run_here(capsys, "bench", "--rounds", "2")
    assert ran.code == 0
    assert "NOT MET" in ran.stdout


def test_a_wrong_value_of_ours_exits_1_and_the_other_cases_go_on(capsys, cases):
    cases += [tiny(name="tiny.wrong", candidate="sum(x) + 1"), tiny(name="tiny.right")]
    ran = run_here(capsys, "bench", "--rounds", "2", "--json")
    assert ran.code == 1
    errors = {result.case: result.ours.error for result in Run.from_json(ran.document).results}
    assert errors["tiny.wrong"] is not None
    assert errors["tiny.right"] is None


def test_ours_that_raises_exits_1_and_is_shown(capsys, cases):
    cases.append(tiny(candidate="1 / 0"))
    ran = run_here(capsys, "bench", "--rounds", "2")
    assert ran.code == 1
    assert "FAILED" in ran.stdout
    assert "ZeroDivisionError" in ran.stdout


@pytest.mark.parametrize("peer", ["1 / 0", "sum(x) + 1"], ids=["raises", "is wrong"])
def test_a_peer_that_fails_exits_0(capsys, cases, peer):
    cases.append(tiny(peer=peer))
    ran = run_here(capsys, "bench", "--rounds", "2")
    assert ran.code == 0
    assert "FAILED" in ran.stdout


def test_a_peer_that_is_not_installed_is_absent(capsys, cases):
    cases.append(tiny())
    ran = run_here(capsys, "bench", "--rounds", "1")
    assert "absent" in ran.stdout
    assert "no_such_package" in ran.stdout
    assert "FAILED" not in ran.stdout


def test_the_list_names_every_case_and_measures_nothing(capsys):
    ran = run_here(capsys, "bench", "--list")
    names = [case.name for case in load_cases()]
    assert ran.code == 0
    assert [name for name in names if name not in ran.stdout] == []
    assert ran.stderr == ""
    document = run_here(capsys, "bench", "--list", "--json").document
    assert [case["name"] for case in document["cases"]] == names


def test_the_list_can_be_narrowed(capsys):
    document = run_here(capsys, "bench", "view", "--list", "--json").document
    assert {case["name"].partition(".")[0] for case in document["cases"]} == {"view"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        pytest.param(["vieww"], "'view'", id="an unknown case names a near one"),
        pytest.param(["--rounds", "0"], "--rounds", id="no rounds"),
        pytest.param(["--threads", "0"], "--threads", id="no threads"),
        pytest.param(["--device", "tpu"], "tpu", id="an unknown device"),
        pytest.param(["view", "--device", "cuda"], "view", id="a case that cannot run there"),
        pytest.param(["d2h"], "only on cuda", id="a case that needs a device"),
        pytest.param(["view", "compare"], "right after bench", id="compare in the wrong place"),
        pytest.param(["--quik"], "--quik", id="an unknown option"),
        pytest.param(["compare", "a.json"], "AFTER.json", id="only one file to compare"),
        pytest.param(["compare", "no.json", "no.json"], "no.json", id="files that are not there"),
    ],
)
def test_wrong_usage_exits_2_and_says_what_was_wrong(capsys, arguments, named):
    ran = run_here(capsys, "bench", *arguments)
    assert (ran.code, ran.stdout) == (2, "")
    assert named in ran.stderr


def test_no_case_has_the_name_of_a_command():
    first_words = {case.name.partition(".")[0] for case in load_cases()}
    assert first_words & {"compare", "run"} == set()


def test_help_shows_the_options_and_the_other_command(capsys):
    ran = run_here(capsys, "bench", "--help")
    assert ran.code == 0
    for word in ("--quick", "--device", "--threads", "--rounds", "--out", "--list", "--json", "bench compare"):
        assert word in ran.stdout


def test_a_gpu_that_is_not_there_is_an_error_in_three_parts(capsys, cases, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    cases.append(tiny(devices=("cpu", "cuda")))
    ran = run_here(capsys, "bench", "--device", "cuda")
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr.startswith("tensorferry: --device cuda: ")
    assert "; leave it out" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_without_matplotlib_it_says_what_to_install_before_it_measures(tmp_path):
    ran = run_outside("bench", "view.tensor", "--out", str(tmp_path / "out"), without=("matplotlib",))
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr.count("\n") == 1
    assert "pip install 'tensorferry[bench]'" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_torch_it_says_what_to_install():
    ran = run_outside("bench", "view.tensor", without=("torch",))
    assert (ran.code, ran.stdout) == (1, "")
    assert "pip install" in ran.stderr


def test_a_folder_that_cannot_be_made_is_an_error_before_it_measures(capsys, cases, tmp_path):
    (tmp_path / "file").write_text("")
    cases.append(tiny())
    ran = run_here(capsys, "bench", "--out", tmp_path / "file" / "below")
    assert (ran.code, ran.stdout) == (1, "")
    assert "name a folder" in ran.stderr


def test_no_thread_of_the_bar_runs_while_something_is_measured(capsys, cases, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes stderr for a terminal
    seen = set()

    def note(inputs):
        seen.update(type(thread).__name__ for thread in threading.enumerate())
        return sum(inputs["x"])

    cases.append(tiny(candidate=note))
    before = {type(thread).__name__ for thread in threading.enumerate()}
    assert run_here(capsys, "bench", "--rounds", "2").code == 0
    assert seen <= before


@pytest.fixture
def two_files(tmp_path):
    """Two results files: in the second, one of two points got slower."""
    points = [private_copy(1 << 20, layout, 1e-4) for layout in ("contiguous", "pitched")]
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    run_of(points).save(before)
    run_of([points[0], private_copy(1 << 20, "pitched", 1e-4, ratio=0.9)]).save(after)
    return before, after


def test_comparing_a_file_with_itself_exits_0(capsys, two_files):
    ran = run_here(capsys, "bench", "compare", two_files[0], two_files[0])
    assert ran.code == 0
    assert "0 slower, 0 faster, 4 no difference (of 4 ratios that both runs have)." in ran.stdout


def test_something_slower_exits_1_and_is_named(capsys, two_files):
    ran = run_here(capsys, "bench", "compare", *two_files)
    assert ran.code == 1
    text = " ".join(ran.stdout.split())
    assert "copy.private (1 MiB, pitched) t.numpy().copy() 0.50 (0.44, 0.56) 0.90 (0.79, 1.01)" in text


def test_something_faster_exits_0(capsys, two_files):
    ran = run_here(capsys, "bench", "compare", two_files[1], two_files[0])
    assert ran.code == 0
    assert "1 faster" in ran.stdout


def test_a_comparison_as_json_has_the_verdicts(capsys, two_files):
    ran = run_here(capsys, "bench", "compare", *two_files, "--json")
    assert ran.code == 1
    assert ran.document["ok"] is False
    assert [change["verdict"] for change in ran.document["changes"]] == ["slower", *["no difference"] * 3]


def test_a_file_without_results_is_an_error_of_ours(capsys, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"results": []}))
    ran = run_here(capsys, "bench", "compare", other, other)
    assert (ran.code, ran.stdout) == (1, "")
    assert "no results of tensorferry bench" in ran.stderr


def test_an_interrupted_run_can_be_compared(capsys, tmp_path):
    made_up_run().save(tmp_path / "a.json")
    assert run_here(capsys, "bench", "compare", tmp_path / "a.json", tmp_path / "a.json").code == 0
