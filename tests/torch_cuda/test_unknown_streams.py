"""Memory of finished arrays beside torch's work on devices whose tensors nobody has converted."""

from __future__ import annotations

import pytest

from helpers.subprocess import stdout_of

pytestmark = pytest.mark.usefixtures("environment")  # builds what these interpreters load

BEGIN = """
import numpy as np, torch
from helpers.torch_on_fake import torch_on_fake
environment = torch_on_fake()
fake = environment.fake
import tensorferry as ferry
from helpers.fake_cuda_driver import Driver
cuda = Driver()
NBYTES = 200_000

def written_later_on(device, to):
    side, x = torch.cuda.Stream(device), torch.full((NBYTES,), 9, dtype=torch.uint8).to(f"cuda:{device}")
    with torch.cuda.device(device):
        cuda("cuMemcpyDtoHAsync", to.ctypes.data, x.data_ptr(), NBYTES, side.cuda_stream)
    return x

def lent_again(x):
    first = ferry.to_numpy(x)  # begins a fence
    for _ in range(400):  # it may pass: each look asks for an event, and answers are put off
        ferry.pool_stats()
    return [first, *(ferry.to_numpy(x) for _ in range(3))]
"""


def printed(program: str) -> str:
    return stdout_of(BEGIN + program)


CONVERT = """
x = torch.zeros(NBYTES, dtype=torch.uint8).to("cuda:0")
torch.zeros(1, device="cuda:1")
for _ in range(2):  # natively from the second time on
    ferry.to_numpy(x)
fake.drain()
"""


@pytest.mark.parametrize("background", [False, True], ids=["the calls alone", "the internal thread too"])
def test_results_wait_for_torchs_streams_of_a_device_in_use_that_is_not_converted_from(background: bool):
    answer = printed(
        CONVERT
        + f"""
wrong, kept = 0, []
with ferry.options(background={background}):
    for _ in range(5):
        result = ferry.to_numpy(x, copy=True)
        kept.append(written_later_on(1, result))
        del result
        following = lent_again(x)
        fake.drain()
        wrong += any(array.any() for array in following)
        del following
print(wrong, ferry.pool_stats().pinned.hits > 0, fake.violations())
"""
    )
    assert answer == "0 True []"


def test_memory_that_came_back_before_torch_began_is_used_again():
    answer = printed(
        """
from helpers.fake_cuda_arrays import TableArray
fake.use_device(0)
x = TableArray(np.zeros(NBYTES, np.uint8))
for _ in range(20):
    ferry.to_numpy(x)
print(torch.cuda.is_initialized(), ferry.pool_stats().pinned.hits > 0, fake.violations())
"""
    )
    assert answer == "False True []"


def test_torch_that_begins_after_memory_was_lent_is_waited_for():
    answer = printed(
        """
from helpers.fake_cuda_arrays import TableArray
fake.use_device(0)
x = TableArray(np.zeros(NBYTES, np.uint8))
ferry.to_numpy(x)
wrong, kept = 0, []
for _ in range(5):
    result = ferry.to_numpy(x, copy=True)
    kept.append(written_later_on(0, result))
    del result
    following = lent_again(x)
    fake.drain()
    wrong += any(array.any() for array in following)
    del following
print(wrong, ferry.pool_stats().pinned.hits > 0, fake.violations())
"""
    )
    assert answer == "0 True []"
