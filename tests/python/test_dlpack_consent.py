"""What ``to_dlpack`` lets consumers write to, what it copies, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.counting_capsules import read_offer
from helpers.memory import address

NEWEST = (1, 1)
IS_COPIED = 2


CHAINS: dict[str, Callable[[Any], Any]] = {
    "offer of an offer": lambda x: ferry.to_dlpack(ferry.to_dlpack(x)),
    "offer of a foreign array": lambda x: ferry.to_dlpack(np.from_dlpack(ferry.to_dlpack(x))),
    "offer of our view": lambda x: ferry.to_dlpack(ferry.to_numpy(x)),
    "offer of an alias": lambda x: ferry.to_dlpack(ferry.from_numpy(ferry.to_numpy(x))),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_read_only_is_passed_on_along_a_chain(chain):
    tensor = torch.arange(3.0)
    producer = CHAINS[chain](tensor)
    taken = np.from_dlpack(producer)
    assert address(taken) == address(tensor)
    assert not taken.flags.writeable
    del tensor, producer
    assert taken.tolist() == [0, 1, 2]


def test_what_is_read_only_cannot_be_offered_writable():
    array = np.ones(3)
    array.flags.writeable = False
    for x in (array, ferry.to_numpy(torch.ones(3)), ferry.to_dlpack(np.ones(3)), b"abc"):
        with pytest.raises(BufferError, match="read-only"):
            ferry.to_dlpack(x, writable=True)


@pytest.mark.parametrize(
    "x",
    [
        torch.ones(1).expand(3),
        torch.ones(5).unfold(0, 2, 1),
        np.lib.stride_tricks.as_strided(np.ones(5), (2, 2), (8, 8)),
    ],
    ids=["expanded", "sliding window", "stride tricks"],
)
def test_overlapping_elements_are_never_offered_writable(x):
    with pytest.raises(ferry.LayoutError, match="overlap") as caught:
        ferry.to_dlpack(x, writable=True)
    assert isinstance(caught.value, BufferError)
    assert not np.from_dlpack(ferry.to_dlpack(x)).flags.writeable
    assert np.from_dlpack(ferry.to_dlpack(x, copy=True, writable=True)).flags.writeable


def test_copy_none_copies_exactly_what_cannot_be_shared():
    for x, expected in (
        (np.arange(3.0)[::-1], [2, 1, 0]),
        (np.arange(3, dtype=">i4"), [0, 1, 2]),
        (torch.tensor([1 + 2j]).conj(), [1 - 2j]),
        (torch._efficientzerotensor((2,)), [0, 0]),
    ):
        with pytest.raises(ferry.CopyRequiredError):
            ferry.to_dlpack(x)
        producer = ferry.to_dlpack(x, copy=None)
        assert read_offer(producer.__dlpack__(max_version=NEWEST)).flags == IS_COPIED
        assert np.from_dlpack(producer).tolist() == expected


def test_a_snapshot_taken_before_an_offer_keeps_its_values():
    tensor = torch.zeros(3)
    snapshot = ferry.to_numpy(tensor, copy="lazy")
    np.from_dlpack(ferry.to_dlpack(tensor, writable=True))[0] = 5
    assert tensor.tolist() == [5, 0, 0]
    assert snapshot.tolist() == [0, 0, 0]


REFUSED: dict[str, Callable[[], Any]] = {
    "nest": lambda: [torch.ones(2)],
    "number": lambda: 3.0,
    "text": lambda: np.array(["a"]),
    "dates": lambda: np.array(["2020"], "M8[Y]"),
    "masked": lambda: np.ma.masked_array([1.0], [True]),
    "extended precision": lambda: np.ones(2, np.longdouble),
    "sparse": lambda: torch.eye(2).to_sparse_csr(),
    "quantised": lambda: torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8),
    "meta": lambda: torch.ones(2, device="meta"),
    "fractional strides": lambda: np.zeros(3, [("a", "u1"), ("b", "f4")])["b"],
}


@pytest.mark.filterwarnings("ignore:.*(Sparse|quantize).*:UserWarning")
@pytest.mark.parametrize("kind", REFUSED)
def test_every_refusal_is_a_buffer_error_of_ours(kind):
    with pytest.raises(BufferError) as caught:
        ferry.to_dlpack(REFUSED[kind]())
    assert isinstance(caught.value, ferry.FerryError)
    assert caught.value.given
    assert caught.value.why
    assert caught.value.instead


@pytest.mark.parametrize("copy", ["lazy", 1, "yes"], ids=repr)
def test_a_copy_argument_that_is_none_is_refused_by_both(copy):
    for call in (ferry.to_dlpack, ferry.from_dlpack, lambda x, copy: ferry.from_dlpack(x, to="numpy", copy=copy)):
        with pytest.raises(ferry.ArgumentError):
            call(torch.ones(2), copy=copy)


def test_no_two_consumers_get_the_same_copy():
    producer = ferry.to_dlpack(torch.arange(3.0), copy=True)
    first, second = np.from_dlpack(producer), np.from_dlpack(producer)
    assert not np.shares_memory(first, second)
    first[:] = -1
    assert second.tolist() == [0, 1, 2]
    assert np.from_dlpack(producer).tolist() == [0, 1, 2]
