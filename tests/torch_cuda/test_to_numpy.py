"""``to_numpy`` of CUDA tensors: values, bits and flags, whatever way they take to the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import tensorferry as ferry
from helpers import torch_dtypes as dtypes

LAYOUTS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[NDArray[Any]], NDArray[Any]]]] = {
    "as made": (lambda x: x, lambda x: x),
    "with two axes exchanged": (lambda x: x.swapaxes(0, 1), lambda x: x.swapaxes(0, 1)),
    "every other row": (lambda x: x[:, ::2], lambda x: x[:, ::2]),
    "a block inside": (lambda x: x[1:, 1:3], lambda x: x[1:, 1:3]),
    "one row": (lambda x: x[1, 2], lambda x: x[1, 2]),
    "an expanded slice": (lambda x: x[:1].expand(3, -1, -1), lambda x: np.broadcast_to(x[:1], (3, *x.shape[1:]))),
    "nothing": (lambda x: x[:0], lambda x: x[:0]),
    "contiguous after an exchange": (lambda x: x.swapaxes(0, 1).contiguous(), lambda x: x.swapaxes(0, 1)),
}
ORDERS = [("lazy", 0), ("eager", 0), *(("shuffled", seed) for seed in range(8)), ("threaded", 0), ("threaded", 1)]
every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def expected_array(dtype: torch.dtype) -> NDArray[Any]:
    """The values of ``dtypes.sample(dtype)`` as documented, worked out without any interchange."""
    x, wanted = dtypes.sample(dtype), dtypes.array_dtype(dtype)
    codes = dtypes.raw_bytes(x)
    if dtype in dtypes.SMALL_INTEGERS:
        low, high = dtypes.small_integer_range(dtype)
        return (np.arange(256) % (high - low + 1) + low).reshape(2, 4, -1)
    if dtype is torch.complex32:
        return codes.view(np.float16).astype(np.float32).view(np.complex64).reshape(2, 4, -1)
    if wanted == ml_dtypes.float4_e2m1fn:
        return np.stack([codes & 15, codes >> 4], -1).view(wanted).reshape(2, 4, -1)
    return codes.view(wanted).reshape(2, 4, -1)


def same(array: NDArray[Any], expected: NDArray[Any], dtype: torch.dtype) -> bool:
    """Equal bit for bit; small integers and what was widened, where NaNs have other bits, by value."""
    if dtype in dtypes.SMALL_INTEGERS:
        return np.array_equal(array.astype(np.int64), expected)
    if dtype is torch.complex32:
        parts = [np.ascontiguousarray(x)[..., None].view(np.float32) for x in (array, expected)]
        return np.array_equal(*parts, equal_nan=True)
    return array.shape == expected.shape and array.tobytes() == expected.tobytes()


@every_layout
@pytest.mark.parametrize("dtype", dtypes.CONVERTIBLE, ids=dtypes.name_of)
def test_every_dtype_in_every_layout_comes_as_documented(cuda: Any, dtype: torch.dtype, layout: Any):
    of_tensor, of_array = layout
    array = ferry.to_numpy(of_tensor(dtypes.sample(dtype).to("cuda")))
    assert array.dtype == dtypes.array_dtype(dtype)
    assert same(array, of_array(expected_array(dtype)), dtype)


@every_layout
@pytest.mark.parametrize("order", ORDERS, ids="{0[0]}, seed {0[1]}".format)
def test_values_are_right_in_every_order_of_the_devices_work(cuda: Any, layout: Any, order: tuple[str, int]):
    cuda.fake.schedule(*order)
    of_tensor, of_array = layout
    host = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.zeros(2, 4, 3, device="cuda")
        x.copy_(torch.tensor(host))
        first = ferry.to_numpy(of_tensor(x))
        x.mul_(-1)
        second = ferry.to_numpy(of_tensor(x))
        x.zero_()
    assert np.array_equal(first, of_array(host))
    assert np.array_equal(second, -of_array(host))


@pytest.mark.parametrize("value", [True, 7, -2.5, 1 - 2j], ids=lambda value: type(value).__name__)
def test_a_tensor_without_axes_gives_an_array_without_axes(any_schedule: Any, value: Any):
    array = ferry.to_numpy(torch.tensor(value, device="cuda"))
    assert array.shape == ()
    assert array == value


@pytest.mark.parametrize("dtype", [torch.complex32, torch.complex64, torch.complex128], ids=dtypes.name_of)
def test_marked_views_come_with_their_values(any_schedule: Any, dtype: torch.dtype):
    z = torch.tensor([[1 + 2j, -3 + 0.5j], [0.25j, 4 - 1j]], dtype=dtype).to("cuda")
    assert ferry.to_numpy(z.conj()).tolist() == [[1 - 2j, -3 - 0.5j], [-0.25j, 4 + 1j]]
    assert ferry.to_numpy(z.t().conj()).tolist() == [[1 - 2j, -0.25j], [-3 - 0.5j, 4 + 1j]]
    assert ferry.to_numpy(z.conj().imag).tolist() == [[-2, -0.5], [-0.25, 1]]
    assert ferry.to_numpy(torch._neg_view(z)).tolist() == [[-1 - 2j, 3 - 0.5j], [-0.25j, -4 + 1j]]


def test_tensors_of_autograd_and_inference_are_read(any_schedule: Any):
    parameter = torch.nn.Parameter(torch.tensor([1.0, 2.0]).to("cuda"))
    assert ferry.to_numpy(parameter).tolist() == [1, 2]
    assert ferry.to_numpy(parameter * 3).tolist() == [3, 6]
    assert parameter.requires_grad
    assert parameter._version == 0
    with torch.inference_mode():
        assert ferry.to_numpy(torch.ones(2, device="cuda")).tolist() == [1, 1]


def test_promise_3_writability_does_not_depend_on_the_device(any_schedule: Any):
    x = torch.arange(4.0, device="cuda")
    assert not ferry.to_numpy(x).flags.writeable
    private = ferry.to_numpy(x, copy=True)
    private[:] = 9
    assert ferry.to_numpy(x).tolist() == [0, 1, 2, 3]


def test_sharing_with_a_device_is_refused(cuda: Any):
    with pytest.raises(ferry.CopyRequiredError, match="cuda:0"):
        ferry.to_numpy(torch.ones(2, device="cuda"), copy=False)


def test_promise_2_a_copy_outlives_its_tensor_and_later_writes(any_schedule: Any):
    held_before = any_schedule.fake.live("device_bytes")
    x = torch.arange(5.0, device="cuda")
    array = ferry.to_numpy(x)
    x.fill_(-1)
    any_schedule.fake.drain()
    del x
    any_schedule.fake.drain()
    assert array.tolist() == [0, 1, 2, 3, 4]
    assert any_schedule.fake.live("device_bytes") == held_before


def test_dtype_and_out_are_honoured(any_schedule: Any):
    x = torch.tensor([1.5, -2.0], dtype=torch.bfloat16, device="cuda")
    assert ferry.to_numpy(x, dtype="numpy").dtype == np.float32
    out = np.zeros((2, 2), np.float32)[:, 0]
    assert ferry.to_numpy(x.float(), out=out) is out
    assert out.tolist() == [1.5, -2]


def test_a_nest_of_tensors_on_several_devices_comes_whole(cuda: Any):
    nest = {"a": torch.ones(2, device="cuda:1"), "b": [torch.zeros(1), torch.tensor(3, device="cuda:0")]}
    arrays = ferry.to_numpy(nest)
    assert arrays["a"].tolist() == [1, 1]
    assert [part.tolist() for part in arrays["b"]] == [[0], 3]
