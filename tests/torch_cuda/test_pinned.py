"""Pinned memory beside torch: whose context it takes, and whose streams it waits for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.subprocess import stdout_of

BEGIN = """
import gc, os
import numpy as np, torch
from helpers.torch_on_fake import torch_on_fake
environment = torch_on_fake()
fake = environment.fake
import tensorferry as ferry
from helpers.fake_cuda_driver import Driver
"""


def test_before_torch_uses_a_device_nothing_is_pinned_and_nothing_begins():
    printed = stdout_of(
        BEGIN
        + """
array = ferry.zeros_pinned(5000)
print(torch.cuda.is_initialized(), ferry.describe(array).note, fake.live("primary_contexts"))
x = torch.arange(5000, dtype=torch.float32, device="cuda")
later = ferry.zeros_pinned(5000)
print(ferry.describe(later).pinned, ferry.describe(array).pinned)
print(ferry.to_numpy(x, out=array)[4999], ferry.describe(array).pinned)
print(fake.live("primary_contexts"), fake.violations())
"""
    )
    assert printed.splitlines() == [
        "False pinned at its first use with a device 0",
        "True False",
        "4999.0 True",
        "1 []",
    ]


@pytest.mark.parametrize("seed", range(3))
def test_memory_waits_for_torchs_pool_streams_also_where_nothing_was_converted(seed: int):
    printed = stdout_of(
        BEGIN
        + f"""
x = torch.full((200_000,), 9, dtype=torch.uint8).to("cuda")
fake.drain()
fake.schedule("shuffled", {seed})
cuda = Driver()
with ferry.options(background=False):
    for i in range(30):
        side = torch.cuda.Stream()
        first = ferry.empty_pinned(200_000, "uint8")
        cuda("cuMemcpyDtoHAsync", first.ctypes.data, x.data_ptr(), 200_000, side.cuda_stream)
        del first
        second = ferry.zeros_pinned(200_000, "uint8")
        fake.drain()
        assert not second.any(), i
        del second
print(ferry.pool_stats().pinned.hits > 0, fake.violations())
"""
    )
    assert printed == "True []"


def test_torchs_current_device_gives_the_context(cuda: Any):
    torch.empty(1, device="cuda:0")
    array = ferry.zeros_pinned(300_000)
    assert ferry.describe(array).pinned
    assert cuda.fake.live("pushed_contexts") == 0


def test_the_source_of_to_device_may_be_pinned_or_not(any_schedule: Any):
    values = np.arange(10_000, dtype=np.float32)
    for source in (ferry.empty_pinned(10_000), values.copy()):
        source[:] = values
        with ferry.pinned(source):
            t = ferry.to_device(source, "cuda")
            source[:] = -1  # it may be changed as soon as the call returns
        assert ferry.to_numpy(t).tolist() == values.tolist()


def test_a_tensor_of_torch_can_be_pinned_and_filled(any_schedule: Any):
    t, x = torch.zeros(100, 200), torch.arange(20_000, dtype=torch.float32, device="cuda").view(100, 200)
    with ferry.pinned(t):
        out = t.numpy()
        assert ferry.to_numpy(x, out=out) is out
        assert ferry.describe(t).pinned
    assert t.flatten().tolist() == list(range(20_000))


def test_hold_takes_torchs_streams(any_schedule: Any):
    array = ferry.zeros_pinned(1000)
    torch.empty(1, device="cuda")
    for stream in (torch.cuda.Stream(), torch.cuda.Stream(device=1), torch.cuda.default_stream()):
        ferry.hold(array if ferry.describe(array).pinned else ferry.zeros_pinned(1000), stream)
    assert any_schedule.fake.violations() == []
