"""A backward pass after an edit through ``writable`` raises exactly where one after an in-place edit of torch does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

import tensorferry as ferry

# Operations by what they save for the backward pass.
OPERATIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "exp saves its result": lambda x, w: x.exp(),
    "sigmoid saves its result": lambda x, w: x.sigmoid(),
    "softmax saves its result": lambda x, w: x.softmax(0),
    "square saves its input": lambda x, w: x**2,
    "sin saves its input": lambda x, w: x.sin(),
    "mul saves both factors": lambda x, w: x * w,
    "matmul saves both factors": lambda x, w: x @ w.T,
    "add saves nothing": lambda x, w: x + w,
    "clone saves nothing": lambda x, w: x.clone(),
    "a chain saves in the middle": lambda x, w: (x * 2).exp() + w,
}


@dataclass
class Graph:
    """A leaf, a view of it, another factor, what an operation made of both, and a tensor that has no part in it."""

    leaf: torch.Tensor
    view: torch.Tensor
    factor: torch.Tensor
    result: torch.Tensor
    other: torch.Tensor


EDITED: dict[str, Callable[[Graph], torch.Tensor]] = {
    "input": lambda g: g.view,
    "base of the input": lambda g: g.leaf,
    "alias of the input": lambda g: g.view.detach(),
    "data of the base": lambda g: g.leaf.data,
    "slice of the input": lambda g: g.view[1:],
    "part of the base beside the input": lambda g: g.leaf[:1],
    "factor": lambda g: g.factor,
    "alias of the factor": lambda g: g.factor.detach(),
    "result": lambda g: g.result,
    "alias of the result": lambda g: g.result.detach(),
    "slice of the result": lambda g: g.result.detach()[1:, :1],
    "transpose of the result": lambda g: g.result.T,
    "something else": lambda g: g.other,
}


def _graph(operation: str) -> Graph:
    leaf = torch.linspace(0.1, 1.2, 12, dtype=torch.float64).reshape(4, 3).requires_grad_()
    factor = torch.linspace(-1, 1, 9, dtype=torch.float64).reshape(3, 3).requires_grad_()
    view = leaf[1:]
    return Graph(leaf, view, factor, OPERATIONS[operation](view, factor), torch.ones(3, dtype=torch.float64))


def _outcome(graph: Graph) -> object:
    try:
        (graph.result * torch.arange(9.0, dtype=torch.float64).reshape(3, 3)).sum().backward()
    except RuntimeError as error:
        return str(error)[:110]
    return [None if x.grad is None else x.grad.tolist() for x in (graph.leaf, graph.factor)]


@pytest.mark.parametrize("edited", EDITED)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_backward_ends_as_after_an_in_place_operation_of_torch(operation, edited):
    ours, torchs = _graph(operation), _graph(operation)
    with torch.no_grad():
        EDITED[edited](torchs).mul_(3)
        with ferry.writable(EDITED[edited](ours)) as array:
            array *= 3
    assert torch.equal(ours.leaf, torchs.leaf)
    assert torch.equal(ours.result, torchs.result)
    assert _outcome(ours) == _outcome(torchs)


def test_the_sweep_sees_both_ends():
    outcomes = set()
    for operation in OPERATIONS:
        for edited in EDITED:
            graph = _graph(operation)
            with torch.no_grad(), ferry.writable(EDITED[edited](graph)) as array:
                array *= 3
            outcome = _outcome(graph)
            outcomes.add(isinstance(outcome, str) and "modified by an inplace operation" in outcome)
    assert outcomes == {True, False}


class Cube(torch.autograd.Function):
    """Saves its input by hand."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * grad * x**2


def test_what_a_custom_function_saved_is_protected_too():
    leaf = torch.ones(3, requires_grad=True)
    result = Cube.apply(leaf)
    with torch.no_grad(), ferry.writable(leaf) as array:
        array[0] = 2
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_an_edit_before_the_forward_pass_counts_in_the_gradient():
    leaf = torch.ones(3, requires_grad=True)
    with torch.no_grad(), ferry.writable(leaf) as array:
        array[:] = [1, 2, 3]
    (leaf**2).sum().backward()
    assert leaf.grad.tolist() == [2, 4, 6]


def test_a_gradient_can_be_edited_between_backward_and_step():
    parameter = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    (parameter * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    with ferry.writable(parameter.grad) as gradient:
        gradient.clip(max=5, out=gradient)
    optimizer.step()
    assert parameter.tolist() == [-1, -5, -5]


@pytest.mark.parametrize("edited", ["input", "factor", "something else"])
def test_gradients_are_right_after_an_edit_that_nobody_saved(edited):
    x = torch.linspace(0.1, 1, 6, dtype=torch.float64).requires_grad_()
    w = torch.linspace(1, 2, 6, dtype=torch.float64).requires_grad_()
    other = torch.zeros(6, dtype=torch.float64)
    with torch.no_grad(), ferry.writable({"input": x, "factor": w, "something else": other}[edited]) as array:
        array[2] = 0.7

    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = (x * w).sigmoid()
        with ferry.writable(other) as scratch:
            scratch += 1
        return y * w.exp()

    assert torch.autograd.gradcheck(function, (x, w))
    assert torch.autograd.gradgradcheck(function, (x, w))


def test_version_checks_of_a_checkpointed_segment_hold():
    from torch.utils.checkpoint import checkpoint

    leaf = torch.ones(3, requires_grad=True)
    result = checkpoint(lambda x: x.exp().sin(), leaf, use_reentrant=False)
    with torch.no_grad(), ferry.writable(leaf) as array:
        array[:] = 5
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()
