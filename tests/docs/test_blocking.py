"""docs/blocking.md: which calls copy from a device, and so wait for it, on a device whose copies are counted."""

from __future__ import annotations

import pytest

from helpers.documentation import ROOT
from helpers.subprocess import stdout_of

CALLS = {
    "ferry.to_numpy(t)": "1",
    "ferry.to_numpy([t, u, t])": "2",
    "ferry.to_numpy(t, copy=False)": "CopyRequiredError 0",
    "ferry.to_python({'loss': t, 'step': 1})": "1",
    "ferry.from_numpy(np.ones(3, np.float32), device='remote')": "1",
    "ferry.stack([t, u], to='numpy')": "2",
    "ferry.images_to_tensor(t)": "LayoutError 0",
    "ferry.images_to_tensor(torch.ones(2, 2, 3).to('remote'))": "2",  # there and back
    "ferry.tensor_to_images(t)": "LayoutError 0",
    "ferry.tensor_to_images(torch.ones(3, 2, 2).to('remote'))": "2",
    "ferry.check(t, shape=(3,), dtype='floating', device='remote')": "0",
    "ferry.check(t, finite=True, range=(0, 1))": "1",
    "ferry.plan([t, u])": "0",
    "ferry.explain(t)": "0",
    "ferry.describe(t)": "0",
    "ferry.shares_memory(t, u)": "0",
    "ferry.writable(t).__enter__()": "CopyRequiredError 0",
    "ferry.to_dlpack(t)": "DeviceError 0",
    "ferry.from_dlpack(t)": "0",
    "ferry.from_dlpack(t, to='numpy', copy=None)": "1",
    "ferry.from_dlpack(t, to='numpy')": "CopyRequiredError 0",
}


PROGRAM = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests")!r})
import numpy as np, torch, tensorferry as ferry
from helpers.remote_device import install
remote = install()
for call in {list(CALLS)!r}:
    t, u = torch.ones(3).to("remote"), torch.zeros(3).to("remote")
    before, outcome = remote.copies, ""
    try:
        eval(call)
    except ferry.FerryError as error:
        outcome = type(error).__name__ + " "
    print(outcome + str(remote.copies - before))
"""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    return dict(zip(CALLS, stdout_of(PROGRAM).splitlines(), strict=True))


@pytest.mark.parametrize(("call", "outcome"), CALLS.items(), ids=CALLS.keys())
def test_copies_from_a_device_are_as_documented(outcomes: dict[str, str], call: str, outcome: str) -> None:
    assert outcomes[call] == outcome
