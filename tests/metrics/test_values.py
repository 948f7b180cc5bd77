"""Numbers of host tensors and other scalars: exact, and those of the call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry

EXACT: dict[str, tuple[Any, Any]] = {
    "float32": (torch.tensor(0.1), float(np.float32(0.1))),
    "float64": (torch.tensor(0.1, dtype=torch.float64), 0.1),
    "float16": (torch.tensor(65504.0, dtype=torch.float16), 65504.0),
    "bfloat16": (torch.tensor(3.140625, dtype=torch.bfloat16), 3.140625),
    "float8_e4m3fn": (torch.tensor(448.0).to(torch.float8_e4m3fn), 448.0),
    "float8_e5m2": (torch.tensor(-57344.0).to(torch.float8_e5m2), -57344.0),
    "int64, the largest": (torch.tensor(2**63 - 1), 2**63 - 1),
    "int64, the smallest": (torch.tensor(-(2**63)), -(2**63)),
    "uint64, the largest": (torch.tensor(2**64 - 1, dtype=torch.uint64), 2**64 - 1),
    "uint8": (torch.tensor(255, dtype=torch.uint8), 255),
    "int8": (torch.tensor(-128, dtype=torch.int8), -128),
    "bool": (torch.tensor(True), True),
    "one element of many": (torch.arange(10.0)[7], 7.0),
    "a parameter": (torch.nn.Parameter(torch.tensor(1.5)), 1.5),
    "what requires grad": (torch.tensor(2.0, requires_grad=True) * 2, 4.0),
    "a negative view": (torch.tensor([1 + 2j, 3 - 4j]).conj().imag[1], 4.0),
    "a subclass": (torch.nn.Buffer(torch.tensor(2.5)), 2.5),
    "copy-on-write": (torch.tensor(3.5)._lazy_clone(), 3.5),
    "a NumPy scalar": (np.float32(0.25), 0.25),
    "a NumPy int": (np.uint64(2**64 - 1), 2**64 - 1),
    "a NumPy bool": (np.bool_(True), True),
    "an array of no dimensions": (np.array(7, dtype="int16"), 7),
    "a large int": (10**30, 10**30),
    "minus zero": (torch.tensor(-0.0), -0.0),
    "infinity": (torch.tensor(-math.inf), -math.inf),
}


@pytest.mark.parametrize(("value", "expected"), EXACT.values(), ids=EXACT)
def test_values_become_exact_python_numbers(value: Any, expected: Any):
    steps: list[Any] = []
    with ferry.MetricLog(lambda step, values: steps.append(values)) as log:
        log.log({"x": value})
    assert steps == [{"x": expected}]
    assert type(steps[0]["x"]) is type(expected)
    assert repr(steps[0]["x"]) == repr(expected)


def test_the_value_is_that_of_the_call():
    steps: list[Any] = []
    x, a = torch.zeros(3), np.zeros(3)
    with ferry.MetricLog(lambda step, values: steps.append(values)) as log:
        for number in range(3):
            x.fill_(number)
            a.fill(number)
            log.log({"scalar": x[0], "vector": x, "array": a}, step=0)
            log.log({f"then {number}": x[1]}, step=0)
        x.fill_(-1)
        a.fill(-1)
    assert steps[0]["scalar"] == 2
    assert [steps[0][f"{name}/{i}"] for name in ("vector", "array") for i in range(3)] == [2.0] * 6
    assert [steps[0][f"then {number}"] for number in range(3)] == [0, 1, 2]


def test_storage_that_was_taken_away_is_refused_and_never_read():
    whole = torch.arange(64.0)
    part = whole[32]
    whole.untyped_storage().resize_(0)
    with ferry.MetricLog() as log, pytest.raises(ferry.FerryError, match="metric 'x'"):
        log.log({"x": part})


@pytest.mark.parametrize("seed", range(5))
def test_many_scalars_of_mixed_dtypes_agree_with_item(seed: int):
    print("seed", seed)
    random = np.random.default_rng(seed)
    dtypes = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int8, torch.bool, torch.float16]
    tensors = {
        f"group {i % 7}/metric {i}": torch.tensor(float(random.integers(0, 100))).to(dtypes[random.integers(0, 7)])
        for i in range(1000)
    }
    steps: list[Any] = []
    with ferry.MetricLog(lambda step, values: steps.append(values)) as log:
        log.log(tensors)
    assert list(steps[0].items()) == [(name, x.item()) for name, x in tensors.items()]


def test_sinks_cannot_change_what_others_get():
    seen: list[Any] = []

    def changes(step: int, values: dict[str, Any]) -> None:
        values["a"] = "changed"

    with ferry.MetricLog(changes, lambda step, values: seen.append(values)) as log:
        log.log({"a": 1})
    assert seen == [{"a": 1}]
    assert log.latest().values == {"a": 1}


@pytest.mark.parametrize("on_nan", ["keep", "warn", "raise"])
def test_nan_is_kept_told_or_raised_with_step_and_name(on_nan: str):
    steps: list[Any] = []
    log = ferry.MetricLog(lambda step, values: steps.append(values), on_nan=on_nan)
    log.log({"loss": 1.0}, step=6)
    metrics = {"good": 1.0, "loss": torch.tensor(math.nan)}
    if on_nan == "keep":
        log.log(metrics, step=7)
    elif on_nan == "warn":
        with pytest.warns(ferry.FerryWarning, match="'loss' at step 7"):
            log.log(metrics, step=7)
    else:
        with pytest.raises(ferry.CheckError, match="'loss' at step 7"):
            log.log(metrics, step=7)
    log.close()
    assert math.isnan(steps[1]["loss"])
