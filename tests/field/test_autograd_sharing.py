"""Field cases: memory shared with autograd, which must hear of every write; and pinning where nothing can be pinned."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensorferry as ferry

LEAF = {
    "requires grad": lambda: torch.ones(3, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.ones(3)),
}


def _saved_result() -> tuple[torch.Tensor, torch.Tensor]:
    leaf = torch.zeros(3, requires_grad=True)
    return leaf, leaf.exp()  # exp saves its result for the backward pass


VIEWS = {
    "the result": lambda y: y,
    "detached": lambda y: y.detach(),
    "a slice of it": lambda y: y.detach()[1:],
    "its data": lambda y: y.data,
}


# y.detach().numpy()[:] = 0 makes the gradient zero, without an error.
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("copy", [None, False, "lazy"])
def test_f104_an_array_over_a_tensor_in_a_graph_cannot_be_written_to(view, copy):
    leaf, result = _saved_result()
    array = ferry.to_numpy(VIEWS[view](result), copy=copy)
    for write in (
        lambda: array.__setitem__(0, 9),
        lambda: array.fill(9),
        lambda: np.multiply(array, 9, out=array),
        lambda: np.copyto(array, 9),
        lambda: array.view("u4").__setitem__(0, 9),
    ):
        with pytest.raises(ValueError, match=r"read-only|WRITEABLE"):
            write()
    if np.shares_memory(array, result.detach().numpy()):  # a snapshot may be a copy, which its owner may open
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)
    result.sum().backward()
    assert leaf.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize("consume", [np.from_dlpack, lambda p: ferry.from_dlpack(p, to="numpy")], ids=["numpy", "ours"])
def test_f104_a_hand_off_through_dlpack_is_read_only_too(consume):
    leaf, result = _saved_result()
    array = consume(ferry.to_dlpack(result, detach=True))
    with pytest.raises(ValueError, match="read-only"):
        array[:] = 0
    result.sum().backward()
    assert leaf.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize("view", ["the result", "detached", "a slice of it"])
def test_f104_a_write_through_the_tensor_made_of_our_array_makes_backward_raise(view):
    leaf, result = _saved_result()
    alias = ferry.from_numpy(ferry.to_numpy(VIEWS[view](result)))
    assert alias.data_ptr() == VIEWS[view](result).data_ptr()
    alias.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()
    assert leaf.grad is None


@pytest.mark.parametrize("wrote", [True, False], ids=["written", "only opened"])
def test_f104_writable_makes_backward_raise_as_an_in_place_operation_does(wrote):
    _, result = _saved_result()
    with torch.no_grad(), ferry.writable(result) as array:
        if wrote:
            array[:] = 0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_f104_writable_tells_autograd_even_when_the_body_raises():
    _, result = _saved_result()
    arrays = []

    def edit_and_fail() -> None:
        with torch.no_grad(), ferry.writable(result) as array:
            arrays.append(array)
            array[0] = 0
            raise KeyError

    with pytest.raises(KeyError):
        edit_and_fail()
    assert not arrays[0].flags.writeable
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_f104_writable_refuses_what_in_place_operations_refuse():
    with pytest.raises(ferry.AutogradError, match="no_grad"), ferry.writable(torch.ones(3, requires_grad=True)):
        pass
    with pytest.raises(ferry.LayoutError, match="overlap"), ferry.writable(torch.ones(1).expand(3)):
        pass


def test_f104_a_private_copy_may_be_written_and_harms_nothing():
    leaf, result = _saved_result()
    ferry.to_numpy(result, copy=True)[:] = 0
    ferry.to_numpy(result, dtype="float64", copy=True)[:] = 0
    result.sum().backward()
    assert leaf.grad.tolist() == [1, 1, 1]


# A write to the caller's own array after from_numpy is seen by nobody; a copy is the way out.
def test_f104_a_copy_made_by_from_numpy_is_safe_from_later_writes():
    array = np.ones(3, np.float32)
    weight = torch.ones(3, requires_grad=True)
    loss = (ferry.from_numpy(array, copy=True) * weight).sum()
    array[:] = 0
    loss.backward()
    assert weight.grad.tolist() == [1, 1, 1]


# A parameter edited through p.detach().numpy() keeps its version.
@pytest.mark.parametrize("kind", LEAF)
def test_f106_editing_a_parameter_raises_its_version(kind):
    parameter = LEAF[kind]()
    loss = (parameter * parameter).sum()
    before = parameter._version
    with torch.no_grad(), ferry.writable(parameter) as array:
        array += 1
    assert parameter._version > before
    assert parameter.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("kind", LEAF)
def test_f106_an_alias_made_back_from_an_array_shares_the_version(kind):
    parameter = LEAF[kind]()
    alias = ferry.from_numpy(ferry.to_numpy(parameter))
    assert not alias.requires_grad
    alias.add_(1)
    assert parameter._version == alias._version == 1
    assert parameter.tolist() == [2, 2, 2]


def test_f106_inference_tensors_have_no_counter_and_are_editable():
    with torch.inference_mode():
        tensor = torch.ones(3)
    with ferry.writable(tensor) as array:
        array[1] = 5
    assert tensor.tolist() == [1, 5, 1]
    with torch.inference_mode(), ferry.writable(tensor) as array:
        array[2] = 7
    assert tensor.tolist() == [1, 5, 7]


# Read-only tensors have been asked for for years; arrays can be, and a snapshot need not cost a copy.
@pytest.mark.parametrize("write_to", ["clone", "original"])
@pytest.mark.parametrize("copy", [None, False, "lazy", True])
def test_f107_copy_on_write_tensors_keep_their_own_values(write_to, copy):
    original = torch.arange(1000.0)
    clone = torch._lazy_clone(original)
    array = ferry.to_numpy(clone, copy=copy)
    np.testing.assert_array_equal(array, np.arange(1000.0))
    (clone if write_to == "clone" else original).add_(1)
    shared = copy in (None, False) and write_to == "clone"
    np.testing.assert_array_equal(array, np.arange(1000.0) + shared)
    kept = original if write_to == "clone" else clone
    np.testing.assert_array_equal(kept.numpy(), np.arange(1000.0))


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.add_(1),
        lambda t: t.__setitem__(0, 9),
        lambda t: t.view(-1)[::2].zero_(),
        lambda t: t.numpy().fill(5),
        lambda t: t.detach().copy_(torch.zeros(t.shape)),
    ],
    ids=["in place", "assignment", "through a view", "through .numpy()", "copy_"],
)
@pytest.mark.parametrize(
    "layout", [lambda t: t, lambda t: t.t(), lambda t: t[1:, ::2]], ids=["whole", "transposed", "strided"]
)
def test_f107_a_lazy_copy_is_a_snapshot(write, layout):
    tensor = torch.arange(24.0).reshape(4, 6)
    expected = layout(tensor).clone().numpy()
    snapshot = ferry.to_numpy(layout(tensor), copy="lazy")
    assert not snapshot.flags.writeable
    write(tensor)
    np.testing.assert_array_equal(snapshot, expected)


# Machines without an accelerator raise one of two different errors for a pinned allocation.
@pytest.mark.parametrize("pinned", ["auto", False])
def test_f079_without_an_accelerator_results_are_ordinary_memory(pinned):
    array = ferry.to_numpy(torch.arange(3.0), pinned=pinned, copy=True)
    assert array.tolist() == [0, 1, 2]
    assert array.flags.writeable


@pytest.mark.parametrize("x", [torch.ones(2), np.ones(2), [torch.ones(2)]], ids=["tensor", "array", "nest"])
def test_f079_demanding_pinned_memory_raises_one_clear_error(x):
    with pytest.raises(ferry.DeviceError, match='pinned="auto"'):
        ferry.to_numpy(x, pinned=True)
