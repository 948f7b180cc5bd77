"""Real torch CUDA tensors on the fake driver. Changes torch for the whole process, so these tests run alone:

    pytest tests/torch_cuda

In any other run they are not collected; ``tests/streams/test_torch_cuda_suite.py`` starts them in a process of their
own.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from helpers.device_path import no_internal_thread
from helpers.fake_cuda import ALL_SCHEDULES
from helpers.own_process import is_alone

if TYPE_CHECKING:
    from helpers.torch_on_fake import TorchOnFake

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect nothing beside other tests, and nothing where torch has a real device."""
    if HERE not in (collection_path, *collection_path.parents):
        return None
    if collection_path.name == "test_metrics_captured.py" and os.environ.get("TENSORFERRY_NO_EXCHANGE_API") == "1":
        return True  # replays read tensors by the exchange table: test_metrics.py has what is said without it
    return None if is_alone(config, HERE) and torch.version.cuda is None and torch.version.hip is None else True


@pytest.fixture(scope="session")
def environment() -> TorchOnFake:
    """Torch on the fake driver, with two devices; one for all tests, as the product keeps what it has of the driver."""
    from helpers.torch_on_fake import torch_on_fake  # changes torch

    made = torch_on_fake()
    gc.collect()
    gc.freeze()  # what torch made at import: else every collection of a test takes a tenth of a second
    return made


@pytest.fixture
def cuda(environment: TorchOnFake) -> Iterator[TorchOnFake]:
    """The environment with nothing pending and the lazy schedule; whoever provokes violations must clear them."""
    environment.renew()
    yield environment
    with no_internal_thread():  # a call that it is in the middle of has its context pushed
        environment.fake.drain()
        left, pushed = environment.fake.violations(), environment.fake.live("pushed_contexts")
        environment.renew()
    assert left == []
    assert pushed == 0


@pytest.fixture(params=ALL_SCHEDULES)
def any_schedule(request: pytest.FixtureRequest, cuda: TorchOnFake) -> TorchOnFake:
    """The environment under each schedule."""
    cuda.fake.schedule(request.param, seed=20240229)
    return cuda
