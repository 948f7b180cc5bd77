"""An array remembers the tensor it was made of, without keeping it or its graph alive."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.memory import address

COPIES = [None, False, True, "lazy"]


class _Token:
    """Dies with the graph that holds it."""


class _Square(torch.autograd.Function):
    token: weakref.ref

    @staticmethod
    def forward(ctx, x):
        ctx.token = _Token()
        _Square.token = weakref.ref(ctx.token)
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


CONVERSIONS = {
    "view": ferry.to_numpy,
    "copy=False": lambda t: ferry.to_numpy(t, copy=False),
    "copy": lambda t: ferry.to_numpy(t, copy=True),
    "lazy": lambda t: ferry.to_numpy(t, copy="lazy"),
    "bits": lambda t: ferry.to_numpy(t, dtype="bits"),
    "nest": lambda t: ferry.to_numpy([t]),
    "alias": lambda t: ferry.from_numpy(ferry.to_numpy(t)),
    "dlpack offer": lambda t: ferry.to_dlpack(t, detach=True),
}


@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_a_tensor_dies_while_its_array_lives(conversion):
    tensor = torch.arange(3.0)
    alive = weakref.ref(tensor)
    array = CONVERSIONS[conversion](tensor)
    del tensor
    assert alive() is None
    assert array is not None


@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_a_graph_dies_while_the_array_of_its_result_lives(conversion):
    leaf = torch.arange(3.0, requires_grad=True)
    result = _Square.apply(leaf)
    array = CONVERSIONS[conversion](result)
    assert _Square.token() is not None
    del result
    assert _Square.token() is None
    assert array is not None


@pytest.mark.parametrize("copy", COPIES)
def test_the_graph_of_a_temporary_is_not_kept(copy):
    leaf = torch.arange(3.0, requires_grad=True)
    array = ferry.to_numpy(_Square.apply(leaf), copy=copy)
    assert _Square.token() is None
    np.testing.assert_array_equal(array, [0, 1, 4])


@pytest.mark.parametrize("cycle", [False, True], ids=["plain", "tensor that holds its own array"])
def test_nothing_is_left_when_both_are_gone(cycle):
    memory = np.arange(1000.0)
    alive = weakref.ref(memory)
    tensor = ferry.from_numpy(memory)
    array = ferry.to_numpy(tensor)
    if cycle:
        tensor.array = array  # the array knows its tensor weakly, so this is no cycle
    del memory, tensor
    assert alive() is not None
    del array
    assert alive() is None


PARTS = {
    "whole": lambda x: x,
    "rows": lambda x: x[1:],
    "strided": lambda x: x[::2, 1::2],
    "one element": lambda x: x[1, 2, ...],
    "reshaped": lambda x: x.reshape(2, 2, 6),
    "transposed": lambda x: x.T,
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("where", ["tensor", "array"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex128, torch.bool, torch.float16])
def test_a_tensor_made_back_shares_memory_and_version(part, where, dtype):
    tensor = torch.arange(24).reshape(4, 6).to(dtype)
    pick = PARTS[part]
    array = ferry.to_numpy(pick(tensor)) if where == "tensor" else pick(ferry.to_numpy(tensor))
    alias, expected = ferry.from_numpy(array), pick(tensor)
    assert address(alias) == address(expected)
    assert alias.stride() == expected.stride()
    assert torch.equal(alias, expected)
    before = tensor._version
    alias.zero_()
    assert tensor._version == before + 1
    assert not expected.any()


def test_a_tensor_made_back_through_other_bits_shares_memory_and_version():
    tensor = torch.arange(4.0)
    alias = ferry.from_numpy(ferry.to_numpy(tensor, dtype="bits"))
    assert alias.dtype is torch.uint32
    alias.view(torch.int32).zero_()
    assert tensor._version == 1
    assert tensor.tolist() == [0, 0, 0, 0]


def test_backward_raises_after_a_write_through_the_tensor_made_back():
    leaf = torch.ones(3, requires_grad=True)
    result = leaf.exp()
    ferry.from_numpy(ferry.to_numpy(result)).zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_a_tensor_made_back_from_a_temporary_still_shares():
    array = ferry.to_numpy(torch.arange(3.0) + 1)
    first, second = ferry.from_numpy(array), ferry.from_numpy(array)
    assert address(first) == address(second) == address(array)
    first.add_(1)
    assert second._version == 1
    np.testing.assert_array_equal(array, [2, 3, 4])


def test_a_tensor_made_back_never_requires_grad_and_leaves_the_original_alone():
    leaf = torch.ones(3, requires_grad=True)
    alias = ferry.from_numpy(ferry.to_numpy(leaf))
    assert not alias.requires_grad
    assert alias.grad_fn is None
    assert leaf.requires_grad
    assert leaf.is_leaf


@pytest.mark.parametrize("gone", ["deleted", "retargeted"])
def test_a_tensor_made_back_after_the_original_is_gone_has_the_right_values(gone):
    tensor = torch.arange(5.0)
    array = ferry.to_numpy(tensor)
    if gone == "retargeted":
        tensor.set_(torch.zeros(1).untyped_storage())
    else:
        del tensor
    again = ferry.from_numpy(array)
    assert again.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(array, np.arange(5.0))


def test_an_array_of_our_array_is_not_taken_for_a_view_of_the_tensor():
    tensor = torch.arange(4.0)
    doubled = ferry.to_numpy(tensor) * 2
    made = ferry.from_numpy(doubled)
    made.zero_()
    assert tensor.tolist() == [0, 1, 2, 3]
    assert tensor._version == 0
