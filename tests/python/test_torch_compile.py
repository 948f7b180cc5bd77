"""Our arrays, and our calls, in functions that torch compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry

pytestmark = pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace:UserWarning")


@pytest.fixture(autouse=True)
def _forget_what_was_compiled():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _compiled(function: Callable[..., Any], **arguments: Any) -> Callable[..., Any]:
    return torch.compile(function, backend="eager", **arguments)


TENSORS: dict[str, Callable[[], torch.Tensor]] = {
    "matrix": lambda: torch.arange(6.0).reshape(2, 3),
    "transposed": lambda: torch.arange(6.0).reshape(2, 3).T,
    "strided": lambda: torch.arange(12.0).reshape(2, 6)[:, ::2],
    "integers": lambda: torch.arange(6).reshape(2, 3),
    "requires grad": lambda: torch.ones(2, 3, requires_grad=True),
    "empty": lambda: torch.zeros(0, 3),
    "scalar": lambda: torch.tensor(2.5),
}
PRIVATE: dict[str, Callable[[torch.Tensor], np.ndarray]] = {
    "copy": lambda t: ferry.to_numpy(t, copy=True),
    "cast copy": lambda t: ferry.to_numpy(t, copy=True, dtype="float64", casting="unsafe"),
    "destination": lambda t: ferry.to_numpy(t, out=np.zeros(tuple(t.shape))),
    "stack": lambda t: ferry.stack([t, t], to="numpy"),
}


def _numpy_code(array: np.ndarray) -> np.ndarray:
    return np.where(array > 1, array * 2, array - 1).sum(axis=0) if array.ndim else array * 2


@pytest.mark.parametrize("private", PRIVATE)
@pytest.mark.parametrize("kind", TENSORS)
def test_a_private_array_may_enter(kind, private):
    tensor = TENSORS[kind]()
    array = PRIVATE[private](tensor)
    before = array.copy()
    result = _compiled(_numpy_code, fullgraph=True)(array)
    np.testing.assert_array_equal(result, _numpy_code(before))
    np.testing.assert_array_equal(array, before)
    assert array.flags.writeable


READ_ONLY: dict[str, Callable[[torch.Tensor], np.ndarray]] = {
    "view": ferry.to_numpy,
    "view of a view": lambda t: ferry.to_numpy(t)[1:],
    "leaf of a nest": lambda t: ferry.to_numpy([t])[0],
    "lazy snapshot": lambda t: ferry.to_numpy(t, copy="lazy"),
    "from a producer": lambda t: ferry.from_dlpack(ferry.to_dlpack(t), to="numpy"),
}


@pytest.mark.parametrize("made", READ_ONLY)
def test_a_read_only_view_is_refused_by_torchs_front_end_and_stays_read_only(made):
    tensor = torch.arange(4.0)
    array = READ_ONLY[made](tensor)
    with pytest.raises(AssertionError, match=r"np\.nditer"):
        _compiled(lambda a: a + 1)(array)
    assert not array.flags.writeable
    assert tensor.tolist() == [0, 1, 2, 3]
    assert _compiled(lambda a: a + 1)(array.copy()).tolist() == (array + 1).tolist()


@pytest.mark.parametrize("kind", ["matrix", "transposed", "strided", "requires grad", "scalar"])
def test_tensors_made_by_us_enter_like_any_other(kind):
    array = TENSORS[kind]().detach().clone().numpy()

    def function(x: torch.Tensor) -> torch.Tensor:
        return (x * 3).cos()

    for tensor in (ferry.from_numpy(array), ferry.from_numpy(array, copy=True), ferry.from_dlpack(array)):
        assert torch.equal(_compiled(function, fullgraph=True)(tensor), function(torch.from_numpy(array)))


def test_an_alias_of_a_tensor_and_the_tensor_may_enter_together():
    tensor = torch.arange(3.0)
    alias = ferry.from_numpy(ferry.to_numpy(tensor))

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x + y

    assert _compiled(function)(tensor, alias).tolist() == [2, 4, 6]
    assert alias.tolist() == [1, 2, 3]


def test_a_conversion_inside_is_a_graph_break_with_the_right_values():
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        array = ferry.to_numpy(y, copy=True)
        array += 1
        return ferry.from_numpy(array) + x

    compiled = _compiled(function)
    for scale in (1.0, 5.0, -2.0):
        x = torch.arange(4.0) * scale
        assert torch.equal(compiled(x), x * 3 + 1)


CALLS: dict[str, Callable[[torch.Tensor, np.ndarray], torch.Tensor]] = {
    "to_numpy with a cast": lambda x, a: torch.from_numpy(ferry.to_numpy(x, dtype="float64", copy=True)),
    "to_numpy of a nest": lambda x, a: torch.from_numpy(ferry.to_numpy({"k": [x]}, copy=True)["k"][0]),
    "from_numpy": lambda x, a: ferry.from_numpy(a),
    "from_numpy of a reversed array": lambda x, a: ferry.from_numpy(a[::-1]),
    "from_numpy of a nest": lambda x, a: ferry.from_numpy((a, {"k": a[::-1]}))[1]["k"],
    "stack": lambda x, a: ferry.stack([x, a]),
    "stack to NumPy": lambda x, a: ferry.from_numpy(ferry.stack([a, x], to="numpy")),
    "to_dlpack": lambda x, a: ferry.from_dlpack(ferry.to_dlpack(a, writable=True)),
    "to_python": lambda x, a: torch.tensor(ferry.to_python({"k": [x, a]})["k"]),
    "check": lambda x, a: ferry.check(x, shape=(3,), finite=True) + ferry.from_numpy(ferry.check(a, dtype="floating")),
    "describe": lambda x, a: x + ferry.describe(a).nbytes + len(str(ferry.describe(x).dtype)),
    "plan": lambda x, a: x + ferry.plan(x, copy=True).nbytes_moved + ferry.plan(a, to="torch", copy=True).copies,
}


@pytest.mark.parametrize("call", CALLS)
def test_every_call_inside_gives_what_it_gives_outside(call):
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        array = ferry.to_numpy(y, copy=True)
        return CALLS[call](y, array) + 1

    compiled = _compiled(function)
    for shift in range(2):
        x = torch.arange(3.0) + shift
        assert torch.equal(compiled(x), function(x))


def test_our_own_code_is_not_compiled():
    def function(x: torch.Tensor) -> torch.Tensor:
        return ferry.stack([x * 2, ferry.from_numpy(ferry.to_numpy(x, dtype="float32", copy=True)[::-1])]) + 1

    counted = torch._dynamo.testing.CompileCounter()
    compiled = torch.compile(function, backend=counted)
    assert compiled(torch.arange(2.0)).tolist() == [[1, 3], [2, 1]]
    assert 1 <= counted.frame_count <= 3  # the pieces of the function between our calls


def test_a_refusal_inside_is_the_one_from_outside():
    def function(x: torch.Tensor) -> torch.Tensor:
        return ferry.from_numpy(ferry.to_numpy(x, dtype="int8", copy=True)) + x

    with pytest.raises(ferry.DTypeError, match='casting="unsafe"'):
        _compiled(function)(torch.arange(3.0))


def test_a_view_made_inside_may_be_returned_or_consumed_at_once():
    def returns(x: torch.Tensor) -> np.ndarray:
        return ferry.to_numpy(x + 1)

    def consumes(x: torch.Tensor) -> torch.Tensor:
        return torch.tensor(ferry.to_python((x + 1).sum())) * x

    x = torch.arange(3.0)
    assert _compiled(returns)(x).tolist() == [1, 2, 3]
    assert _compiled(consumes)(x).tolist() == [0, 6, 12]


def test_conversions_of_a_nest_and_edits_inside_give_the_right_values():
    def function(x: torch.Tensor, scratch: torch.Tensor) -> torch.Tensor:
        total = ferry.stack([x, x + 1]).sum()
        with ferry.writable(scratch) as array:
            array[0] = 9
        return total + scratch.sum()

    scratch = torch.zeros(2)
    version = scratch._version
    assert _compiled(function)(torch.ones(2), scratch).item() == 15
    assert scratch.tolist() == [9, 0]
    assert scratch._version > version


def test_converting_the_output_of_a_compiled_function_shares_its_memory():
    result = _compiled(lambda x: x * 2, fullgraph=True)(torch.arange(3.0))
    array = ferry.to_numpy(result)
    assert array.ctypes.data == result.data_ptr()
    assert array.tolist() == [0, 2, 4]


def test_gradients_flow_around_a_conversion_inside():
    def function(x: torch.Tensor) -> torch.Tensor:
        seen.append(ferry.to_python(x.detach().sum()))
        return (x**2).sum()

    seen: list[float] = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    _compiled(function)(x).backward()
    assert seen == [3.0]
    assert x.grad.tolist() == [2, 4]
