"""Nothing is read before the device has finished. Here a copy that does not wait has visibly not happened yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.remote_device import Remote
from tensorferry._torch import fallback

OLD, NEW = [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]

READERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "to_numpy": lambda x: ferry.to_numpy(x).tolist(),
    "to_numpy of a private copy": lambda x: ferry.to_numpy(x, copy=True).tolist(),
    "to_numpy in another dtype": lambda x: ferry.to_numpy(x, dtype="float64").tolist(),
    "to_numpy of a view": lambda x: ferry.to_numpy(x.reshape(3, 1).t()).ravel().tolist(),
    "to_numpy of a negative": lambda x: (-ferry.to_numpy(torch._neg_view(x))).tolist(),
    "to_numpy into a destination": lambda x: ferry.to_numpy(x, out=np.zeros(3)).tolist(),
    "to_numpy of a nest": lambda x: ferry.to_numpy([x])[0].tolist(),
    "to_python": ferry.to_python,
    "stack": lambda x: ferry.stack([x], to="numpy")[0].tolist(),
    "from_dlpack": lambda x: ferry.from_dlpack(x, to="numpy", copy=None).tolist(),
    "torch's own cpu()": lambda x: x.cpu().tolist(),
}


def busy() -> torch.Tensor:
    """A device tensor that work which has not run yet will write to."""
    x = torch.tensor(OLD).to("remote")
    x.copy_(torch.tensor(NEW).to("remote"), non_blocking=True)
    return x


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
def test_f015_f016_reading_waits_for_the_work_before_it_and_for_the_copy(
    remote: Remote, read: Callable[[torch.Tensor], Any]
) -> None:
    x = busy()
    assert len(remote.waiting) == 1
    assert read(x) == NEW
    assert remote.waiting == []


def test_a_copy_that_does_not_wait_shows_on_this_device(remote: Remote) -> None:
    x = busy()
    host = torch.tensor([7.0, 7.0, 7.0])
    host.copy_(x, non_blocking=True)
    assert host.tolist() == [7, 7, 7]
    remote.synchronize()
    assert host.tolist() == NEW


@pytest.mark.parametrize("read", list(READERS.values())[:10], ids=list(READERS)[:10])
def test_were_our_copies_not_to_wait_every_reader_would_give_wrong_values(
    remote: Remote, monkeypatch: pytest.MonkeyPatch, read: Callable[[torch.Tensor], Any]
) -> None:
    def too_early(host: torch.Tensor, stored: torch.Tensor) -> None:
        host.fill_(7).copy_(stored, non_blocking=True)

    monkeypatch.setattr(fallback, "_copy", too_early)
    assert read(busy()) != NEW
    remote.synchronize()


def test_f015_scalars_made_in_a_loop_arrive_as_they_were_sent(remote: Remote) -> None:
    sent = [ferry.from_numpy(np.array([i], np.float32), device="remote") for i in range(3)]
    assert remote.waiting == []
    assert ferry.stack(sent, to="numpy").ravel().tolist() == [0, 1, 2]


def test_f015_the_source_may_be_overwritten_and_freed_as_soon_as_it_was_sent(remote: Remote) -> None:
    array = np.arange(3.0)
    sent = ferry.from_numpy(array, device="remote")
    array[:] = -1
    del array
    remote.synchronize()
    assert sent.cpu().tolist() == [0, 1, 2]


def test_filling_a_given_tensor_waits_for_the_work_before_it(remote: Remote) -> None:
    x = busy()
    fallback.from_host(torch.tensor([4.0, 5.0, 6.0]), "remote", out=x)
    assert remote.waiting == []
    assert x.cpu().tolist() == [4, 5, 6]


def test_later_work_on_the_device_never_reaches_the_array(remote: Remote) -> None:
    x = torch.tensor(NEW).to("remote")
    array = ferry.to_numpy(x)
    x.copy_(torch.tensor(OLD).to("remote"), non_blocking=True)
    remote.synchronize()
    assert array.tolist() == NEW
