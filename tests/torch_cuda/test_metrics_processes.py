"""Metrics on their way when a process ends, forks, or loses its device; each in a process of its own."""

from __future__ import annotations

from typing import Any

from helpers.subprocess import run_python

PROGRAM = """
    import sys, torch, tensorferry as ferry
    from helpers.torch_on_fake import torch_on_fake
    from tensorferry._metrics import at_exit
    at_exit.PATIENCE_S = 0.5
    fake = torch_on_fake()
    log = ferry.MetricLog(sys.argv[1] if len(sys.argv) > 1 else lambda step, values: print(step, values, flush=True))
    x = fake.settled(torch.ones(()))
    for step in range(3):
        log.log({"x": x})
        x.fill_(step + 5.0)
"""


def test_what_is_on_its_way_at_exit_is_waited_for(cuda: Any):
    done = run_python(PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["0 {'x': 1.0}", "1 {'x': 5.0}", "2 {'x': 6.0}"]


def test_a_device_that_does_not_answer_at_exit_costs_the_steps_and_not_the_end(cuda: Any):
    done = run_python(PROGRAM + "    fake.fake.library.fake_hold(1)\n    log.log({'x': x})\n")
    assert done.returncode == 0, done.stderr
    assert "MetricLog lost" in done.stderr
    assert "steps at exit, from step" in done.stderr


FORKING = """
    import os, torch, tensorferry as ferry
    from helpers.torch_on_fake import torch_on_fake
    fake = torch_on_fake()
    log = ferry.MetricLog(lambda step, values: print(os.getpid() == parent, step, values, flush=True))
    parent = os.getpid()
    x = fake.settled(torch.ones(()))
    fake.fake.library.fake_hold(1)
    log.log({"x": x})
    log.log({"x": x})
    child = os.fork()
    if child == 0:
        log.log({"host": 1})
        log.flush(20)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    fake.fake.library.fake_hold(0)
    log.close()
"""


def test_a_forked_child_leaves_what_is_on_its_way_to_its_parent(cuda: Any):
    done = run_python(FORKING)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["False 2 {'host': 1}", "True 0 {'x': 1.0}", "True 1 {'x': 1.0}"]


FAILING = """
    import torch, tensorferry as ferry
    from helpers.torch_on_fake import torch_on_fake
    fake = torch_on_fake()
    log = ferry.MetricLog(lambda step, values: print(step, values))
    x = fake.settled(torch.ones(()))
    fake.fake.fault("execution", 700)
    log.log({"x": x, "host": 1})
    try:
        log.flush()
    except ferry.FerryError as error:
        print(type(error).__name__, log.stats.failures)
"""


def test_an_error_of_the_device_is_raised_by_flush_and_counted(cuda: Any):
    done = run_python(FAILING)  # no device is usable after that
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["0 {'host': 1}", "DeviceError 1"]
