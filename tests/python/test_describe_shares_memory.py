"""``shares_memory``: held against ``numpy.shares_memory`` and hand-made cases."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tensorferry as ferry
from tensorferry._inspect.shares_memory import shares_memory


@st.composite
def views(draw, base):
    """A strided float32 or int8 view at any place in `base`, an array of bytes."""
    itemsize = draw(st.sampled_from((1, 4)))
    offset = draw(st.integers(0, 20))
    count = (base.size - offset) // itemsize
    x = base[offset : offset + count * itemsize].view(np.int8 if itemsize == 1 else np.float32)
    x = x[:: draw(st.integers(1, 5))]
    rows = draw(st.integers(1, 3))
    x = x[: x.size // rows * rows].reshape(rows, -1)
    x = x[:, draw(st.integers(0, 3)) :: draw(st.integers(1, 4))]
    return x[::-1] if draw(st.booleans()) else x


@given(data=st.data())
def test_arrays_share_exactly_when_numpy_says_so(data):
    base = np.zeros(64, np.uint8)
    a, b = data.draw(views(base)), data.draw(views(base))
    assert shares_memory(a, b) is np.shares_memory(a, b)


@given(data=st.data())
def test_tensors_share_exactly_when_their_memory_does(data):
    base = torch.zeros(4, 16)
    slices = st.builds(slice, st.integers(0, 15), st.integers(0, 15), st.integers(1, 4))
    a, b = (base[data.draw(slices)][:, data.draw(slices)] for _ in range(2))
    touched = [np.zeros(base.numel(), np.int32) for _ in range(2)]
    for marks, x in zip(touched, (a, b), strict=True):
        strides = [4 * step for step in x.stride()]
        np.lib.stride_tricks.as_strided(marks[x.storage_offset() :], x.shape, strides)[...] = 1
    assert shares_memory(a, b) is bool((touched[0] & touched[1]).any())


@pytest.mark.parametrize("wrap", [np.asarray, torch.from_numpy], ids=["arrays", "tensors"])
def test_interleaved_slices_do_not_share(wrap):
    x = np.zeros((4, 6), np.float32)
    assert shares_memory(wrap(x[:, ::2]), wrap(x[:, 1::2])) is False
    assert shares_memory(wrap(x[:, ::2]), wrap(x[:, 2:3])) is True


def test_sharing_is_seen_across_libraries():
    array = np.zeros(8, np.float32)
    tensor = torch.from_numpy(array)
    buffer = memoryview(array).cast("B")
    assert shares_memory(array, tensor)
    assert shares_memory(tensor[4:], buffer)
    assert not shares_memory(tensor[4:], buffer[:16])
    assert not shares_memory(tensor, array.copy())
    assert shares_memory(tensor, ferry.to_numpy(tensor))
    assert not shares_memory(tensor, ferry.to_numpy(tensor, copy=True))


def test_two_buffers_of_the_same_bytes_share():
    raw = bytearray(16)
    assert shares_memory(raw, memoryview(raw)[3:5])
    assert not shares_memory(raw, bytes(raw))


def test_dlpack_producers_are_compared_by_what_they_export():
    class Producer:
        def __init__(self, values):
            self.values = values

        def __dlpack__(self, **arguments):
            return self.values.__dlpack__(**arguments)

        def __dlpack_device__(self):
            return (1, 0)

    x = np.zeros(8)
    assert shares_memory(Producer(x), x[7:])
    assert not shares_memory(Producer(x[:7]), x[7:])


def test_one_common_byte_is_enough():
    raw = np.zeros(16, np.uint8)
    assert shares_memory(torch.from_numpy(raw[:8].view(np.float64)), raw[7:9])
    assert not shares_memory(torch.from_numpy(raw[:8].view(np.float64)), raw[8:])


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(lambda x: x.conj(), id="conjugate"),
        pytest.param(lambda x: x.conj().imag, id="negative"),
        pytest.param(lambda x: x.detach(), id="detached"),
        pytest.param(lambda x: x[:1].expand(5, 3), id="expanded"),
        pytest.param(lambda x: torch.nn.Parameter(x), id="parameter"),
        pytest.param(lambda x: x.real, id="real part"),
    ],
)
def test_views_of_a_tensor_share_with_it(view):
    x = torch.ones(2, 3, dtype=torch.complex64)
    assert shares_memory(view(x), x) is True


def test_the_parts_of_complex_numbers_interleave_without_sharing():
    x = torch.ones(4, dtype=torch.complex64)
    assert not shares_memory(x.real, x.imag)


def test_a_negative_view_of_bfloat16_is_seen_without_being_resolved():
    x = torch.ones(4, dtype=torch.bfloat16)
    assert shares_memory(torch._neg_view(x)[2:], x[2:3])


def test_copy_on_write_storage_is_shared_until_written_and_stays_so():
    x = torch.arange(4.0)
    snapshot = torch._lazy_clone(x)
    assert shares_memory(x, snapshot)
    assert torch._C._is_cow_tensor(x)
    x.add_(1)
    assert not shares_memory(x, snapshot)


@pytest.mark.parametrize(
    "empty",
    [
        pytest.param(lambda x: x[:0], id="empty slice"),
        pytest.param(lambda x: np.asarray(x)[2:2], id="empty array"),
        pytest.param(lambda x: torch._efficientzerotensor((3,)), id="zero tensor"),
    ],
)
def test_what_touches_no_memory_shares_with_nothing(empty):
    x = torch.ones(3)
    assert shares_memory(empty(x), x) is False
    assert shares_memory(empty(x), empty(x)) is False


def test_dtypes_that_only_numpy_has_are_compared_too():
    dates = np.zeros(4, "M8[s]")
    assert shares_memory(dates, dates.view("i8")[3:])
    words = np.array(["ab", "cd"])
    assert not shares_memory(words[:1], words[1:])


def test_the_answer_to_a_problem_too_hard_is_that_of_the_address_ranges():
    # Deciding means solving a linear Diophantine equation: the example in numpy.shares_memory's documentation.
    memory = np.zeros(200_000_000, np.int8)  # never touched, so never really there
    first = np.lib.stride_tricks.as_strided(memory, (1049, 1049, 1049), (36674, 61119, 85569))
    second = np.lib.stride_tricks.as_strided(memory[64023025:], (1049, 1049, 1), (12223, 12224, 1))
    with pytest.raises(np.exceptions.TooHardError):
        np.shares_memory(first, second, max_work=1_000_000)
    assert shares_memory(first, second) is True


def test_many_axes_are_no_obstacle():
    x = np.zeros((2,) * 6 + (1,) * 20 + (3,))
    assert shares_memory(x, x[..., 2]) is True
    assert shares_memory(x[..., 1], x[..., 2]) is False


class _CudaArray:
    def __init__(self, address, shape, strides=None):
        self.interface = {"data": (address, False), "shape": shape, "strides": strides, "typestr": "<f4", "version": 3}

    @property
    def __cuda_array_interface__(self):
        return self.interface


def test_device_memory_is_compared_by_address_range():
    whole = _CudaArray(4096, (4, 4))
    assert shares_memory(whole, _CudaArray(4096 + 60, (1,)))
    assert not shares_memory(whole, _CudaArray(4096 + 64, (1,)))
    assert shares_memory(whole, _CudaArray(4096 + 124, (2, 4), (-64, 4)))
    assert not shares_memory(_CudaArray(4096, (0,)), whole)


def test_memory_of_different_devices_is_never_shared():
    host = np.zeros(4, np.float32)
    address = host.__array_interface__["data"][0]
    assert not shares_memory(host, _CudaArray(address, (4,)))


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        pytest.param([np.zeros(2)], ferry.LayoutError, "one by one", id="nest"),
        pytest.param(torch.eye(2).to_sparse(), ferry.LayoutError, "to_dense", id="sparse"),
        pytest.param(torch.empty(2, device="meta"), ferry.DeviceError, "no values", id="meta"),
        pytest.param("text", ferry.DTypeError, "no tensor", id="text"),
    ],
)
def test_what_has_no_one_memory_is_refused(x, error, words):
    with pytest.raises(error, match=words):
        shares_memory(x, np.zeros(2))
    with pytest.raises(error, match=words):
        shares_memory(np.zeros(2), x)
