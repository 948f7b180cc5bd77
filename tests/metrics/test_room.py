"""A caller that waits for room in the queue, or no longer than it wants to, while a sink is slow or stuck."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry


@pytest.mark.parametrize("way", ["log", "log and flush", "log an array"])
def test_a_slow_sink_that_logs_to_its_own_log_does_not_stop_the_caller_that_waits_for_room(way: str):
    steps: list[int] = []

    def slow_echoes(step: int, values: dict[str, Any]) -> None:
        time.sleep(0.025)  # from now on it is called in a thread
        steps.append(step)
        if "x" in values:
            log.log({"echo": step})

    def run() -> None:
        for i in range(8):
            log.log({"x": i})
            if way == "log an array":
                log.log_array("array", np.arange(3))
            if way == "log and flush" and i % 3 == 2:
                log.flush()
        log.close()

    log = ferry.MetricLog(slow_echoes, depth=1)
    caller = threading.Thread(target=run, daemon=True)
    caller.start()
    caller.join(30)
    assert not caller.is_alive()
    assert steps == sorted(steps)
    assert len(steps) == log.stats.delivered >= 8


def test_a_flush_with_a_timeout_does_not_wait_longer_for_a_sink_that_another_thread_has_called():
    entered, go_on = threading.Event(), threading.Event()

    def stuck(step: int, values: dict[str, Any]) -> None:
        entered.set()
        go_on.wait(60)

    log = ferry.MetricLog(stuck)
    log.log({"x": 0})
    other = threading.Thread(target=log.log, args=({"x": 1},))
    other.start()
    assert entered.wait(10)
    with pytest.raises(ferry.TransferTimeout):
        log.flush(timeout=0.05)
    go_on.set()
    other.join()
    log.close()
    assert log.stats.delivered == 2


def stuck_at_its_second_step() -> tuple[ferry.MetricLog, threading.Event]:
    """A log of three steps, whose queue is full; its sink goes on when the event is set."""
    entered, go_on = threading.Event(), threading.Event()

    def sink(step: int, values: dict[str, Any]) -> None:
        if step == 1:
            entered.set()
            go_on.wait(60)
        elif step == 0:
            time.sleep(0.025)  # from now on it is called in a thread

    log = ferry.MetricLog(sink, depth=1)
    for step in range(3):  # the third step ends the second one, which the thread takes
        log.log({"x": step})
    assert entered.wait(10)
    return log, go_on


def test_a_flush_with_a_timeout_does_not_wait_longer_for_room():
    log, go_on = stuck_at_its_second_step()
    with pytest.raises(ferry.TransferTimeout, match="2 steps"):
        log.flush(timeout=0.05)
    go_on.set()
    log.close()
    assert log.stats.delivered == 3


def test_a_log_that_was_closed_while_its_sink_is_stuck_refuses_at_once():
    log, go_on = stuck_at_its_second_step()
    with pytest.raises(ferry.TransferTimeout):
        log.close(timeout=0.05)
    start = time.monotonic()
    with pytest.raises(ferry.FerryError, match="closed"):
        log.log({"x": 3})
    assert time.monotonic() - start < 30
    go_on.set()
