"""``from_dlpack`` of torch's own tensors and of arrays: what is shared, what needs consent, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

import tensorferry as ferry
from helpers.memory import address

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(Sparse|nested tensors|quantize).*:UserWarning", "ignore:.*torch.jit.script.*:DeprecationWarning"
)

TENSORS: dict[str, Callable[[], torch.Tensor]] = {
    "matrix": lambda: torch.arange(6.0).reshape(2, 3),
    "transposed": lambda: torch.arange(6.0).reshape(2, 3).T,
    "expanded": lambda: torch.arange(3.0).expand(2, 3),
    "bfloat16": lambda: torch.arange(3.0).bfloat16(),
    "conjugate": lambda: torch.tensor([1 + 2j]).conj(),
    "negative": lambda: torch.tensor([1 + 2j]).conj().imag,
    "plain subclass": lambda: torch.arange(3.0).as_subclass(type("Labelled", (torch.Tensor,), {})),
    "empty": lambda: torch.zeros(0, 3),
}


@pytest.mark.parametrize("copy", [False, None])
@pytest.mark.parametrize("kind", TENSORS)
def test_a_tensor_comes_back_as_an_alias_with_its_layout_marks_and_version(kind, copy):
    tensor = TENSORS[kind]()
    alias = ferry.from_dlpack(tensor, copy=copy)
    assert type(alias) is torch.Tensor
    assert alias is not tensor
    assert alias.data_ptr() == tensor.data_ptr()
    assert (alias.stride(), alias.is_conj(), alias.is_neg()) == (tensor.stride(), tensor.is_conj(), tensor.is_neg())
    assert torch.equal(alias, tensor)
    if kind != "expanded":
        alias.zero_()
        assert tensor._version == alias._version == 1


@pytest.mark.parametrize("kind", TENSORS)
def test_a_copy_is_private_in_both_libraries(kind):
    tensor = TENSORS[kind]()
    expected = tensor.clone()
    copied = ferry.from_dlpack(tensor, copy=True)
    assert torch.equal(copied, expected)
    copied.zero_()
    array = ferry.from_dlpack(tensor, to="numpy", copy=True)
    assert array.flags.writeable
    array[...] = 0
    assert torch.equal(tensor, expected)


@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("to", ["torch", "numpy"])
def test_leaving_a_graph_or_a_forward_derivative_needs_consent(to, detach):
    leaf = torch.arange(3.0, requires_grad=True)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.arange(3.0), torch.ones(3))
        for tensor in (leaf, leaf * 1, torch.nn.Parameter(torch.arange(3.0)), dual):
            if not detach:
                with pytest.raises(ferry.AutogradError, match="detach=True"):
                    ferry.from_dlpack(tensor, to=to)
                with pytest.raises(ferry.AutogradError, match="detach=True"):
                    ferry.to_dlpack(tensor)
            else:
                taken = ferry.from_dlpack(tensor, to=to, detach=True)
                assert address(taken) == tensor.data_ptr()
                assert not getattr(taken, "requires_grad", False)


REFUSED: dict[str, tuple[Callable[[], Any], type[ferry.FerryError]]] = {
    "sparse": (lambda: torch.eye(2).to_sparse(), ferry.LayoutError),
    "compressed sparse": (lambda: torch.eye(2).to_sparse_csr(), ferry.LayoutError),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]), ferry.LayoutError),
    "meta": (lambda: torch.ones(2, device="meta"), ferry.DeviceError),
    "quantised": (lambda: torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8), ferry.DTypeError),
    "no producer": (lambda: [1, 2], ferry.LayoutError),
    "buffer": (lambda: bytearray(3), ferry.LayoutError),
    "masked": (lambda: np.ma.masked_array([1.0], [True]), ferry.DTypeError),
    "text": (lambda: np.array(["a"]), ferry.DTypeError),
    "dates": (lambda: np.array(["2020"], "M8[D]"), ferry.DTypeError),
    "objects": (lambda: np.array([None]), ferry.DTypeError),
}


@pytest.mark.parametrize("copy", [False, None, True])
@pytest.mark.parametrize("to", ["torch", "numpy"])
@pytest.mark.parametrize("kind", REFUSED)
def test_what_has_no_memory_to_hand_over_is_refused_in_both_directions(kind, to, copy):
    make, error = REFUSED[kind]
    with pytest.raises(error) as caught:
        ferry.from_dlpack(make(), to=to, copy=copy)
    assert caught.value.instead


@pytest.mark.parametrize("copy", [False, None, True])
def test_modes_of_torch_do_not_touch_the_result(copy):
    from torch._subclasses import FakeTensorMode

    tensor, array = torch.arange(3.0), np.arange(3.0)
    with FakeTensorMode():
        results = [ferry.from_dlpack(x, copy=copy) for x in (tensor, array)]
        results.append(ferry.from_dlpack(ferry.to_dlpack(tensor), copy=copy, readonly="share"))
    assert [type(result) for result in results] == [torch.Tensor] * 3
    assert [result.tolist() for result in results] == [[0, 1, 2]] * 3


def test_an_array_comes_back_as_a_read_only_view_and_not_as_itself():
    array = np.arange(6.0).reshape(2, 3)[:, ::-1]
    taken = ferry.from_dlpack(array, to="numpy")
    assert taken is not array
    assert (address(taken), taken.strides) == (address(array), array.strides)
    assert not taken.flags.writeable
    assert array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        taken[0, 0] = 1


def test_shared_memory_is_shared_both_ways():
    array = np.arange(3.0)
    tensor = ferry.from_dlpack(array)
    tensor[0] = 7
    array[1] = 8
    assert tensor.tolist() == array.tolist() == [7, 8, 2]


@pytest.mark.parametrize(
    "arguments",
    [{"to": "jax"}, {"copy": "lazy"}, {"copy": 1}, {"readonly": "no"}, {"to": "numpy", "copy": "lazy"}],
    ids=str,
)
@pytest.mark.parametrize("make", [torch.ones, np.ones], ids=["tensor", "array"])
def test_arguments_are_checked_whatever_is_given(make, arguments):
    with pytest.raises(ferry.ArgumentError):
        ferry.from_dlpack(make(2), **arguments)
