"""What ``to_dlpack`` offers, read by NumPy, by torch and by hand; and what it refuses to offer."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.counting_capsules import Offer, deleter_and_tensor, read_offer
from helpers.foreign_threads import call_without_gil
from helpers.memory import address
from helpers.torch_dtypes import NUMPY_HAS, SMALL_INTEGERS, name_of, sample

NEWEST = (1, 1)
READ_ONLY, IS_COPIED = 1, 2


def _offer(x: Any, version: tuple[int, int] | None = NEWEST, **arguments: Any) -> Offer:
    return read_offer(ferry.to_dlpack(x, **arguments).__dlpack__(max_version=version))


CODES = {
    "bool": (6, 8),
    **{f"int{bits}": (0, bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (1, bits) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (2, bits) for bits in (16, 32, 64)},
    "bfloat16": (4, 16),
    "complex32": (5, 32),
    "complex64": (5, 64),
    "complex128": (5, 128),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
}


@pytest.mark.parametrize("copy", [False, True], ids=["shared", "copied"])
@pytest.mark.parametrize("name", CODES)
def test_every_dtype_of_torch_is_offered_bit_for_bit(name, copy):
    tensor = sample(getattr(torch, name))
    producer = ferry.to_dlpack(tensor, copy=copy)
    offered = read_offer(producer.__dlpack__(max_version=NEWEST))
    assert offered.dtype == (*CODES[name], 1)
    assert offered.shape == tuple(tensor.shape)
    assert (offered.data == tensor.data_ptr()) is not copy
    again = torch.from_dlpack(producer)
    assert again.dtype is tensor.dtype
    assert torch.equal(again.reshape(-1).view(torch.uint8), tensor.reshape(-1).view(torch.uint8))


@pytest.mark.parametrize("dtype", [d for d in NUMPY_HAS if d not in SMALL_INTEGERS], ids=name_of)
def test_what_numpy_has_a_dtype_for_numpy_takes(dtype):
    tensor = sample(dtype)
    taken = np.from_dlpack(ferry.to_dlpack(tensor))
    assert taken.dtype.name == name_of(dtype)
    assert address(taken) == address(tensor)
    assert taken.tobytes() == tensor.numpy().tobytes()


def test_arrays_of_ml_dtypes_reach_torch():
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        array = np.arange(4).astype(getattr(ml_dtypes, name))
        tensor = torch.from_dlpack(ferry.to_dlpack(array))
        assert tensor.dtype is getattr(torch, name)
        assert tensor.float().tolist() == [0, 1, 2, 3]
    assert _offer(np.ones(2, ml_dtypes.float8_e3m4)).dtype == (7, 8, 1)


def test_packed_float4_is_offered_packed_and_unpacked_small_dtypes_are_refused():
    packed = torch.tensor([0x21], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    assert _offer(packed).dtype == (17, 4, 2)
    for dtype in (ml_dtypes.int4, ml_dtypes.float4_e2m1fn):
        with pytest.raises(BufferError, match="a byte each"):
            ferry.to_dlpack(np.ones(2, dtype))


GRID = np.arange(24.0).reshape(4, 6)
STRIDES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "matrix": (lambda: GRID, (6, 1)),
    "Fortran order": (lambda: GRID.T, (1, 6)),
    "strided": (lambda: GRID[::2, 1::2], (12, 2)),
    "one row of many": (lambda: GRID[::3][:1], (6, 1)),
    "one column": (lambda: GRID[:, :1], (6, 1)),
    "odd stride of a single row": (lambda: np.lib.stride_tricks.as_strided(GRID, (1, 3), (56, 8)), (3, 1)),
    "negative stride of a single row": (lambda: GRID[:1][::-1], (6, 1)),
    "fractional stride of a single element": (lambda: np.lib.stride_tricks.as_strided(GRID, (1,), (3,)), (1,)),
    "scalar": (lambda: GRID[1, 2, ...], ()),
    "empty": (lambda: GRID[:0], (6, 1)),
    "broadcast": (lambda: np.broadcast_to(GRID[0], (2, 6)), (0, 1)),
    "new axis": (lambda: GRID[:, None], (6, 6, 1)),
}


@pytest.mark.parametrize("kind", STRIDES)
def test_strides_are_in_elements_and_canonical_where_the_data_is_contiguous(kind):
    make, strides = STRIDES[kind]
    for version in (NEWEST, None):
        offered = _offer(make(), version, **({} if version else {"copy": True}))
        assert offered.shape == make().shape
        assert offered.strides is not None
        assert offered.byte_offset == 0
        assert offered.device == (1, 0)
        if version:
            assert offered.strides == strides
            assert offered.data == make().ctypes.data or make().size == 0
    np.testing.assert_array_equal(np.from_dlpack(ferry.to_dlpack(make())), make())
    np.testing.assert_array_equal(torch.from_dlpack(ferry.to_dlpack(make())).numpy(), make())


@pytest.mark.parametrize("make", [lambda: torch.ones(2, 3), lambda: np.ones((2, 3))], ids=["tensor", "array"])
@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        ({}, READ_ONLY),
        ({"copy": None}, READ_ONLY),
        ({"writable": True}, 0),
        ({"copy": True}, IS_COPIED),
        ({"copy": True, "writable": True}, IS_COPIED),
    ],
    ids=str,
)
def test_flags_and_version(make, arguments, flags):
    offered = _offer(make(), **arguments)
    assert offered.flags == flags
    assert offered.version is not None
    assert offered.version[0] == 1


@pytest.mark.parametrize("version", [(1, 0), (1, 9), (2, 0)], ids=str)
def test_consumers_of_any_new_version_get_the_versioned_form(version):
    offered = _offer(np.ones(3), version)
    assert offered.version is not None
    assert offered.version[0] == 1


@pytest.mark.parametrize("version", [None, (0, 8), (0, 0)], ids=str)
def test_consumers_of_old_versions_get_the_old_form_of_what_they_may_write_only(version):
    for arguments in ({"writable": True}, {"copy": True}):
        assert _offer(np.ones(3), version, **arguments).version is None
    with pytest.raises(BufferError, match="read-only") as caught:
        _offer(np.ones(3), version)
    assert isinstance(caught.value, ferry.ReadOnlyError)
    private = ferry.to_dlpack(np.ones(3)).__dlpack__(max_version=version, copy=True)
    assert read_offer(private).version is None


def test_a_consumer_that_asks_for_a_copy_gets_private_memory():
    array = np.arange(3.0)
    producer = ferry.to_dlpack(array)
    copied = np.from_dlpack(producer, copy=True)
    copied[0] = 9
    assert array[0] == 0
    for copy in (None, False):
        assert read_offer(producer.__dlpack__(max_version=NEWEST, copy=copy)).data == address(array)
    first, second = (producer.__dlpack__(max_version=NEWEST, copy=True) for _ in range(2))
    assert read_offer(first).data != read_offer(second).data
    assert read_offer(first).flags == IS_COPIED


def test_the_device_is_the_host_and_no_other_is_given():
    producer = ferry.to_dlpack(np.ones(3))
    assert producer.__dlpack_device__() == (1, 0)
    assert read_offer(producer.__dlpack__(max_version=NEWEST, dl_device=(1, 0))).device == (1, 0)
    for arguments in (
        {"dl_device": (2, 0)},
        {"dl_device": (1, 1)},
        {"dl_device": 1},
        {"stream": 0},
        {"stream": object()},
        {"stream": np.ones(2)},
        {"max_version": "1.0"},
        {"max_version": ()},
    ):
        with pytest.raises(BufferError) as caught:
            producer.__dlpack__(**{"max_version": NEWEST, **arguments})
        assert isinstance(caught.value, ferry.FerryError)


@pytest.mark.parametrize("version", [NEWEST, None], ids=["versioned", "old form"])
def test_the_memory_lives_until_the_deleter_ran_once(version):
    array = np.arange(1000.0)
    alive = weakref.ref(array)
    producer = ferry.to_dlpack(array, writable=True)
    deleter, managed = deleter_and_tensor(producer.__dlpack__(max_version=version))
    del array, producer
    gc.collect()
    assert alive() is not None
    call_without_gil(deleter, managed)
    assert alive() is None


@pytest.mark.parametrize("version", [NEWEST, None], ids=["versioned", "old form"])
def test_a_capsule_that_nobody_consumes_lets_go(version):
    array = np.arange(1000.0)
    alive = weakref.ref(array)
    capsule = ferry.to_dlpack(array, writable=True).__dlpack__(max_version=version)
    del array
    assert alive() is not None
    del capsule
    assert alive() is None


@pytest.mark.parametrize("consume", [np.from_dlpack, torch.from_dlpack], ids=["NumPy", "torch"])
def test_the_consumers_array_keeps_the_memory(consume):
    array = np.arange(1000.0)
    alive = weakref.ref(array)
    taken = consume(ferry.to_dlpack(array))
    del array
    assert alive() is not None
    assert float(taken[999]) == 999
    del taken
    assert alive() is None


def test_a_capsule_is_consumed_once_by_torch_too():
    capsule = ferry.to_dlpack(np.arange(3.0), writable=True).__dlpack__()
    first = torch.utils.dlpack.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="only once"):
        torch.utils.dlpack.from_dlpack(capsule)
    assert first.tolist() == [0, 1, 2]


def test_the_offer_says_what_it_is():
    assert repr(ferry.to_dlpack(np.ones((2, 3)))) == "<read-only DLPack producer of a (2, 3) float64 tensor>"
    assert repr(ferry.to_dlpack(np.ones(2), copy=True)) == "<DLPack producer of a (2,) float64 tensor>"
