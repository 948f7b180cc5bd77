"""What is logged of large tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry

DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool"]


def random_tensor(seed: int, shape: tuple[int, ...], dtype: str) -> torch.Tensor:
    print("seed", seed)
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 20
    return (values.abs() if dtype == "uint8" else values > 0 if dtype == "bool" else values).to(getattr(torch, dtype))


def only_step(log_it: Any) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    with ferry.MetricLog(lambda step, values: steps.append(values)) as log:
        log_it(log)
    (values,) = steps
    return values


LAYOUTS: dict[str, Any] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t(),
    "strided": lambda x: x[:, ::3],
    "expanded": lambda x: x[:, :1].expand(-1, 50),
    "one element": lambda x: x[0, 0],
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_stats_are_those_of_numpy_in_float64(dtype: str, layout: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tensorferry._metrics.statistics._PIECE", 100)
    x = layout(random_tensor(1, (40, 60), dtype))
    values = only_step(lambda log: log.log_stats("w", x))
    wide = x.to(torch.float64).numpy()
    expected = {
        "w/count": wide.size,
        "w/min": wide.min(),
        "w/max": wide.max(),
        "w/mean": wide.mean(),
        "w/std": wide.std(),
        "w/norm": np.sqrt((wide * wide).sum()),
        "w/nan": 0,
        "w/infinite": 0,
    }
    assert list(values) == list(expected)
    assert values == pytest.approx(expected, rel=1e-12)
    assert isinstance(values["w/count"], int)


def test_stats_of_finite_values_leave_nan_and_infinities_out():
    x = torch.tensor([1.0, math.nan, 3.0, math.inf, -math.inf, math.inf])
    values = only_step(lambda log: log.log_stats("w", x))
    assert values == pytest.approx(
        {
            "w/count": 2,
            "w/min": 1.0,
            "w/max": 3.0,
            "w/mean": 2.0,
            "w/std": 1.0,
            "w/norm": math.sqrt(10),
            "w/nan": 1,
            "w/infinite": 3,
        }
    )


@pytest.mark.parametrize("x", [torch.zeros(0), torch.full((3,), math.nan)], ids=["empty", "all NaN"])
def test_stats_of_nothing_are_nan(x: torch.Tensor):
    values = only_step(lambda log: log.log_stats("w", x))
    assert values["w/count"] == 0
    assert all(math.isnan(values[f"w/{name}"]) for name in ("min", "max", "mean", "std", "norm"))


@pytest.mark.parametrize("bins", [1, 7, 64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_histograms_are_those_of_numpy(dtype: str, bins: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tensorferry._metrics.statistics._PIECE", 100)
    x = random_tensor(2, (30, 40), dtype)
    values = only_step(lambda log: log.log_histogram("h", x.t(), bins=bins))
    found = values["h"]
    counts, edges = np.histogram(x.to(torch.float64).numpy(), bins)
    assert found.edges == pytest.approx(edges.tolist(), abs=1e-12)
    assert sum(found.counts) == x.numel()
    assert np.abs(np.cumsum(found.counts) - np.cumsum(counts)).max() <= (0 if dtype in ("float32", "float64") else 3)


def test_f086_values_of_bfloat16_that_are_no_numbers_are_in_no_bin():
    x = torch.tensor([0.0, 1.0, 4.0, math.nan, math.inf, -math.inf], dtype=torch.bfloat16)
    values = only_step(lambda log: log.log_histogram("h", x, bins=4))
    assert values["h"] == ([1, 1, 0, 1], [0.0, 1.0, 2.0, 3.0, 4.0], 1, 2)


def test_a_range_of_no_width_gets_one_as_numpys():
    values = only_step(lambda log: log.log_histogram("h", torch.full((5,), 2.0), bins=2))
    assert values["h"] == ([0, 5], [1.5, 2.0, 2.5], 0, 0)


def test_arrays_arrive_as_they_were_at_the_call():
    x = torch.arange(6.0).reshape(2, 3)
    steps: list[dict[str, Any]] = []
    with ferry.MetricLog(lambda step, values: steps.append(values)) as log:
        log.log_array("x", x)
        x.zero_()
    assert np.array_equal(steps[0]["x"], np.arange(6.0).reshape(2, 3))


def test_large_and_small_metrics_of_one_step_come_together():
    values = only_step(
        lambda log: (
            log.log({"loss": 1.0}, step=3),
            log.log_stats("w", torch.ones(5), step=3),
            log.log_histogram("h", torch.ones(5), bins=1, step=3),
            log.log_array("a", np.arange(2), step=3),
        )
    )
    assert list(values) == [
        "loss",
        *(f"w/{n}" for n in ["count", "min", "max", "mean", "std", "norm", "nan", "infinite"]),
        "h",
        "a",
    ]


@pytest.mark.parametrize("call", ["log_stats", "log_histogram"])
def test_complex_numbers_are_refused(call: str):
    with ferry.MetricLog() as log, pytest.raises(ferry.DTypeError, match="no order"):
        getattr(log, call)("x", torch.ones(3, dtype=torch.complex64))


@pytest.mark.parametrize("bins", [0, -1, 2.5, True])
def test_a_number_of_bins_that_is_none_is_refused(bins: Any):
    with ferry.MetricLog() as log, pytest.raises(ferry.ArgumentError, match="bins="):
        log.log_histogram("x", torch.ones(3), bins=bins)


def test_f086_the_memory_of_statistics_does_not_grow_with_the_tensor():
    from tensorferry._metrics import statistics

    x = torch.zeros(1 << 22, dtype=torch.bfloat16).reshape(2, 2, 1 << 20)
    assert max(piece.numel() for piece in statistics._pieces(x.permute(2, 0, 1))) <= statistics._PIECE
    assert sum(piece.numel() for piece in statistics._pieces(x)) == x.numel()
