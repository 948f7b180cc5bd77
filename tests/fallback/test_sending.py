"""Host memory to a fallback device: new tensors, given tensors, and what torch's own ``.cpu()`` then reads there."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers import torch_dtypes as dtypes
from helpers.array_oracle import array_of, assert_same
from helpers.device_cases import Layout, all_cases
from helpers.remote_device import Remote
from tensorferry._torch import fallback

pytestmark = pytest.mark.usefixtures("remote")

LAYOUTS: dict[str, Any] = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.transpose(2, 0, 1),
    "sliced": lambda a: a[:, 1::2, ::3],
    "reversed": lambda a: a[:, ::-1],
    "broadcast": lambda a: np.broadcast_to(a[:1], (3, *a.shape[1:])),
    "0-d": lambda a: a[1, 2, 3],
    "empty": lambda a: a[:, :0],
}
NAMES = [*dtypes.NUMPY_NAMES, "bfloat16", "float8_e4m3fn", "float8_e5m2"]


def array_with(name: str) -> np.ndarray[Any, Any]:
    """A (2, 4, 5) array of distinct values."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    return (np.arange(40).reshape(2, 4, 5) % 13 - (0 if name.startswith("u") else 6)).astype(dtype)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("name", NAMES)
def test_an_array_arrives_whole_with_the_layout_of_a_host_copy(name: str, layout: Any) -> None:
    array = np.asarray(layout(array_with(name)))
    tensor = ferry.from_numpy(array, device="remote")
    assert str(tensor.device) == "remote:0"
    assert dtypes.name_of(tensor.dtype) == name
    assert_same(array_of(tensor.cpu()), array)
    assert tensor.stride() == ferry.from_numpy(array, copy=True).stride()


def test_the_tensor_never_shares_with_the_array() -> None:
    array = np.arange(4.0)
    tensor = ferry.from_numpy(array, device="remote")
    array[:] = -1
    assert tensor.cpu().tolist() == [0, 1, 2, 3]


def test_a_cast_happens_on_the_host_and_one_copy_goes_to_the_device(remote: Remote) -> None:
    copies = remote.copies
    tensor = ferry.from_numpy(np.arange(4.0), device="remote", dtype="float32", requires_grad=True)
    assert (tensor.dtype, tensor.requires_grad, tensor.is_leaf) == (torch.float32, True, True)
    assert remote.copies - copies == 1
    assert tensor.detach().cpu().tolist() == [0, 1, 2, 3]


def test_a_nest_and_a_stack_go_to_the_device() -> None:
    nest = ferry.from_numpy({"a": [np.arange(3), 7]}, device="remote:0")
    assert (nest["a"][0].device.type, nest["a"][0].cpu().tolist(), nest["a"][1]) == ("remote", [0, 1, 2], 7)
    stacked = ferry.stack([np.arange(3), np.arange(3) + 1], device="remote")
    assert (stacked.device.type, stacked.cpu().tolist()) == ("remote", [[0, 1, 2], [1, 2, 3]])


@all_cases
def test_a_host_tensor_arrives_with_its_marks_resolved(remote: Remote, dtype: torch.dtype, layout: Layout) -> None:
    host = layout(dtypes.sample(dtype))
    remote.ignores_marks = True
    sent = fallback.from_host(host, "remote")
    assert_same(array_of(sent.cpu()), array_of(host))
    assert not sent.is_conj()
    assert not sent.is_neg()
    assert sent.stride() == fallback.copied_strides(tuple(host.shape), host.stride())


@all_cases
def test_a_given_tensor_is_filled_whatever_its_strides(remote: Remote, dtype: torch.dtype, layout: Layout) -> None:
    host = layout(dtypes.sample(dtype))
    steps = torch.empty(*host.shape, 2, device="meta").stride()
    out = torch.empty_strided((*host.shape, 2), steps, dtype=host.dtype, device="remote")[..., 1]
    version, copies = out._version, remote.copies
    assert fallback.from_host(host, "remote", out=out) is out
    assert remote.copies - copies == 1
    assert out._version == version + 1
    assert_same(array_of(out.cpu()), array_of(host))


def test_a_host_tensor_for_the_host_comes_back_as_it_is() -> None:
    host = torch.ones(3)
    assert fallback.from_host(host, "cpu") is host


def test_values_that_were_being_recorded_arrive_outside_of_the_graph() -> None:
    weight = torch.ones(3, requires_grad=True)
    assert not fallback.from_host(weight * 2, "remote").requires_grad
    out = torch.zeros(3).to("remote")
    assert not fallback.from_host(weight * 2, "remote", out=out).requires_grad
    assert out.cpu().tolist() == [2, 2, 2]


def test_what_was_made_in_inference_mode_can_be_filled_outside_of_it() -> None:
    with torch.inference_mode():
        out = torch.zeros(3).to("remote")
    assert out.is_inference()
    fallback.from_host(torch.ones(3), "remote", out=out)
    assert out.cpu().tolist() == [1, 1, 1]


class Saving(torch.autograd.Function):
    """The identity, which saves another tensor for the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, saved: torch.Tensor) -> torch.Tensor:
        """Return a copy of `x`."""
        ctx.save_for_backward(saved)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Read what was saved."""
        assert len(ctx.saved_tensors) == 1
        return gradient, None


@pytest.mark.parametrize("filled", [False, True], ids=["as it was", "filled since"])
def test_the_backward_pass_notices_that_a_tensor_it_saved_was_filled(filled: bool) -> None:
    saved, x = torch.ones(3).to("remote"), torch.ones(3, requires_grad=True)
    y = Saving.apply(x, saved)
    if not filled:
        y.sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [1, 1, 1]
        return
    fallback.from_host(torch.zeros(3), "remote", out=saved)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


WRONG_OUT: dict[str, tuple[Any, type[ferry.FerryError], str]] = {
    "on the host": (lambda: torch.zeros(2, 3), ferry.BufferMismatchError, "wanted on remote"),
    "of another shape": (lambda: torch.zeros(3, 2).to("remote"), ferry.BufferMismatchError, r"shape \(2, 3\)"),
    "that would be broadcast into": (
        lambda: torch.zeros(4, 2, 3).to("remote"),
        ferry.BufferMismatchError,
        r"shape \(2, 3\)",
    ),
    "of another dtype": (
        lambda: torch.zeros(2, 3, dtype=torch.float64).to("remote"),
        ferry.BufferMismatchError,
        "dtype torch.float32",
    ),
    "expanded": (lambda: torch.zeros(1, 3).to("remote").expand(2, 3), ferry.BufferMismatchError, "overlap"),
    "negated": (lambda: torch._neg_view(torch.zeros(2, 3).to("remote")), ferry.BufferMismatchError, "negated view"),
    "that requires grad": (
        lambda: torch.zeros(2, 3).to("remote").requires_grad_(),
        ferry.AutogradError,
        "would not be recorded",
    ),
}


@pytest.mark.parametrize(("make", "kind", "words"), WRONG_OUT.values(), ids=WRONG_OUT.keys())
def test_a_wrong_destination_is_refused_before_anything_is_copied(
    remote: Remote, make: Any, kind: type[ferry.FerryError], words: str
) -> None:
    out = make()
    copies, version = remote.copies, out._version
    with pytest.raises(kind, match=words) as caught:
        fallback.from_host(torch.ones(2, 3), "remote", out=out)
    assert caught.value.given.startswith(f"out, a {tuple(out.shape)} {out.dtype} tensor on device {out.device}")
    assert caught.value.instead.startswith("pass ")
    assert (remote.copies, out._version) == (copies, version)


def test_images_are_converted_on_the_host_and_sent(remote):
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    expected = torch.from_numpy(image).permute(2, 0, 1).float().div(255)
    sent = ferry.images_to_tensor(image, device="remote")
    assert sent.device.type == "remote"
    assert torch.equal(sent.cpu(), expected)
    out = torch.zeros(3, 2, 4).to("remote")
    assert ferry.images_to_tensor([image], device="remote", out=out.unsqueeze(0)).shape == (1, 3, 2, 4)
    assert torch.equal(out.cpu(), expected)
    back = ferry.images_to_tensor(torch.from_numpy(image).to("remote"))
    assert back.device.type == "cpu"
    assert torch.equal(back, expected)
