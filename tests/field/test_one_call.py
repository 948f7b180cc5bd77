"""Field cases: one call instead of a chain, which leaves the tensor it is given alone."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.subprocess import stdout_of


def _state(tensor: torch.Tensor) -> tuple:
    return (
        tensor.requires_grad,
        tensor.is_leaf,
        tensor.grad_fn,
        tensor._version,
        tensor.dtype,
        tensor.shape,
        tensor.stride(),
        tensor.data_ptr(),
        tensor.is_conj(),
        tensor.is_neg(),
        tensor.tolist(),
    )


TENSORS = {
    "leaf that requires grad": lambda: torch.arange(6.0).reshape(2, 3).requires_grad_(),
    "result in a graph": lambda: torch.arange(6.0).requires_grad_() * 2,
    "view of a leaf": lambda: torch.arange(6.0).requires_grad_()[1::2],
    "parameter": lambda: torch.nn.Parameter(torch.arange(4.0)),
    "parameter of integers": lambda: torch.nn.Parameter(torch.arange(4), requires_grad=False),
    "bfloat16 leaf": lambda: torch.arange(4.0, dtype=torch.bfloat16).requires_grad_(),
    "complex leaf, conjugated": lambda: torch.tensor([1 + 2j], requires_grad=True).conj(),
    "buffer": lambda: torch.nn.BatchNorm1d(3).running_mean,
}
CALLS = {
    "to_numpy": ferry.to_numpy,
    "to_numpy, copy": lambda x: ferry.to_numpy(x, copy=True),
    "to_numpy, lazy": lambda x: ferry.to_numpy(x, copy="lazy"),
    "to_numpy, cast": lambda x: ferry.to_numpy(x, dtype="complex128"),
    "to_numpy, bits": lambda x: ferry.to_numpy(x, dtype="bits"),
    "to_numpy, nest": lambda x: ferry.to_numpy({"a": [x, x]}),
    "plan": ferry.plan,
    "from_numpy of the array": lambda x: ferry.from_numpy(ferry.to_numpy(x)),
    "describe": lambda x: ferry.describe(x),
    "explain": lambda x: str(ferry.explain(x)),
    "to_python": lambda x: ferry.to_python(x),
    "stack": lambda x: ferry.stack([x, x], to="numpy"),
    "check": lambda x: ferry.check(x, shape=(...,)),
    "shares_memory": lambda x: ferry.shares_memory(x, x),
}


# The usual chain is x.detach().cpu().numpy(), and each part is forgotten in turn.
@pytest.mark.filterwarnings("ignore::tensorferry.ExtensionDTypeWarning")
@pytest.mark.parametrize("grad_mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("kind", TENSORS)
def test_f024_one_call_converts_whatever_its_grad_state(kind, grad_mode):
    tensor = TENSORS[kind]()
    with grad_mode():
        array = ferry.to_numpy(tensor)
    expected = tensor.detach().resolve_conj()
    expected = expected.float() if expected.dtype is torch.bfloat16 else expected
    np.testing.assert_array_equal(array, expected.numpy())
    assert not array.flags.writeable


@pytest.mark.parametrize("make", [lambda: torch.ones(3), lambda: torch.eye(3)[0]], ids=["whole", "view"])
def test_f024_inference_tensors_convert_inside_and_outside_the_mode(make):
    with torch.inference_mode():
        tensor = make()
        inside = ferry.to_numpy(tensor)
    np.testing.assert_array_equal(inside, tensor.tolist())
    np.testing.assert_array_equal(ferry.to_numpy(tensor, copy=True), tensor.tolist())
    assert ferry.from_numpy(inside).tolist() == tensor.tolist()


# Somebody's helper turned requires_grad off on the caller's own tensor.
@pytest.mark.filterwarnings("ignore::tensorferry.ExtensionDTypeWarning")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", TENSORS)
def test_f025_no_call_changes_the_tensor_it_is_given(kind, call):
    tensor = TENSORS[kind]()
    before = _state(tensor)
    CALLS[call](tensor)
    assert _state(tensor) == before


@pytest.mark.parametrize("arguments", [{}, {"copy": True}, {"dtype": "float64"}, {"requires_grad": True}], ids=str)
@pytest.mark.parametrize("writable", [True, False], ids=["writable", "read-only"])
def test_f025_no_call_changes_the_array_it_is_given(arguments, writable):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)[:, ::2]
    array.flags.writeable = writable
    before = (array.flags.num, array.dtype, array.shape, array.strides, array.ctypes.data, array.tolist())
    ferry.from_numpy(array, **arguments)
    assert (array.flags.num, array.dtype, array.shape, array.strides, array.ctypes.data, array.tolist()) == before


# A version of torch and one of NumPy that do not fit leave torch without its bridge: "Numpy is not available".
def test_f030_conversions_work_where_torchs_own_bridge_is_missing():
    printed = stdout_of(
        """
        import sys, warnings
        warnings.simplefilter("ignore")
        sys.modules["numpy"] = None  # torch is built for a NumPy that is not there
        import torch
        del sys.modules["numpy"]
        import numpy as np
        import tensorferry as ferry
        try:
            torch.ones(1).numpy()
        except RuntimeError as error:
            print(error)
        print(ferry.to_numpy(torch.arange(3)).tolist(), ferry.from_numpy(np.arange(3)[::-1]).tolist())
        print(ferry.to_numpy([torch.ones(2)], copy=True)[0].tolist(), ferry.from_numpy(np.ones(2)).tolist())
        """
    )
    assert printed.splitlines() == ["Numpy is not available", "[0, 1, 2] [2, 1, 0]", "[1.0, 1.0] [1.0, 1.0]"]


# np.array(tensor) warns that __array__ has no copy keyword, and np.delete that __array_wrap__ lacks one.
def test_f031_no_conversion_goes_through_numpys_array_protocol(monkeypatch):
    def refuse(self, *arguments, **keywords):
        raise AssertionError("__array__ of a tensor was called")

    monkeypatch.setattr(torch.Tensor, "__array__", refuse)
    tensor = torch.arange(6.0).reshape(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for array in [
            ferry.to_numpy(tensor),
            ferry.to_numpy(tensor, copy=True, dtype="float64", order="F"),
            ferry.to_numpy([tensor, tensor])[1],
            ferry.to_numpy(tensor, out=np.zeros((2, 3))),
            ferry.stack([tensor], to="numpy")[0],
            np.asarray(ferry.to_python(tensor)),
        ]:
            np.testing.assert_array_equal(array, [[0, 1, 2], [3, 4, 5]])


def test_f031_numpys_own_functions_take_the_result_without_a_warning():
    array = ferry.to_numpy(torch.arange(4.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(np.delete(array, 1), [0, 2, 3])
        np.testing.assert_array_equal(np.array(array, copy=True), array)
        assert np.asarray(array, copy=False) is array
