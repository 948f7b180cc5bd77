"""empty_pinned and its relatives, where a device is in use: pinned at once, filled directly, used again in time."""

from __future__ import annotations

import gc
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.device_path import seen, settle, until
from helpers.fake_cuda import LEGACY, FakeCuda
from helpers.fake_cuda_arrays import TableArray
from helpers.fake_cuda_driver import Driver
from helpers.orders import orders
from tensorferry._native import core

MIB = 1 << 20
DTYPES = {"float32": np.float32, "int64": np.int64, "bool": np.bool_, "bfloat16": ml_dtypes.bfloat16}


def address(x: Any) -> int:
    return int(x.__array_interface__["data"][0])


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(3, 5), (300, 200), 7, (), (2, 0, 3)], ids=str)
def test_it_is_what_numpy_makes_over_pinned_memory(fake: FakeCuda, shape: Any, order: Any, name: str):
    for dtype in (name, DTYPES[name], getattr(torch, name)):
        array, like = ferry.empty_pinned(shape, dtype, order=order), np.empty(shape, DTYPES[name], order=order)
        assert (array.shape, array.dtype, array.nbytes) == (like.shape, like.dtype, like.nbytes)
        assert like.size == 0 or array.strides == like.strides
        assert array.flags.writeable
        assert ferry.describe(array).pinned == (like.size > 0)
        array[...] = 1
        assert (array == np.ones(shape, DTYPES[name])).all()


def test_zeros_are_zero_also_in_memory_that_was_used(fake: FakeCuda):
    for _ in range(4):
        array = ferry.zeros_pinned((50, 1000), "int32")
        assert not array.any()
        array[...] = -1
        del array
        until(lambda: settle(fake) is None and core.pinned_stats()["retired_nbytes"] == 0, timeout_s=0.1)
        ferry.trim(64 * MIB)


LIKE = {
    "array in another order": lambda: np.zeros((2, 3, 4), np.int16).transpose(2, 0, 1),
    "slice": lambda: np.zeros((4, 6))[:, ::2],
    "tensor": lambda: torch.zeros(2, 3, dtype=torch.float64).t(),
    "bfloat16 tensor": lambda: torch.zeros(2, 3, dtype=torch.bfloat16),
    "tensor on a device": lambda: TableArray(np.zeros((2, 3), np.float32)).view((3, 2), (1, 3)),
}


@pytest.mark.parametrize("make", LIKE.values(), ids=LIKE)
def test_like_another_one_keeps_shape_dtype_and_order_of_axes(fake: FakeCuda, make: Any):
    x = make()
    like, other = ferry.empty_like_pinned(x), ferry.empty_like_pinned(x, dtype=np.float64)
    reference = ferry.to_numpy(x, copy=True)
    assert (like.shape, like.dtype) == (reference.shape, reference.dtype)
    assert like.strides == reference.strides
    assert other.dtype == np.float64
    assert np.argsort(other.strides).tolist() == np.argsort(reference.strides).tolist()
    assert ferry.describe(like).pinned
    assert ferry.describe(other).pinned


def test_a_destination_of_pinned_memory_is_filled_directly(any_schedule: FakeCuda):
    out = ferry.empty_pinned((64, 1000), "int32")
    x = TableArray(np.zeros((64, 1000), np.int32))
    x.write_later(np.arange(64000).reshape(64, 1000))
    with seen(any_schedule) as record:
        assert ferry.to_numpy(x, out=out) is out
    assert record.copies("DtoH") == [out.nbytes]
    assert (out == np.arange(64000).reshape(64, 1000)).all()
    part = ferry.empty_pinned((128, 1000), "int32")[64:]
    with seen(any_schedule) as record:
        assert ferry.to_numpy_async(x, out=part).result() is part
    assert record.copies("DtoH") == [part.nbytes] or len(record.copies("DtoD")) == 1
    assert (part == out).all()
    assert any_schedule.live("pageable_copies") == 0


def test_no_array_gets_memory_that_work_of_others_may_touch(fake: FakeCuda, without_thread: None):
    """Work of others on the legacy stream writes into an array's memory when the array is long gone."""
    cuda = Driver()
    nbytes = 200_000
    used_again = 0
    for order in orders(fake, seeds=60):
        source = TableArray(np.full(nbytes, 7, np.uint8))
        first = ferry.empty_pinned(nbytes, "uint8")
        at = address(first)
        cuda("cuMemcpyDtoHAsync", at, source.pointer, nbytes, LEGACY)
        del first
        second = ferry.zeros_pinned(nbytes, "uint8")
        if address(second) == at:
            assert cuda.code("cuStreamQuery", LEGACY) == 0, order
        fake.drain()
        assert not second.any(), order
        used_again += core.pinned_stats()["hits"] > 0
        del second
        settle(fake)
    assert used_again > 0
    assert fake.violations() == []


def test_a_stream_of_others_is_waited_for_after_hold(fake: FakeCuda, without_thread: None):
    cuda = Driver()
    nbytes = 300_000
    stream = cuda.stream()
    used_again = 0
    for order in orders(fake, seeds=60):
        source = TableArray(np.full(nbytes, 9, np.uint8), stream=stream)
        first = ferry.empty_pinned(nbytes, "uint8")
        at = address(first)
        cuda("cuMemcpyDtoHAsync", at, source.pointer, nbytes, stream)
        ferry.hold(first[5:10], stream)
        del first
        second = ferry.zeros_pinned(nbytes, "uint8")
        if address(second) == at:
            assert cuda.code("cuStreamQuery", stream) == 0, order
        fake.drain()
        assert not second.any(), order
        used_again += core.pinned_stats()["hits"] > 0
        del second
        settle(fake)
    assert used_again > 0
    assert fake.violations() == []


def test_memory_is_used_again_once_all_work_is_done(fake: FakeCuda):
    first = ferry.empty_pinned(5 * MIB, "uint8")
    registered = fake.live("host_registrations")
    at = address(first)
    del first
    assert until(lambda: ferry.empty_pinned(5 * MIB, "uint8").ctypes.data == at or bool(fake.drain()), timeout_s=5)
    assert fake.live("host_registrations") <= registered + 1
    assert ferry.trim() >= 0


@pytest.mark.parametrize("consumer", ["torch", "numpy", "view"])
def test_views_of_all_kinds_keep_the_memory(fake: FakeCuda, consumer: str):
    array = ferry.zeros_pinned(50_000, "int64")
    array[:] = 5
    before = core.pinned_stats()["in_use_leases"]
    view = {"torch": ferry.from_numpy, "numpy": np.from_dlpack, "view": lambda a: a[10:]}[consumer](array)
    del array
    gc.collect()
    assert core.pinned_stats()["in_use_leases"] == before
    assert int(view[20]) == 5
    del view
    gc.collect()
    assert core.pinned_stats()["in_use_leases"] == before - 1


def test_a_tensor_over_pinned_memory_is_described_as_pinned(fake: FakeCuda):
    t = ferry.from_numpy(ferry.zeros_pinned(100))
    assert ferry.describe(t).pinned
    assert ferry.describe(t[3:]).pinned
    assert not ferry.describe(torch.zeros(100)).pinned


def test_beyond_the_limit_arrays_lie_in_ordinary_memory_and_say_so(fake: FakeCuda):
    with ferry.options(pinned_nbytes=0):
        array = ferry.zeros_pinned(100_000)
        seen_as = ferry.describe(array)
        assert not seen_as.pinned
        assert "not pinned: no more can be pinned: the limit is 0 bytes" in seen_as.note
        x = TableArray(np.arange(100_000, dtype=np.float32))
        assert ferry.to_numpy(x, out=array) is array
    assert (array == np.arange(100_000)).all()


def test_what_the_driver_refuses_is_ordinary_memory(fake: FakeCuda):
    ferry.trim()
    fake.preset("register_unsupported")
    fake.host_budget(0)
    array = ferry.zeros_pinned(3 * MIB, "uint8")
    assert not ferry.describe(array).pinned
    assert ferry.describe(array).note.startswith("not pinned: ")
    array[...] = 1
    assert array.sum() == 3 * MIB


def test_a_lost_device_leaves_ordinary_memory(fake: FakeCuda):
    ferry.trim()
    fake.fault("cuMemHostRegister", 700)
    array = ferry.zeros_pinned(7 * MIB, "uint8")
    fake.clear_faults()
    assert not ferry.describe(array).pinned
    assert "cuMemHostRegister" in ferry.describe(array).note
    assert not array.any()


def test_eight_threads_share_the_pool(fake: FakeCuda):
    fake.schedule("threaded", 5)
    failures: list[str] = []

    def work(number: int) -> None:
        fake.use_device(0)
        for i in range(40):
            n = 100 * (i % 7 + 1) + number
            array = ferry.zeros_pinned(n, "int32")
            x = TableArray(np.full(n, number * 1000 + i, np.int32))
            if array.any():
                failures.append(f"thread {number}, round {i}: not zero")
            ferry.to_numpy(x, out=array)
            if not (array == number * 1000 + i).all():
                failures.append(f"thread {number}, round {i}: {array[:3]}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
