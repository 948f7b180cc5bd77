"""Arrays on the simulated device: what they say through DLPack, and how long they live."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import numpy as np
import pytest

from helpers.counting_capsules import CUDA, deleter_and_tensor, read_offer
from helpers.fake_cuda import LEGACY, FakeCuda
from helpers.fake_cuda_arrays import DeviceArray, TableArray
from helpers.fake_cuda_driver import NOT_READY, Driver


def release(capsule: Any) -> None:
    """Consume a capsule and let go of its tensor."""
    deleter, tensor = deleter_and_tensor(capsule)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(tensor)


@pytest.mark.parametrize("version", [None, (1, 1)], ids=["old capsule", "versioned capsule"])
def test_a_capsule_says_where_the_array_is(fake: FakeCuda, version: tuple[int, int] | None):
    fake.preset("two_devices")
    array = DeviceArray([[1, 2, 3], [4, 5, 6]], np.int16, device=1)
    offer = read_offer(array.__dlpack__(max_version=version))
    assert (offer.device, offer.dtype, offer.shape, offer.strides) == ((CUDA, 1), (0, 16, 1), (2, 3), (3, 1))
    assert offer.data == array.pointer
    assert (offer.version is not None) == (version is not None)
    assert array.__dlpack_device__() == (CUDA, 1)


def test_a_view_has_its_own_layout_over_the_same_memory(fake: FakeCuda):
    array = DeviceArray(np.arange(6, dtype=np.float32))
    column = array.view((2,), (3,), offset=1)
    offer = read_offer(column.__dlpack__())
    assert (offer.shape, offer.strides, offer.data + offer.byte_offset) == ((2,), (3,), array.pointer + 4)


def test_memory_lives_until_array_and_capsule_are_gone(fake: FakeCuda):
    array = DeviceArray(np.zeros(8, np.uint8))
    capsule = array.__dlpack__(max_version=(1, 0))
    del array
    gc.collect()
    assert fake.live("device_bytes") == 8
    release(capsule)
    fake.drain()
    assert fake.live("device_bytes") == 0


def test_a_dropped_capsule_gives_its_memory_back(fake: FakeCuda):
    array = DeviceArray(np.zeros(8, np.uint8))
    memory = weakref.ref(array.memory)
    capsule = array.__dlpack__()
    made = array.capsules[0]
    del array, capsule
    gc.collect()
    assert (made.deletions, memory()) == (1, None)


def test_the_consumers_stream_waits_for_the_producer(fake: FakeCuda, driver: Driver):
    mine, other = driver.stream(), driver.stream()
    array = DeviceArray(np.zeros(4, np.uint8), stream=mine)
    array.write_later(1)
    array.__dlpack__(stream=other)
    event = driver.event()
    driver("cuEventRecord", event, other)
    driver("cuEventSynchronize", event)
    assert array.peek().tolist() == [1] * 4
    assert array.asked == [other]
    assert fake.calls().count("cuStreamWaitEvent") == 0  # the producer's own doing


def test_minus_one_asks_for_no_order_and_zero_is_refused(fake: FakeCuda, driver: Driver):
    array = DeviceArray(np.zeros(4, np.uint8), stream=driver.stream())
    array.write_later(1)
    array.__dlpack__(stream=-1)
    assert driver.code("cuStreamQuery", LEGACY) == 0
    assert driver.code("cuStreamQuery", array.stream) == NOT_READY
    with pytest.raises(ValueError, match="ambiguous"):
        array.__dlpack__(stream=0)


def test_a_copy_or_another_device_is_refused(fake: FakeCuda):
    array = DeviceArray(np.zeros(4, np.uint8))
    with pytest.raises(BufferError):
        array.__dlpack__(copy=True)
    with pytest.raises(BufferError):
        array.__dlpack__(dl_device=(1, 0))


def test_the_array_interface_gives_address_strides_and_stream(fake: FakeCuda):
    array = DeviceArray(np.zeros((2, 3), np.float64))
    face = array.__cuda_array_interface__
    assert (face["data"], face["typestr"], face["shape"]) == ((array.pointer, False), "<f8", (2, 3))
    assert (face["strides"], face["stream"], face["version"]) == ((24, 8), LEGACY, 3)
    assert DeviceArray(np.zeros(0, np.uint8)).__cuda_array_interface__["data"] == (0, False)


class _Entries(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocator", ctypes.c_void_p),
        ("managed_from_object", ctypes.c_void_p),
        ("managed_to_object", ctypes.c_void_p),
        ("tensor_from_object", ctypes.c_void_p),
        ("current_work_stream", ctypes.c_void_p),
    )


def table_of(kind: type) -> _Entries:
    """Read a type's exchange table as a consumer in C does."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return _Entries.from_address(get(kind.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


@pytest.mark.parametrize("stream", [None, 0x7000], ids=["default stream", "a stream"])
def test_the_exchange_table_gives_the_tensor_and_the_current_stream(
    fake: FakeCuda, monkeypatch: pytest.MonkeyPatch, stream: int | None
):
    monkeypatch.setattr(TableArray, "current_stream", stream)
    array, table, answer = TableArray(np.arange(4, dtype=np.int32)), table_of(TableArray), ctypes.c_void_p(1)
    ask = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)(table.current_work_stream)
    assert (ask(CUDA, 0, ctypes.addressof(answer)), answer.value) == (0, stream)
    give = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(table.managed_from_object)
    assert give(array, ctypes.addressof(answer)) == 0
    data = ctypes.c_void_p.from_address(answer.value + 32).value  # behind version, context, deleter and flags
    assert data == array.pointer
    deleter = ctypes.c_void_p.from_address(answer.value + 16).value
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(answer.value)
    assert [made.deletions for made in array.capsules] == [1]
