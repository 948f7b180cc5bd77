"""Calls that read many tensors wait for the device once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry


@pytest.fixture
def traced(cuda: Any) -> Any:
    """The environment with a warm pool, so that no fence is recorded meanwhile."""
    ferry.to_numpy([torch.full((4,), float(i)).to("cuda") for i in range(8)])
    cuda.fake.clear_trace()
    return cuda


def test_to_python_of_a_nest_waits_once(traced: Any):
    tree = {"loss": torch.tensor(0.5).to("cuda"), "by class": [torch.tensor([1, 2]).to("cuda")], "step": 7}
    tree["half"] = torch.tensor(1.5, dtype=torch.bfloat16).to("cuda")
    traced.fake.clear_trace()
    assert ferry.to_python(tree) == {"loss": 0.5, "by class": [[1, 2]], "step": 7, "half": 1.5}
    counts = traced.fake.call_counts()
    assert (counts["cuMemcpyDtoHAsync"], counts["cuEventRecord"]) == (3, 1)


@pytest.mark.parametrize("to", ["torch", "numpy"])
def test_stack_waits_once_and_casts_on_the_way(traced: Any, to: str):
    items = [torch.full((4,), i, dtype=torch.int32).to("cuda") for i in range(6)]
    traced.fake.clear_trace()
    stacked = ferry.stack([*items, np.full(4, 6, np.int32)], to=to, dtype="float32")
    counts = traced.fake.call_counts()
    assert (counts["cuMemcpyDtoHAsync"], counts["cuEventRecord"]) == (6, 1)
    assert np.array_equal(np.asarray(stacked), np.arange(7, dtype=np.float32)[:, None].repeat(4, 1))


def test_a_container_that_makes_new_tensors_when_asked_is_read_as_it_is(traced: Any):
    class Fresh:
        made = 0

        def children(self) -> list[torch.Tensor]:
            Fresh.made += 1
            return [torch.full((2,), float(Fresh.made)).to("cuda")]

    ferry.register_node(Fresh, Fresh.children, lambda fresh, children: children[0])
    assert ferry.to_python([Fresh()]) == [[[1.0, 1.0]]]  # those that the walk saw, not those that were gathered
