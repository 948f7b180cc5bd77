"""Pinned memory on a machine without a driver: ordinary memory that says so, and errors that say why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.subprocess import stdout_of
from tensorferry.types import PinnedPoolStats

SHAPES = [(), 5, (3, 4), [2, 0, 3], (np.int64(2), 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", np.int16, torch.float64, np.dtype("complex64"), bool])
def test_arrays_are_those_of_numpy_but_for_their_memory(shape: Any, order: Any, dtype: Any):
    like = np.zeros(
        shape, torch.empty(0, dtype=dtype).numpy().dtype if isinstance(dtype, torch.dtype) else dtype, order
    )
    for make in (ferry.empty_pinned, ferry.zeros_pinned, ferry.PinnedPool(1 << 20).empty):
        array = make(shape, dtype, order=order)
        assert (array.shape, array.dtype, array.flags.writeable) == (like.shape, like.dtype, True)
        assert like.size == 0 or array.strides == like.strides
        assert like.size == 0 or array.ctypes.data % 64 == 0
        array[...] = 1
        assert (array == 1).all()
    assert not ferry.zeros_pinned(shape, dtype, order=order).any()


@pytest.mark.parametrize("x", [np.zeros((2, 3, 4)).transpose(2, 0, 1), np.zeros((4, 6))[:, ::2], np.zeros((2, 0))])
def test_like_an_array_means_what_numpy_means(x: Any):
    like = ferry.empty_like_pinned(x)
    expected = np.empty_like(x)
    assert (like.shape, like.dtype) == (expected.shape, expected.dtype)
    assert x.size == 0 or like.strides == expected.strides


def test_like_a_tensor_keeps_dtype_and_order():
    like = ferry.empty_like_pinned(torch.zeros(2, 3, dtype=torch.int16).t())
    assert (like.shape, like.strides, like.dtype) == ((3, 2), (2, 6), np.int16)
    assert ferry.empty_like_pinned(torch.zeros(2, dtype=torch.bfloat16)).dtype.name == "bfloat16"
    assert ferry.empty_like_pinned(torch.zeros(2, dtype=torch.bfloat16), dtype="float32").dtype == np.float32


BAD = {
    "a negative extent": (lambda: ferry.empty_pinned(-1), ferry.ArgumentError),
    "a fraction": (lambda: ferry.empty_pinned(2.5), ferry.ArgumentError),
    "text": (lambda: ferry.empty_pinned("12"), ferry.ArgumentError),
    "more than there are addresses": (lambda: ferry.zeros_pinned((1 << 40, 1 << 40)), ferry.ArgumentError),
    "no dtype": (lambda: ferry.empty_pinned(2, None), ferry.DTypeError),
    "objects": (lambda: ferry.empty_pinned(2, object), ferry.DTypeError),
    "dates": (lambda: ferry.empty_pinned(2, "M8[s]"), ferry.DTypeError),
    "the other byte order": (lambda: ferry.empty_pinned(2, ">f8"), ferry.DTypeError),
    "an order that has no meaning here": (lambda: ferry.empty_pinned(2, order="K"), ferry.ArgumentError),
    "like dates": (lambda: ferry.empty_like_pinned(np.zeros(2, "M8[s]")), ferry.DTypeError),
    "a limit that is none": (lambda: ferry.PinnedPool(-1), ferry.ArgumentError),
    "a rule that is none": (lambda: ferry.PinnedPool(1, fence="event"), ferry.ArgumentError),
    "to trim to nothing": (lambda: ferry.PinnedPool(1).trim(1.5), ferry.ArgumentError),
}


@pytest.mark.parametrize(("call", "error"), BAD.values(), ids=BAD)
def test_arguments_are_checked(call: Any, error: type[ferry.FerryError]):
    with pytest.raises(error):
        call()


def test_more_memory_than_there_is_is_a_memory_error():
    with pytest.raises(MemoryError):
        ferry.empty_pinned((1 << 50,))


def test_tensors_over_such_arrays_are_ordinary():
    array = ferry.zeros_pinned(100)
    t = ferry.from_numpy(array)
    t[3] = 5
    assert array[3] == 5
    assert ferry.shares_memory(t, array)


def test_what_lies_in_ordinary_memory_says_why_and_everything_else_says_nothing():
    printed = stdout_of(
        """
        import os
        os.environ["TENSORFERRY_LIBCUDA"] = "/nowhere/libcuda.so.1"
        import numpy as np, torch, tensorferry as ferry
        array = ferry.empty_pinned((3, 4))
        for x in (array, array[1:], array.T, ferry.from_numpy(array), ferry.PinnedPool(1 << 20).empty(3)):
            seen = ferry.describe(x)
            print(seen.pinned, seen.note.startswith("not pinned: the driver library /nowhere/libcuda.so.1: "))
        print(ferry.describe(np.zeros(3)).note == ferry.describe(torch.zeros(3)).note == "")
        try:
            ferry.pinned(np.zeros(4))
        except ferry.DeviceError as error:
            print(error.given, "|", error.why[:44], "|", error.instead)
        ferry.hold(array, 1)
        pool = ferry.PinnedPool(5)
        pool.hold(array, 1)
        print(pool, pool.stats.limit_nbytes, pool.trim(), ferry.pool_stats().pinned)
        """
    )
    assert printed.splitlines() == [
        *["False True"] * 5,
        "True",
        "pinned() of 32 bytes | the driver library /nowhere/libcuda.so.1: it | use the array as it is",
        "PinnedPool(5, fence='streams') 5 0 None",
    ]


def test_an_empty_pool_has_only_its_limit():
    stats = ferry.PinnedPool(123).stats
    assert stats == PinnedPoolStats(0, 0, 0, 0, 0, 123, 0, 0, 0, 0, 0, 0)


def test_pinning_nothing_always_works():
    with ferry.pinned() as held, ferry.pinned(np.zeros(0), torch.zeros(0, 3)) as empty:
        assert (held.nbytes, empty.nbytes, held.closed) == (0, 0, False)
    assert held.closed
    assert empty.closed


def test_what_is_lent_by_no_pool_cannot_be_held():
    with pytest.raises(ferry.ArgumentError, match="lent by no pool"):
        ferry.hold(np.zeros(3), 1)


def test_arrays_give_their_memory_back():
    before = ferry.pool_stats()
    array = ferry.empty_pinned(1 << 20, "uint8")
    view = array[5:]
    del array
    assert view.sum() >= 0
    del view
    assert ferry.pool_stats().in_use_nbytes == before.in_use_nbytes
