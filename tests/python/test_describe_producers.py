"""``describe`` of objects that only speak a protocol."""

from __future__ import annotations

import numpy as np
import pytest

import tensorferry as ferry
from helpers.numpy_names import byte_bounds
from tensorferry._inspect.describe import describe


class Producer:
    """Exports an array through DLPack, saying that it lies on a device of the caller's choice."""

    def __init__(self, values, device=(1, 0)):
        self.values = values
        self.shape = values.shape
        self.dtype = values.dtype
        self.device = device

    def __dlpack__(self, **arguments):
        return self.values.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.device


def test_a_host_producer_is_described_by_its_export():
    values = np.zeros((3, 8), np.float32)[:, ::2]
    d = describe(Producer(values))
    assert (d.kind, d.class_name, d.dtype, d.shape) == ("DLPack producer", "Producer", "float32", (3, 4))
    assert (d.strides, d.device, d.pinned, d.writable) == ((32, 8), "cpu", False, True)
    assert d.addresses == byte_bounds(values)
    assert d.base == "memory of a Producer, exported through DLPack"


def test_a_read_only_producer_is_not_writable():
    values = np.zeros(3)
    values.flags.writeable = False
    assert describe(Producer(values)).writable is False


@pytest.mark.parametrize("device_type", [3, 11], ids=["CUDA host", "ROCm host"])
def test_pinned_host_memory_is_pinned_and_on_the_host(device_type):
    d = describe(Producer(np.zeros(3), (device_type, 0)))
    assert (d.pinned, d.device) == (True, "cpu")


@pytest.mark.parametrize(
    ("device", "name"), [((2, 1), "cuda:1"), ((10, 0), "rocm:0"), ((99, 0), "dlpack99:0")], ids=["CUDA", "ROCm", "new"]
)
def test_a_device_producer_is_described_as_far_as_it_tells(device, name):
    d = describe(Producer(np.zeros((2, 3), np.float16), device))
    assert (d.device, d.shape, d.dtype, d.strides) == (name, (2, 3), "float16", None)
    assert "cannot be read from the host" in d.note


def test_a_producer_that_refuses_is_described_with_its_words():
    class Refusing(Producer):
        def __dlpack__(self, **arguments):
            raise BufferError("still computing")

    d = describe(Refusing(np.zeros(3)))
    assert (d.shape, d.strides) == ((3,), None)
    assert "still computing" in d.note


def test_a_producer_that_cannot_name_its_device_is_described_still():
    class Lost(Producer):
        def __dlpack_device__(self):
            raise ferry.DeviceError("a Lost", "it has no device", "give it one")

    d = describe(Lost(np.zeros(3)))
    assert (d.device, d.strides) == ("unknown", None)


def test_cuda_arrays_are_described_by_their_interface():
    class OnDevice:
        @property
        def __cuda_array_interface__(self):
            return {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3}

    d = describe(OnDevice())
    assert (d.kind, d.device, d.shape, d.dtype, d.strides) == ("array protocol", "cuda", (2, 3), "float32", None)
    assert "CUDA device" in d.note
