"""Values of device tensors against torch's own copy to the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.torch_dtypes import FLOAT4_VALUES, ML_FLOATS, NUMPY_HAS, array_dtype, name_of, raw_bytes, sample

SHAPE = (3, 4, 32, 66)

LAYOUTS: dict[str, Any] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(1, 2),
    "last two axes swapped": lambda x: x.mT,
    "channels last": lambda x: x.to(memory_format=torch.channels_last),
    "every second column": lambda x: x[..., ::2],
    "every third row": lambda x: x[:, :, ::3],
    "wide equal rows": lambda x: x.reshape(-1, 66)[:, 1:65],
    "an inner block": lambda x: x[1:, 1:3, 5:9, 7:50],
    "one element further": lambda x: x.reshape(-1)[1:],
    "expanded": lambda x: x[:1].expand(5, 4, 32, 66),
    "a sliding window": lambda x: x.reshape(-1)[:1000].unfold(0, 16, 3),
    "a size-1 axis of odd stride": lambda x: x[:, :1].as_strided((3, 1, 32, 66), (x.stride(0), 77, 66, 1)),
    "0-d": lambda x: x[2, 3, 31, 65],
    "no elements": lambda x: x[:, :0],
}


def numbers(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor on the host whose elements tell where they were."""
    return torch.arange(int(np.prod(SHAPE)), dtype=torch.float32).remainder(251).to(dtype).reshape(SHAPE)


def bytes_of(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(a).reshape(-1).view(np.uint8)


@pytest.mark.parametrize("dtype", [*NUMPY_HAS, *ML_FLOATS], ids=name_of)
def test_every_bit_pattern_arrives(gpu, dtype):
    host = sample(dtype)
    array = ferry.to_numpy(host.view(torch.uint8).to(gpu).view(dtype))
    assert array.dtype == array_dtype(dtype)
    assert array.shape == tuple(host.shape)
    np.testing.assert_array_equal(bytes_of(array), raw_bytes(host))


def test_complex32_arrives_as_complex64(gpu):
    host = sample(torch.complex32)
    array = ferry.to_numpy(host.to(gpu))
    parts = torch.view_as_real(host).to(torch.float32).numpy()
    assert array.dtype == np.complex64
    np.testing.assert_array_equal(array.view(np.float32).reshape(parts.shape), parts)


def test_float4_arrives_unpacked(gpu):
    codes = torch.arange(256, dtype=torch.uint8)
    array = ferry.to_numpy(codes.to(gpu).view(torch.float4_e2m1fn_x2))
    expected = np.stack([FLOAT4_VALUES[codes.numpy() & 15], FLOAT4_VALUES[codes.numpy() >> 4]], -1).reshape(-1)
    np.testing.assert_array_equal(array.astype(np.float32).reshape(-1), expected)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.float32, torch.complex128], ids=name_of)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("copy", [None, True], ids=["read-only", "private"])
def test_every_layout_arrives(gpu, layout, dtype, copy):
    tensor = layout(numbers(dtype).to(gpu))
    array = ferry.to_numpy(tensor, copy=copy)
    assert array.shape == tuple(tensor.shape)
    np.testing.assert_array_equal(bytes_of(array), raw_bytes(tensor.cpu().contiguous()))


@pytest.mark.parametrize("copy", [None, True], ids=["read-only", "private"])
def test_writability_is_that_of_host_tensors(gpu, copy):
    host = numbers()
    array = ferry.to_numpy(host.to(gpu), copy=copy)
    assert array.flags.writeable == ferry.to_numpy(host, copy=copy).flags.writeable == bool(copy)


@pytest.mark.parametrize("order", ["K", "C", "F"])
def test_order_is_numpys(gpu, order):
    host = numbers().transpose(0, 2)
    array = ferry.to_numpy(host.to(gpu), order=order)
    expected = np.array(host.numpy(), order=order)
    assert array.strides == expected.strides
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    ("given", "asked"),
    [(torch.float32, np.float16), (torch.bfloat16, np.float32), (torch.int64, np.int16), (torch.float64, np.float32)],
    ids=["float32 to float16", "bfloat16 to float32", "int64 to int16", "float64 to float32"],
)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "every second column"])
def test_dtype_casts_by_value(gpu, layout, given, asked):
    tensor = LAYOUTS[layout](numbers(given).to(gpu))
    array = ferry.to_numpy(tensor, dtype=asked)
    assert array.dtype == asked
    np.testing.assert_array_equal(array, tensor.cpu().to(torch.float64).numpy().astype(asked))


@pytest.mark.parametrize("mark", ["conj", "neg"])
def test_marks_of_conjugate_and_negative_are_carried_out(gpu, mark):
    z = torch.complex(numbers(), numbers().flip(0)).to(gpu)
    tensor = z.conj() if mark == "conj" else z.conj().imag
    np.testing.assert_array_equal(ferry.to_numpy(tensor), tensor.cpu().resolve_conj().resolve_neg().numpy())


@pytest.mark.parametrize("nbytes", [1, 4095, 65536, 1 << 20, (64 << 20) + 4, 300 << 20])
def test_every_size_arrives(gpu, nbytes):
    tensor = torch.randint(0, 256, (nbytes,), dtype=torch.uint8, device=gpu)
    np.testing.assert_array_equal(ferry.to_numpy(tensor), tensor.cpu().numpy())


def test_reading_what_requires_grad_is_fine(gpu):
    parameter = torch.nn.Parameter(numbers().to(gpu))
    (parameter * 2).sum().backward()
    np.testing.assert_array_equal(ferry.to_numpy(parameter), parameter.detach().cpu().numpy())
    np.testing.assert_array_equal(ferry.to_numpy(parameter.grad), np.full(SHAPE, 2, np.float32))


def test_numbers_come_out_of_a_nest(gpu):
    losses = {"loss": torch.tensor(1.5, device=gpu), "steps": [torch.tensor([1, 2, 3], device=gpu), 4]}
    assert ferry.to_python(losses) == {"loss": 1.5, "steps": [[1, 2, 3], 4]}
