"""``CheckpointStager`` and ``capture`` with CUDA tensors: in the order of the stream, and not before a copy is done."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import numpy as np
import torch

import tensorferry as ferry


def test_staged_values_are_those_of_the_moment_under_every_schedule(any_schedule: Any):
    w = torch.arange(6.0).reshape(2, 3).to("cuda")
    state = {"w": w, "turned": w.t(), "tied": w, "half": torch.ones(4).bfloat16().to("cuda"), "here": torch.zeros(2)}
    staged = ferry.io.CheckpointStager().stage(state)
    assert isinstance(staged, Future)
    w.zero_()
    state["here"].fill_(9)
    found = staged.result(60)
    assert found["w"].device.type == "cpu"
    assert found["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert found["tied"] is found["w"]
    assert (found["half"].dtype, found["half"].tolist()) == (torch.bfloat16, [1, 1, 1, 1])
    assert found["here"].tolist() == [0, 0]


def test_a_later_staging_leaves_the_earlier_one_alone(cuda: Any):
    w = torch.full((1000,), 1.0).to("cuda")
    stager = ferry.io.CheckpointStager()
    first = stager.stage({"w": w})
    w.fill_(2.0)
    second = stager.stage({"w": w})
    stager.synchronize_staging()
    w.fill_(3.0)
    assert first.result(60)["w"].unique().tolist() == [1.0]
    assert second.result(60)["w"].unique().tolist() == [2.0]


def test_captured_rows_are_what_the_module_returned_before_work_in_place(any_schedule: Any, tmp_path: Any):
    class Doubled(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + x

    model = torch.nn.Sequential(Doubled())
    with ferry.Writer(tmp_path / "x.npy") as writer, ferry.io.capture(model, "0", writer):
        for step in range(3):
            model(torch.full((2, 4), float(step)).to("cuda")).zero_()
    assert np.array_equal(np.load(tmp_path / "x.npy"), np.repeat([0.0, 2.0, 4.0], 2)[:, None] * np.ones(4, "f4"))
