"""Torch tensors that our kernels pack, cast and gather instead of torch and the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.device_path import kernels


@pytest.fixture(autouse=True)
def with_kernels(cuda: Any) -> Iterator[None]:
    """Kernels are there, and the pool is warm, so that no fence is recorded meanwhile."""
    cuda.settled(torch.zeros(()))  # the device is in use
    with kernels():
        ferry.to_numpy([torch.full((4,), float(i)).to("cuda") for i in range(8)])
        yield


def packs_of_torch(cuda: Any) -> int:
    """Copies that torch itself made on the device."""
    return int(cuda.fake.call_counts()["cuMemcpyDtoDAsync"])


@pytest.mark.parametrize(
    ("name", "dtype"), [("float32", torch.float32), ("bfloat16", torch.bfloat16), ("bool", torch.bool)]
)
def test_a_strided_tensor_is_packed_by_a_kernel_of_ours(cuda: Any, name: str, dtype: torch.dtype):
    values = (torch.arange(600 * 400).reshape(600, 400) % 7).to(dtype)
    x = cuda.settled(values)[:, ::2]
    cuda.fake.clear_trace()
    array = ferry.to_numpy(x)
    assert cuda.fake.call_counts()["cuLaunchKernel"] == 1
    assert packs_of_torch(cuda) == 0
    assert array.dtype.name == name
    assert np.array_equal(array.astype(np.float32), values[:, ::2].float().numpy())


def test_a_nest_of_64_tensors_is_one_launch_one_copy_and_one_event_without_python(any_schedule: Any):
    nest = {f"leaf {i}": torch.full((3, i + 1), float(i)).to("cuda") for i in range(64)}
    ferry.to_numpy(nest)
    any_schedule.fake.drain()
    any_schedule.fake.clear_trace()
    arrays = ferry.to_numpy(nest)
    counts = any_schedule.fake.call_counts()
    assert (counts["cuLaunchKernel"], counts["cuMemcpyDtoHAsync"]) == (1, 1)
    assert counts["cuStreamSynchronize"] == counts["cuCtxSynchronize"] == 0
    assert all((array == i).all() and array.shape == (3, i + 1) for i, array in enumerate(arrays.values()))


def test_to_python_gathers_what_it_reads(cuda: Any):
    tree = {"loss": torch.tensor(0.5).to("cuda"), "counts": torch.arange(3).to("cuda"), "step": 7}
    cuda.fake.clear_trace()
    assert ferry.to_python(tree) == {"loss": 0.5, "counts": [0, 1, 2], "step": 7}
    counts = cuda.fake.call_counts()
    assert (counts["cuLaunchKernel"], counts["cuMemcpyDtoHAsync"]) == (1, 1)


def test_a_narrowing_cast_is_made_on_the_device(cuda: Any):
    values = torch.linspace(-4, 4, 300 * 300).reshape(300, 300)
    x = cuda.settled(values).t()
    cuda.fake.clear_trace()
    array = ferry.to_numpy(x, dtype="float16")
    assert cuda.fake.call_counts()["cuLaunchKernel"] == 1
    assert np.array_equal(array, values.t().to(torch.float16).numpy())


def test_marks_are_resolved_behind_the_link(cuda: Any):
    values = torch.complex(torch.arange(6.0), torch.ones(6))
    x = cuda.settled(values).conj()
    assert np.array_equal(ferry.to_numpy(x), values.conj().resolve_conj().numpy())
