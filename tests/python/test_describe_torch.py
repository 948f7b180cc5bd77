"""``describe`` of torch tensors: every kind answers, and none is changed, started or pulled apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from torch._subclasses import FakeTensorMode

from helpers import layouts, torch_dtypes
from tensorferry._inspect.describe import describe


def test_autograd_facts():
    leaf = torch.ones(3, requires_grad=True)
    made = leaf * 2
    facts = [(d.requires_grad, d.is_leaf, d.grad_fn) for d in (describe(leaf), describe(made))]
    assert facts == [(True, True, None), (True, False, "MulBackward0")]


def test_the_version_counts_changes_in_place():
    x = torch.zeros(3)
    x.add_(1).mul_(2)
    assert describe(x).version == x._version == 2


def test_inference_tensors_have_no_version():
    with torch.inference_mode():
        x = torch.ones(3)
    d = describe(x)
    assert (d.version, d.shape, d.addresses) == (None, (3,), (x.data_ptr(), x.data_ptr() + 12))
    assert "no version counter" in str(d)


@pytest.mark.parametrize(
    ("x", "conjugated", "negated"),
    [
        pytest.param(torch.ones(2, dtype=torch.complex64).conj(), True, False, id="conjugate view"),
        pytest.param(torch.ones(2, dtype=torch.complex64).conj().imag, False, True, id="negative view"),
        pytest.param(torch._neg_view(torch.ones(4, dtype=torch.bfloat16)), False, True, id="negative bfloat16 view"),
    ],
)
def test_marks_are_told_and_the_memory_is_the_tensors_own(x, conjugated, negated):
    d = describe(x)
    base = x._base
    inside = base.data_ptr() <= d.addresses[0] < d.addresses[1] <= base.data_ptr() + base.nbytes
    assert (d.conjugated, d.negated, d.is_view, inside) == (conjugated, negated, True, True)


def test_parameters_and_plain_subclasses_are_described_under_their_names():
    class Named(torch.Tensor):
        pass

    parameter = torch.nn.Parameter(torch.ones(2, 3))
    d = describe(parameter)
    assert (d.class_name, d.requires_grad, d.strides) == ("Parameter", True, (12, 4))
    named = torch.ones(3).as_subclass(Named)
    assert (describe(named).class_name, describe(named).strides_in_elements) == ("Named", (1,))


def test_a_subclass_cannot_lie():
    class Lying(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            raise AssertionError("a subclass was asked")

    x = torch.ones(2, 3).as_subclass(Lying)
    assert (describe(x).shape, describe(x).dtype) == ((2, 3), "float32")


def test_a_subclass_that_exports_itself_is_described_by_what_it_exports():
    values = np.arange(6.0).reshape(2, 3)

    class Exporting(torch.Tensor):
        def __dlpack__(self, **arguments):
            return values.__dlpack__(**arguments)

        def __dlpack_device__(self):
            return values.__dlpack_device__()

    d = describe(torch.ones(2).as_subclass(Exporting))
    assert d.strides == values.strides
    assert d.addresses[0] == values.__array_interface__["data"][0]
    assert "__dlpack__" in d.note


class _Distributed(torch.Tensor):
    """Like DTensor: a wrapper without memory that computes its own operations."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise AssertionError("an operation ran")


def _fake():
    with FakeTensorMode():
        return torch.ones(2, 3)


def _quantised():
    return torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8)


def _emptied():
    x = torch.ones(2, 3)
    x.untyped_storage().resize_(0)
    return x


UNCONVERTIBLE = [
    pytest.param(lambda: torch.eye(2, 3).to_sparse(), (2, 3), "to_dense", id="sparse COO"),
    pytest.param(lambda: torch.eye(2, 3).to_sparse_csr(), (2, 3), "to_dense", id="sparse CSR"),
    pytest.param(lambda: torch.empty(2, 3, device="meta"), (2, 3), "no values", id="meta"),
    pytest.param(_fake, (2, 3), "FakeTensorMode", id="fake"),
    pytest.param(_quantised, (2, 3), "scale", id="quantised"),
    pytest.param(lambda: torch.ones(2, 3).to_mkldnn(), (2, 3), "oneDNN", id="MKLDNN"),
    pytest.param(lambda: _Distributed(torch.ones(2, 3)), (2, 3), "__torch_dispatch__", id="wrapper subclass"),
    pytest.param(_emptied, (2, 3), "taken away", id="storage taken away"),
    pytest.param(
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        None,
        "different lengths",
        id="nested, jagged",
    ),
    pytest.param(
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.strided),
        None,
        "different lengths",
        id="nested, strided",
    ),
]


@pytest.mark.filterwarnings("ignore:.*prototype stage:UserWarning", "ignore:Sparse (CSR|invariant):UserWarning")
@pytest.mark.parametrize(("make", "shape", "words"), UNCONVERTIBLE)
def test_what_does_not_convert_says_why(make, shape, words):
    x = make()
    d = describe(x)
    layout = (d.strides, d.strides_in_elements, d.c_contiguous, d.f_contiguous, d.dense, d.pitch, d.overlapping)
    memory = (d.nbytes, d.span_nbytes, d.addresses, d.aligned, d.writable, d.storage_offset, d.storage_nbytes)
    assert set(layout + memory) == {None}
    assert (d.shape, d.device, d.class_name) == (shape, str(x.device), type(x).__name__)
    assert d.dtype == str(x.dtype).removeprefix("torch.")
    assert words in d.note
    assert d.note in str(d)


@pytest.mark.parametrize(
    ("transform", "words"),
    [pytest.param(torch.func.vmap, "vmap", id="vmap"), pytest.param(torch.func.grad, "differentiated", id="grad")],
)
def test_tensors_inside_transforms_are_described(transform, words):
    seen = []

    def look(t):
        seen.append(describe(t))
        return t.sum()

    transform(look)(torch.ones(3, 2))
    assert seen[0].strides is None
    assert words in seen[0].note


def test_symbolic_extents_are_no_plain_shape():
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv())
    x = mode.from_tensor(torch.ones(4, 3))
    guards_before = len(mode.shape_env.guards)
    d = describe(x)
    assert d.shape is None
    assert "symbols" in d.note
    assert len(mode.shape_env.guards) == guards_before


def test_a_zero_tensor_has_no_memory():
    d = describe(torch._efficientzerotensor((2, 3)))
    assert (d.shape, d.nbytes, d.addresses, d.writable) == ((2, 3), 24, None, False)
    assert "no memory" in d.note


@pytest.mark.parametrize("dtype", torch_dtypes.CONVERTIBLE, ids=torch_dtypes.name_of)
def test_every_dtype_that_converts_has_a_layout(dtype):
    x = torch.empty(2, 3, dtype=dtype)
    d = describe(x)
    assert (d.dtype, d.nbytes) == (torch_dtypes.name_of(dtype), x.nbytes)
    assert d.strides == (3 * dtype.itemsize, dtype.itemsize)
    assert d.addresses == (x.data_ptr(), x.data_ptr() + x.nbytes)


@given(x=layouts.tensors())
def test_tensors_stay_as_they_are(x):
    x.requires_grad_()
    before = (x._version, x.requires_grad, x.is_leaf, x.grad, x.untyped_storage().resizable(), x.data_ptr(), x.stride())
    values = x.tolist()
    describe(x)
    after = (x._version, x.requires_grad, x.is_leaf, x.grad, x.untyped_storage().resizable(), x.data_ptr(), x.stride())
    assert after == before
    assert x.tolist() == values


def test_copy_on_write_storage_stays_shared():
    original = torch.arange(6.0).reshape(2, 3)
    snapshot = torch._lazy_clone(original)
    first, second = describe(original), describe(snapshot)
    assert torch._C._is_cow_tensor(original)
    assert torch._C._is_cow_tensor(snapshot)
    assert first.addresses == second.addresses
    assert first.strides == (12, 4)


def test_no_device_is_started_or_asked(monkeypatch):
    def refuse(*arguments, **keywords):
        raise AssertionError("a device was asked for")

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "_lazy_init", refuse)
    monkeypatch.setattr(torch.Tensor, "is_pinned", refuse)
    assert describe(torch.ones(3)).pinned is False


def test_pinned_memory_is_told_once_a_device_runs(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda self: True)
    assert describe(torch.ones(3)).pinned is True
