"""The environment itself: tensors on the simulated device behave as torch's do on the host, under every schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from helpers import torch_dtypes as dtypes

MATRIX = torch.arange(24, dtype=torch.float32).reshape(4, 6) - 7

LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "as made": lambda x: x,
    "transposed": lambda x: x.t(),
    "every other column": lambda x: x[:, ::2],
    "a block inside": lambda x: x[1:3, 2:5],
    "a column": lambda x: x[:, 3],
    "an expanded row": lambda x: x[2].expand(3, 6),
    "sliding windows": lambda x: x.unfold(1, 3, 2),
    "reshaped": lambda x: x.view(2, 3, 4),
    "bits": lambda x: x.view(torch.int32),
    "bytes": lambda x: x.view(torch.uint8),
    "one element": lambda x: x[1, 1],
    "nothing": lambda x: x[4:],
    "contiguous after a transpose": lambda x: x.t().contiguous(),
    "a clone that keeps the layout": lambda x: x.t().clone(),
    "a contiguous clone": lambda x: x.t().clone(memory_format=torch.contiguous_format),
    "detached": lambda x: x.detach(),
    "another dtype": lambda x: x.to(torch.bfloat16),
    "a sum": lambda x: x.sum(0) * 2,
    "sorted": lambda x: x.flip(1).sort(1).values,
    "where positive": lambda x: x[x > 0],
    "joined": lambda x: torch.cat([x, x.t().reshape(4, 6), x.new_empty(0)], 1),
    "joined with another dtype": lambda x: torch.cat([x, x.to(torch.float64)]),
    "stacked": lambda x: torch.stack([x.t(), x.t() + 1], 1),
}
every_layout = pytest.mark.parametrize("change", LAYOUTS.values(), ids=LAYOUTS)


@every_layout
def test_values_shapes_and_strides_are_those_of_the_host(any_schedule: Any, change: Callable[..., torch.Tensor]):
    there, here = change(MATRIX.to("cuda")), change(MATRIX)
    assert there.is_cuda
    assert str(there.device) == "cuda:0"
    assert (there.shape, there.stride(), there.dtype) == (here.shape, here.stride(), here.dtype)
    assert there.storage_offset() == here.storage_offset()
    assert torch.equal(there.cpu(), here)


@every_layout
def test_contiguous_and_clone_have_the_same_values(any_schedule: Any, change: Callable[..., torch.Tensor]):
    there, here = change(MATRIX.to("cuda")), change(MATRIX)
    assert torch.equal(there.contiguous().cpu(), here)
    assert there.contiguous().is_contiguous()
    assert torch.equal(there.clone().cpu(), here)
    assert there.numel() == 0 or there.clone().data_ptr() != there.data_ptr()


@pytest.mark.parametrize("dtype", dtypes.CONVERTIBLE, ids=dtypes.name_of)
def test_every_dtype_goes_there_and_back_bit_for_bit(any_schedule: Any, dtype: torch.dtype):
    x = dtypes.sample(dtype)
    back = x.to("cuda").cpu()
    assert back.dtype == dtype
    assert dtypes.raw_bytes(back).tobytes() == dtypes.raw_bytes(x).tobytes()
    parts = x.to("cuda").swapaxes(0, 1)[:, 1:].contiguous().cpu()
    whole = dtypes.raw_bytes(x).reshape(2, 4, -1)
    assert dtypes.raw_bytes(parts).tobytes() == whole.swapaxes(0, 1)[:, 1:].tobytes()


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=dtypes.name_of)
def test_conjugate_and_negative_marks_are_kept_and_resolved(any_schedule: Any, dtype: torch.dtype):
    host = torch.tensor([[1 + 2j, -3 + 0.5j], [0j, 4 - 1j]], dtype=dtype)
    z = host.to("cuda")
    assert z.conj().is_conj()
    assert z.conj().imag.is_neg()
    assert torch.equal(z.conj().cpu(), host.conj())
    assert torch.equal(z.conj().imag.cpu(), -host.imag)
    assert torch.equal(z.t().conj().resolve_conj().cpu(), host.t().conj())
    assert torch.equal(z.conj().imag.resolve_neg().cpu(), -host.imag)
    assert torch.equal(torch._neg_view(z).clone().cpu(), -host)
    marked = torch.empty_like(z).conj()
    marked.copy_(z)
    assert torch.equal(marked.cpu(), host)
    marked.copy_(host)
    assert torch.equal(marked.resolve_conj().cpu(), host)


def test_a_negative_view_of_integers_is_negated_by_arithmetic(any_schedule: Any):
    host = torch.tensor([1, -2, 3])
    there = torch._neg_view(host.to("cuda"))
    assert there.cpu().tolist() == [-1, 2, -3]
    assert there.clone().cpu().tolist() == [-1, 2, -3]


def test_parameters_and_gradient_marks_are_torchs(any_schedule: Any):
    parameter = torch.nn.Parameter(MATRIX.to("cuda"))
    assert parameter.requires_grad
    assert parameter.is_leaf
    assert torch.equal(parameter.detach().cpu(), MATRIX)
    assert (parameter * 2).grad_fn is not None
    version = parameter._version
    with torch.no_grad():
        parameter.add_(1)
    assert parameter._version == version + 1
    assert torch.equal(parameter.detach().cpu(), MATRIX + 1)
    with torch.inference_mode():
        assert MATRIX.to("cuda").is_inference()


def test_modules_move_there_and_back(any_schedule: Any):
    layer = torch.nn.Linear(3, 2)
    weights = layer.weight.detach().clone()
    layer.to("cuda")
    assert layer.weight.is_cuda
    assert torch.equal(layer.weight.detach().cpu(), weights)
    assert torch.equal(layer.to("cpu").weight.detach(), weights)


def test_writes_in_place_change_what_they_name(any_schedule: Any):
    there, here = MATRIX.to("cuda"), MATRIX.clone()
    for x in (there, here):
        x[0].zero_()
        x[1, ::2].fill_(0.5)
        x[:, 5] = torch.tensor(9.0)
        x[2:4, :2].copy_(torch.tensor([[1], [2]], dtype=torch.int64))
        x[3, 2:4] = x[1, 2:4]
        x.mul_(2)
    assert torch.equal(there.cpu(), here)


def test_factories_make_what_they_say(any_schedule: Any):
    assert torch.zeros(2, 3, device="cuda").cpu().tolist() == [[0, 0, 0]] * 2
    assert torch.full((2,), 7, device="cuda").cpu().tolist() == [7, 7]
    assert torch.tensor(3.5, device="cuda").item() == 3.5
    assert torch.arange(4, device="cuda").tolist() == [0, 1, 2, 3]
    assert torch.empty(0, 5, device="cuda").cpu().shape == (0, 5)
    assert torch.empty(2, 3, 4, 5, device="cuda", memory_format=torch.channels_last).stride() == (60, 1, 15, 3)
    assert "device='cuda:0'" in repr(torch.ones(2, device="cuda"))


def test_memory_is_poison_until_it_is_written(cuda: Any):
    x = torch.empty(4, dtype=torch.uint8, device="cuda")
    assert x.cpu().tolist() == [0xDE] * 4


def test_a_host_tensor_is_taken_at_the_call(cuda: Any):
    host = MATRIX.clone()
    there = host.to("cuda")
    host.zero_()
    assert torch.equal(there.cpu(), MATRIX)


def test_a_device_that_is_not_there_is_refused(cuda: Any):
    assert torch.cuda.device_count() == 2
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.empty(1, device="cuda:2")
