"""Metrics that other libraries have on devices: sent together, and by the values of the call."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorferry as ferry
from helpers.device_path import kernels, seen
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import TableArray

DTYPES = (np.float32, np.int64, np.bool_, np.float64, np.float16)


def test_a_thousand_scalars_of_mixed_dtypes_are_one_launch_one_copy_and_no_synchronise(fake: FakeCuda):
    sources = {f"metric {i}": TableArray(np.array(i % 7).astype(DTYPES[i % 5])) for i in range(1000)}
    expected = {name: np.array(i % 7).astype(DTYPES[i % 5]).item() for i, name in enumerate(sources)}
    steps: list[tuple[int, dict[str, Any]]] = []
    with kernels(), ferry.MetricLog(lambda step, values: steps.append((step, values))) as log:
        for _ in range(3):
            log.log(sources)
            fake.drain()
            log.flush()
        with seen(fake) as made:
            log.log(sources)
        for source in sources.values():
            source.write_later(np.array(-1).astype(source.dtype))
        fake.drain()
        log.flush()
    assert made.count("cuLaunchKernel") == 1
    assert len(made.copies("DtoH")) == 1
    assert made.count("cuStreamSynchronize") == made.count("cuEventSynchronize") == made.count("cuCtxSynchronize") == 0
    assert steps == [(step, expected) for step in range(4)]


def test_values_are_those_of_the_call_and_small_arrays_are_named_by_element(any_schedule: FakeCuda, kind: Any):
    x = kind(np.array([1.5, 2.5]))
    steps: list[tuple[int, dict[str, Any]]] = []
    with ferry.MetricLog(lambda step, values: steps.append((step, values))) as log:
        log.log({"lr": 0.1, "x": x})
        x.write_later(np.array([-1.0, -1.0]))
    assert steps == [(0, {"lr": 0.1, "x/0": 1.5, "x/1": 2.5})]
