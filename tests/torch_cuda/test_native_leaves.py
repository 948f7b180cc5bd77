"""Plain tensors on the device are converted without Python code: the same results, and one wait for a whole nest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.device_path import until


@pytest.fixture
def known(cuda: Any) -> Any:
    """The environment, once a first conversion has introduced the device."""
    ferry.to_numpy(torch.ones(1).to("cuda"))
    cuda.fake.drain()
    cuda.fake.clear_trace()
    return cuda


def nest_of(count: int) -> dict[str, Any]:
    return {f"leaf {i}": torch.full((3, i + 1), float(i)).to("cuda") for i in range(count)}


def test_a_nest_of_64_tensors_is_64_copies_and_one_event(known: Any):
    tree = nest_of(64)
    ferry.to_numpy(tree)  # the pool takes its slabs, and fences what was lent before
    known.fake.clear_trace()
    arrays = ferry.to_numpy(tree)
    counts = known.fake.call_counts()
    assert counts["cuMemcpyDtoHAsync"] == 64
    assert counts["cuEventRecord"] == 1
    assert counts["cuEventSynchronize"] <= 1
    assert all(np.array_equal(arrays[f"leaf {i}"], np.full((3, i + 1), float(i))) for i in range(64))


def test_values_are_there_before_a_container_is_rebuilt_around_them(known: Any):
    seen: list[float] = []

    class Box:
        def __init__(self, content: Any) -> None:
            self.content = content

    def rebuild(box: Box, children: list[Any]) -> Box:
        seen.extend(float(child.sum()) for child in children)
        return Box(children[0])

    ferry.register_node(Box, lambda box: [box.content], rebuild)
    made = ferry.to_numpy([torch.arange(4.0).to("cuda"), Box(torch.full((5,), 2.0).to("cuda"))])
    assert seen == [10.0]
    assert made[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("copy", [None, True], ids=["shared if possible", "private"])
def test_writability_and_strides_are_those_of_the_plan(known: Any, copy: bool | None):
    x = torch.arange(24.0).reshape(2, 3, 4).to("cuda").permute(2, 0, 1)
    planned = ferry.plan(x, copy=copy)
    array = ferry.to_numpy(x, copy=copy)
    assert (array.strides, array.flags.writeable) == (planned.strides, planned.writable)
    assert array.flags.writeable == bool(copy)
    assert np.array_equal(array, np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1))


def test_a_private_copy_of_an_expanded_tensor_has_memory_for_each_element(known: Any):
    array = ferry.to_numpy(torch.arange(3.0).to("cuda").expand(4, 3), copy=True)
    array[0] = 7
    assert array.tolist() == [[7, 7, 7], [0, 1, 2], [0, 1, 2], [0, 1, 2]]


def test_copy_false_is_refused_before_anything_is_enqueued(known: Any):
    x = torch.ones(3).to("cuda")
    known.fake.clear_trace()
    with pytest.raises(ferry.CopyRequiredError, match="cuda:0"):
        ferry.to_numpy(x, copy=False)
    assert known.fake.call_counts()["cuMemcpyDtoHAsync"] == 0


def test_the_tensor_is_let_go_of_when_the_call_returns(known: Any):
    x = torch.ones(1 << 16).to("cuda")
    known.fake.drain()
    before = known.fake.live("device_bytes")
    array = ferry.to_numpy([x])[0]
    del x

    def is_let_go_of() -> bool:
        known.fake.drain()  # torch gives memory back in the order of its stream
        return bool(known.fake.live("device_bytes") < before)

    assert until(is_let_go_of)  # by this thread, or just now by the internal one
    assert array.sum() == 1 << 16


def test_an_error_names_the_leaf_and_leaves_the_rest_alone(known: Any):
    sparse = torch.ones(2, 2).to_sparse()
    with pytest.raises(ferry.LayoutError, match=r"leaf \['b'\]"):
        ferry.to_numpy({"a": torch.ones(3).to("cuda"), "b": sparse})
    assert ferry.to_numpy(torch.ones(3).to("cuda")).tolist() == [1, 1, 1]


def test_under_every_schedule_the_values_are_those_of_the_call(any_schedule: Any):
    ferry.to_numpy(torch.ones(1).to("cuda"))
    for value in range(20):
        x = torch.full((7,), float(value)).to("cuda")
        array = ferry.to_numpy((x, x))[1]
        x.fill_(-1)
        assert array.tolist() == [value] * 7
