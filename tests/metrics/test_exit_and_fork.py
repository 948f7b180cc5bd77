"""What is not delivered when the process ends or forks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tensorferry as ferry


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def log_in_a_child(log: ferry.MetricLog, metrics: dict[str, int]) -> None:
    """Log in a forked child, which must come to its end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            log.log(metrics)
            log.flush(10)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_log_that_nobody_closed_is_flushed_at_exit(tmp_path: Path):
    code = """
import sys, torch, tensorferry as ferry
def train():
    log = ferry.MetricLog(sys.argv[1])
    for step in range(3):
        log.log({"loss": torch.tensor(step + 0.5)})
train()
"""
    done = run(code, str(tmp_path / "m.jsonl"))
    assert (tmp_path / "m.jsonl").read_text().splitlines()[-1] == '{"step":2,"loss":2.5}'
    assert done.stderr == ""


def test_what_is_lost_at_exit_is_counted_and_told():
    code = """
import threading, time, tensorferry as ferry
from tensorferry._metrics import at_exit
at_exit.PATIENCE_S = 0.3
first = [True]
def sink(step, values):
    if first:
        first.clear()
        time.sleep(0.03)
    else:
        time.sleep(1000)
log = ferry.MetricLog(sink, depth=10)
for step in range(6):
    log.log({"a": step})
"""
    done = run(code)
    assert "MetricLog lost 5 steps at exit, from step 1 on" in done.stderr


def test_an_error_of_a_sink_that_nobody_asked_for_is_told_at_exit():
    code = """
import tensorferry as ferry
def fails(step, values):
    raise ValueError("no such run")
log = ferry.MetricLog(fails)
log.log({"a": 1})
"""
    assert "ValueError: no such run" in run(code).stderr


def test_a_forked_child_begins_anew_and_leaves_the_parents_steps_alone(tmp_path: Path):
    path = tmp_path / "m.jsonl"
    log = ferry.MetricLog(path)
    log.log({"parent": 1})
    log_in_a_child(log, {"child": 1})
    log.log({"parent": 2})
    log.close()
    assert sorted(path.read_text().splitlines()) == [
        '{"step":0,"parent":1}',
        '{"step":1,"child":1}',
        '{"step":1,"parent":2}',
    ]


def test_a_child_that_adds_a_column_does_not_cost_the_parent_its_rows(tmp_path: Path):
    path = tmp_path / "m.csv"
    log = ferry.MetricLog(path)
    log.log({"a": 1})
    log.flush()
    log_in_a_child(log, {"b": 1})
    log.log({"a": 2})
    log.close()
    assert path.read_text() == "step,a,b\n0,1,\n1,,1\n1,2,\n"


def test_the_package_ends_quietly_when_a_log_was_never_used():
    assert run("import tensorferry as ferry; log = ferry.MetricLog(print)").stderr == ""
