"""Whatever can be refused is refused before the first item or leaf is copied from the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.plans import refusal_of
from helpers.remote_device import Remote

CALLS: dict[str, tuple[Callable[[torch.Tensor, torch.Tensor], Any], type[ferry.FerryError]]] = {
    "a nest of destinations, the last of another shape": (
        lambda x, y: ferry.to_numpy([x, y], out=[zeros(2), zeros(4)]),
        ferry.BufferMismatchError,
    ),
    "a nest of destinations that overlap": (
        lambda x, y: ferry.to_numpy([x, x], out=overlapping()),
        ferry.BufferMismatchError,
    ),
    "a stack of two shapes": (lambda x, y: ferry.stack([x, y], to="numpy"), ferry.LayoutError),
    "a stack into an array of another shape": (
        lambda x, y: ferry.stack([x, x], out=zeros(3, 2)),
        ferry.BufferMismatchError,
    ),
    "a stack into a read-only array": (
        lambda x, y: ferry.stack([x, x], out=np.broadcast_to(np.float32(0), (2, 2))),
        ferry.ReadOnlyError,
    ),
    "a stack into an array that the cast does not reach": (
        lambda x, y: ferry.stack([x, x], out=np.zeros((2, 2), np.int32)),
        ferry.DTypeError,
    ),
    "a stack into a tensor of the device": (
        lambda x, y: ferry.stack([x, x], out=torch.empty_strided((2, 2), (2, 1), device="remote")),
        ferry.BufferMismatchError,
    ),
    "a stack with an item that no array holds": (
        lambda x, y: ferry.stack([x, np.array([object(), 1])], to="numpy"),
        ferry.DTypeError,
    ),
    "a stack for a device that there is not": (lambda x, y: ferry.stack([x, x], device="remotely"), ferry.DeviceError),
}


def zeros(*shape: int) -> np.ndarray[Any, Any]:
    """A float32 destination."""
    return np.zeros(shape, np.float32)


def overlapping() -> list[np.ndarray[Any, Any]]:
    """Two destinations that share an element."""
    whole = zeros(3)
    return [whole[:2], whole[1:]]


@pytest.mark.parametrize(("call", "kind"), CALLS.values(), ids=CALLS.keys())
def test_nothing_is_copied_from_the_device_for(
    remote: Remote, call: Callable[[torch.Tensor, torch.Tensor], Any], kind: type[ferry.FerryError]
) -> None:
    x, y = torch.ones(2).to("remote"), torch.ones(3).to("remote")
    copies = remote.copies
    assert isinstance(refusal_of(lambda: call(x, y)), kind)
    assert remote.copies == copies


def test_what_is_not_refused_is_copied_once(remote: Remote) -> None:
    x, host = torch.ones(2).to("remote"), torch.zeros(2)
    copies = remote.copies
    out = ferry.to_numpy({"a": x, "b": host}, out={"a": zeros(2), "b": zeros(2)})
    assert (out["a"].tolist(), out["b"].tolist(), remote.copies - copies) == ([1, 1], [0, 0], 1)
    stacked = ferry.stack([host, x, x.t()], out=zeros(3, 2))
    assert (stacked.tolist(), remote.copies - copies) == ([[0, 0], [1, 1], [1, 1]], 3)
