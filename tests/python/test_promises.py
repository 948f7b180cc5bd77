"""The promises that the documentation makes, each in one sentence and one test."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

import tensorferry as ferry

TENSORS = {
    "contiguous": lambda: torch.arange(6.0).reshape(2, 3),
    "transposed": lambda: torch.arange(6.0).reshape(2, 3).T,
    "bfloat16": lambda: torch.arange(6.0).to(torch.bfloat16),
    "complex32": lambda: torch.ones(3, dtype=torch.complex32),
    "negative view": lambda: torch._neg_view(torch.ones(3)),
    "conjugate view": lambda: torch.tensor([1 + 2j]).conj(),
    "zero tensor": lambda: torch._efficientzerotensor((2, 2)),
    "parameter": lambda: torch.nn.Parameter(torch.ones(3)),
    "empty": lambda: torch.empty(0, 3),
    "0-d": lambda: torch.tensor(1.5),
}
ODD = {
    "sparse": lambda: torch.eye(2).to_sparse(),
    "meta": lambda: torch.ones(2, device="meta"),
    "quantised": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]),
}
made = pytest.mark.parametrize("make", TENSORS.values(), ids=TENSORS)


@pytest.mark.parametrize("copy", [True, "lazy"])
def test_promise_2_a_copy_is_the_value_at_the_call(copy):
    source = torch.arange(4.0)
    taken = ferry.to_numpy(source, copy=copy)
    source.fill_(-1)
    assert taken.tolist() == [0, 1, 2, 3]


@made
def test_promise_3_writability_depends_on_the_argument_alone(make):
    assert not ferry.to_numpy(make()).flags.writeable
    assert ferry.to_numpy(make(), copy=True).flags.writeable
    view = ferry.to_numpy(make())
    if ferry.plan(make()).shares_memory:
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True


@made
def test_promise_4_every_tensor_converts_exactly(make):
    converted = ferry.to_numpy(make(), dtype="numpy")
    expected = make().detach().clone().resolve_conj().resolve_neg()
    wide = torch.complex128 if expected.is_complex() else torch.float64
    assert np.array_equal(converted, expected.to(wide).numpy())


@pytest.mark.filterwarnings("ignore:.*nested tensors.*:UserWarning")
@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
def test_promise_4_or_explains_itself(make):
    with pytest.raises(ferry.FerryError) as caught:
        ferry.to_numpy(make())
    assert caught.value.given
    assert caught.value.why
    assert caught.value.instead


@made
@pytest.mark.parametrize("copy", [None, True])
def test_promise_5_the_plan_is_the_truth(make, copy):
    tensor = make()
    plan = ferry.plan(tensor, copy=copy)
    array = ferry.to_numpy(tensor, copy=copy)
    planned = (plan.dtype, plan.shape, plan.strides, plan.writable)
    assert planned == (array.dtype.name, array.shape, array.strides, array.flags.writeable)
    assert plan.nbytes_moved == (array.nbytes if plan.copies else 0)
    if array.size:
        assert plan.shares_memory == ferry.shares_memory(array, tensor)


@made
def test_promise_7_host_memory_is_never_waited_for(make):
    assert ferry.plan(make()).waits == ()


def test_promise_8_torch_is_optional_and_not_linked():
    code = (
        "import sys; sys.modules['torch'] = None; import numpy, tensorferry; print(tensorferry.to_numpy(numpy.ones(2)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[1. 1.]\n"
    native = sys.modules["tensorferry._core"].__file__
    linked = subprocess.run(["ldd", native], capture_output=True, text=True, check=True).stdout
    assert [line for line in linked.splitlines() if "torch" in line or "cuda" in line] == []
