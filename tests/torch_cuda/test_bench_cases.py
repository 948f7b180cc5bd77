"""The benchmark's cases for a device, run on the simulated one: every candidate's values, not one honest figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.device_path import kernels
from helpers.torch_on_fake_streams import Event
from tensorferry.bench import Case, Point, load_cases, run
from tensorferry.bench._report._slow_down import slow_down_lines

MIB = 1 << 20
CASES = {case.name: case for case in load_cases() if "cpu" not in case.devices}
SMALL: dict[str, Point] = {  # what differs from the case's first point, so that no case takes long
    "d2h.pinned": {"nbytes": 4096},
    "d2h.array": {"nbytes": 65536},
    "d2h.layout": {"nbytes": 65536},
    "d2h.permuted": {"nbytes": 16 * 64 * 32 * 4 * 2},
    "d2h.cast": {"nbytes": 65536},
    "gather.pieces": {"count": 40},
    "gather.tensors": {"nbytes": 64 * 256},
    "gather.scalars": {"count": 50},
    "image.to_device": {"height": 6, "width": 8, "count": 3},
    "interference.copy_engine": {"nbytes": 65536, "rows": 16},
    "interference.kernel": {"nbytes": 65536, "rows": 16},
}
PINNED_DTYPES = {torch.bfloat16: np.uint16}


def pinned_copy(self: torch.Tensor) -> torch.Tensor:
    """As ``pin_memory``, which a CPU build of torch lacks."""
    array = ferry.empty_pinned(tuple(self.shape), PINNED_DTYPES.get(self.dtype, str(self.dtype).partition(".")[2]))
    made = torch.from_numpy(array).view(self.dtype)
    return made.copy_(self)


@pytest.fixture
def simulated_clock(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What cases take from torch beyond the environment: pinned memory, and events that tell some time."""
    monkeypatch.setattr(torch.Tensor, "pin_memory", pinned_copy)
    monkeypatch.setattr(Event, "elapsed_time", lambda self, other: 1.0, raising=False)
    cuda.settled(torch.ones(1))
    with kernels():
        yield


def small(case: Case) -> Case:
    point = {**case.points[0], **SMALL[case.name]}
    return replace(case, points=(point,), quick=(point,))


@pytest.mark.parametrize("name", CASES)
def test_every_candidate_gives_what_is_expected_and_its_figures_are_called_simulated(name: str, simulated_clock: None):
    case = small(CASES[name])
    made = run([case], quick=True, device="cuda", rounds=1, seed=7, threads=1)
    (result,) = made.results
    for one in result.measurements:
        absent = one.error is not None and one.error.startswith("not installed: cupy")
        assert absent or one.error is None, f"{one.label}: {one.error}"
        assert absent or len(one.samples_s) == 1
    assert result.origin == "simulated"
    assert result.checked_values > 0
    assert (result.limit is None) == (case.limit is None)
    assert result.plan == "" or "no plan" not in result.plan, result.plan


@pytest.mark.parametrize("name", CASES)
def test_inputs_of_every_case_come_from_the_generator(name: str, simulated_clock: None):
    case = small(CASES[name])

    def values(seed: int) -> Any:
        inputs = case.setup(np.random.default_rng(seed), **case.points[0], device="cuda")
        return inputs["images"] if "images" in inputs else inputs["values"]

    assert np.array_equal(values(1), values(1))
    assert not np.array_equal(values(1), values(2))


def test_wrong_values_of_a_candidate_are_found(simulated_clock: None):
    case = small(CASES["interference.kernel"])
    inputs = case.setup(np.random.default_rng(0), **case.points[0], device="cuda")
    expected = case.expected(inputs)
    assert case.check is not None
    right = case.candidates[0].code(inputs)  # type: ignore[operator]
    assert case.check(right, expected) > 0
    right["copied"][5] += 1
    with pytest.raises(AssertionError, match="wrong values were copied"):
        case.check(right, expected)
    with pytest.raises(AssertionError, match="wrong products"):
        case.check({"product": right["product"] + 9}, expected)


def test_the_slow_down_is_drawn_over_the_rate_of_the_copies(simulated_clock: None):
    case = small(CASES["interference.kernel"])
    points = tuple({**case.points[0], "blocks": blocks, "percent": share} for blocks in (1, 8) for share in (40, 95))
    made = run([replace(case, points=points)], device="cuda", rounds=2, threads=1)
    lines = slow_down_lines(made.results)
    assert sorted(lines) == ["1 block", "8 blocks"]
    for line, blocks in zip((lines["1 block"], lines["8 blocks"]), (1, 8), strict=True):
        own = [result for result in made.results if result.point["blocks"] == blocks]
        expected = sorted((65536 / r.ours.median_s / 1e9, 100 * (r.ratio("the loop alone").median - 1)) for r in own)
        assert np.allclose(line, expected)


def test_so_many_blocks_store_as_the_caller_says(cuda: Any):
    from tensorferry._device.on_device import TorchOnDevice
    from tensorferry._native import core

    x = cuda.settled(torch.arange(4096, dtype=torch.float32))
    out = ferry.empty_pinned(4096, np.float32)
    there = core.Source.from_array(out)
    source = TorchOnDevice(x, "float32").as_it_is(1)
    assert not core.store_by_kernel(source, there, 4)  # kernels are switched off
    with kernels():
        assert core.store_by_kernel(source, there, 4)
        assert not core.store_by_kernel(source, core.Source.from_array(np.empty(4096, np.float32)), 4)
    torch.cuda.synchronize()
    assert np.array_equal(out, np.arange(4096, dtype=np.float32))
    with pytest.raises(ValueError, match="does not fit"):
        core.store_by_kernel(source, core.Source.from_array(out[:5]), 4)


def test_the_tool_for_gpus_says_what_was_measured_and_what_was_left_out(simulated_clock: None):
    tool = loaded_tool("gpu_bench.py")
    made, left_out = tool.measure([small(CASES["d2h.cast"]), small(CASES["gather.scalars"])], seconds=0)
    assert left_out == ["gather.scalars"]
    text = "\n".join(tool.lines(made.results))
    assert text.startswith("d2h.cast (nbytes 65536), simulated, ")
    assert 'ferry.to_numpy(t, dtype="bfloat16")' in text
    assert "GB/s" in text
    assert tool.failures(made.results) == []
    wrong = replace(made.results[0].ours, samples_s=(), error="wrong before timing")
    failed = replace(made.results[0], measurements=(wrong, *made.results[0].peers))
    assert tool.failures([failed]) == ["d2h.cast: wrong before timing"]


def loaded_tool(name: str) -> Any:
    found = spec_from_file_location("a_tool", Path(__file__).parents[2] / "tools" / name)
    assert found is not None
    assert found.loader is not None
    tool = module_from_spec(found)
    found.loader.exec_module(tool)
    return tool
