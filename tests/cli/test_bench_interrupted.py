"""Ctrl-C in the middle of a benchmark: what was measured by then is printed and kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from helpers.html_page import parse
from tensorferry.bench import Run

_PROGRAM = """
import itertools, signal, sys, time
calls = itertools.count(1)

def slowly():
    time.sleep(0.02)
    if next(calls) == 60:  # some rounds are over
        print("well into slow.sum", file=sys.stderr)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit that it is ignored
from tensorferry.bench import Case, best, ours
from tensorferry.cli import _bench, main

def case(name, candidate):
    return Case(name, name, lambda rng: {"slowly": slowly, "x": rng.integers(1, 9, 9).tolist()},
                (ours("ours", candidate), best("peer", "sum(x)")), lambda inputs: sum(inputs["x"]))

slow = case("slow.sum", "slowly() or sum(x)")
_bench.load_cases = lambda: [case("fast.sum", "sum(x)"), slow, case("never.sum", "sum(x)")]
sys.exit(main(["bench", *sys.argv[1:]]))
"""


@pytest.fixture
def start():
    """Start the command with arguments; whatever still runs at the end is killed."""
    started = []

    def begin(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", _PROGRAM, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "100"},
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def read_until(process, words):
    """Return what the command has said on stderr, up to a line with these words."""
    said = ""
    while words not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    return said


def interrupt_in_the_second_case(process):
    """Send the signal once some rounds of the second case are over; return stdout and stderr."""
    said = read_until(process, "well into slow.sum")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=180)
    return stdout, said + stderr


def test_partial_results_are_printed_saved_and_drawn_and_the_exit_code_is_130(start, tmp_path):
    process = start("--rounds", "5000", "--out", tmp_path, "--seed", "3")
    stdout, stderr = interrupt_in_the_second_case(process)
    assert process.returncode == 130
    run = Run.load(tmp_path / "results.json")
    assert not run.complete
    assert [(result.case, result.complete) for result in run.results] == [("fast.sum", True), ("slow.sum", False)]
    assert 0 < run.results[1].rounds < 5000
    assert "fast.sum" in stdout
    assert "slow.sum" in stdout
    assert "never.sum" not in stdout
    assert f"Interrupted after 2 results; they are in {tmp_path / 'results.json'}." in stderr
    page = parse((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.open == []
    assert any("interrupted after" in text for text in page.text)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["report.html", "results.json"]


def test_each_result_is_saved_before_the_next_one_begins(start, tmp_path):
    process = start("--rounds", "5000", "--out", tmp_path)
    read_until(process, "1/3 slow.sum")
    saved = Run.load(tmp_path / "results.json")
    assert [result.case for result in saved.results] == ["fast.sum"]
    assert not saved.complete


def test_without_a_folder_it_says_that_nothing_is_saved(start):
    process = start("slow", "fast", "--rounds", "5000", "--json")
    read_until(process, "well into slow.sum")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=180)
    assert process.returncode == 130
    assert "none are saved, for want of --out" in stderr
    assert '"complete": false' in stdout
