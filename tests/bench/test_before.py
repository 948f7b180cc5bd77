"""What is done before each call of a candidate is done off the clock, on the inputs of that call."""

from __future__ import annotations

import time

from tensorferry.bench import compare


def test_it_runs_before_every_call_and_takes_no_time() -> None:
    log: list[str] = []

    def before(inputs: dict[str, list[int]]) -> None:
        log.append("before")
        inputs["left"].clear()
        time.sleep(0.2)

    def leave(inputs: dict[str, list[int]]) -> int:
        log.append("call")
        inputs["left"].append(1)
        time.sleep(0.01)  # longer than what is called several times for a figure
        return len(inputs["left"])

    result = compare(
        {"ours": leave, "peer": leave},
        setup=lambda rng: {"left": [int(rng.integers(1, 9))], "x": rng.random()},
        expected=lambda inputs: 1,
        before=before,
        rounds=2,
        warmup=0,
    )
    assert [each.error for each in result.measurements] == [None, None]
    assert log == ["before", "call"] * (len(log) // 2)
    assert max(result.ours.samples_s) < 0.2
