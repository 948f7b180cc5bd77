"""Field cases: tensors that have no single strided memory are refused by name, with the remedy, and never crash."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.subprocess import stdout_of

EVERY_COPY = [None, True, False, "lazy"]


# The message used to be about "tensor subclasses", which the user never made.
@pytest.mark.parametrize("copy", EVERY_COPY)
def test_f026_a_fake_tensor_is_refused_naming_the_mode(copy):
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        fake = torch.ones(2)
        with pytest.raises(ferry.LayoutError, match="FakeTensorMode"):
            ferry.to_numpy(fake, copy=copy)
    with pytest.raises(ferry.LayoutError, match="FakeTensorMode"):
        ferry.to_numpy([fake], copy=copy)


def test_f026_a_functional_tensor_is_refused_naming_the_transform():
    def convert(x):
        with pytest.raises(ferry.LayoutError, match="functionalization"):
            ferry.to_numpy(x)
        return x + 1

    assert torch.func.functionalize(convert)(torch.ones(2)).tolist() == [2.0, 2.0]


def test_f026_a_plain_subclass_converts_like_its_parent():
    class Labelled(torch.Tensor):
        pass

    tensor = torch.arange(3.0).as_subclass(Labelled)
    array = ferry.to_numpy(tensor)
    assert type(array) is np.ndarray
    np.testing.assert_array_equal(array, [0, 1, 2])
    assert array.ctypes.data == tensor.data_ptr()


def test_f026_a_subclass_that_computes_its_own_operations_is_refused():
    class Doubled(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
            raise AssertionError("no operation may run")

    tensor = torch.Tensor._make_subclass(Doubled, torch.ones(2))
    with pytest.raises(ferry.LayoutError, match="__torch_dispatch__"):
        ferry.to_numpy(tensor)


# "Cannot access data pointer of Tensor that doesn't have storage"; once it was a segmentation fault.
@pytest.mark.parametrize(
    ("transform", "error", "word"),
    [
        (torch.func.vmap, ferry.LayoutError, "vmap"),
        (torch.func.grad, ferry.AutogradError, "grad"),
        (torch.func.jacrev, ferry.AutogradError, "grad"),
        (lambda f: torch.func.vmap(torch.func.grad(f)), ferry.FerryError, "transform"),
        (lambda f: torch.func.grad(lambda x: torch.func.vmap(f)(x).sum()), ferry.FerryError, "transform"),
    ],
    ids=["vmap", "grad", "jacrev", "grad under vmap", "vmap under grad"],
)
@pytest.mark.parametrize("copy", EVERY_COPY)
def test_f028_a_tensor_inside_a_transform_is_refused_by_name(transform, error, word, copy):
    refused = []

    def function(x):
        with pytest.raises(error, match=word) as caught:
            ferry.to_numpy(x, copy=copy)
        refused.append(caught.value.instead)
        return (x * x).sum()

    transform(function)(torch.ones(3) if transform is not torch.func.vmap else torch.ones(3, 2))
    assert refused
    assert all("outside" in remedy for remedy in refused)


def test_f028_a_tensor_that_a_transform_only_closes_over_converts():
    outer, seen = torch.arange(3.0), []

    def function(x):
        seen.append(ferry.to_numpy(outer).tolist())
        return x * 2

    torch.func.vmap(function)(torch.ones(3))
    assert seen == [[0.0, 1.0, 2.0]]


# The norm of a sharded tensor was the norm of one shard.
def test_f029_a_dtensor_is_refused_unless_the_caller_says_local_or_full():
    printed = stdout_of(
        """
        import warnings
        warnings.simplefilter("ignore")
        import logging
        logging.disable(logging.CRITICAL)
        import torch, torch.distributed as dist
        import tensorferry as ferry
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Shard
        mesh = init_device_mesh("cpu", (1,))
        tensor = DTensor.from_local(torch.arange(4.0), mesh, [Shard(0)])
        for copy in (None, True, False, "lazy"):
            try:
                ferry.to_numpy(tensor, copy=copy)
            except ferry.LayoutError as error:
                print("to_local" in error.instead and "full_tensor" in error.instead)
        print(ferry.to_numpy(tensor.to_local()).tolist())
        dist.destroy_process_group()
        """
    )
    assert printed.splitlines() == ["True"] * 4 + ["[0.0, 1.0, 2.0, 3.0]"]


def _quantized_by_channel() -> torch.Tensor:
    return torch.quantize_per_channel(torch.ones(2, 3), torch.ones(2), torch.zeros(2), 0, torch.qint8)


def _emptied() -> torch.Tensor:
    tensor = torch.ones(4)
    tensor.untyped_storage().resize_(0)
    return tensor


REFUSED = {
    "meta": (lambda: torch.ones(2, device="meta"), ferry.DeviceError, "materialise"),
    "sparse COO": (lambda: torch.eye(2).to_sparse(), ferry.LayoutError, r"to_dense\(\)"),
    "sparse CSR": (lambda: torch.eye(2).to_sparse_csr(), ferry.LayoutError, r"to_dense\(\)"),
    "sparse CSC": (lambda: torch.eye(2).to_sparse_csc(), ferry.LayoutError, r"to_dense\(\)"),
    "sparse BSR": (lambda: torch.eye(2).to_sparse_bsr((1, 1)), ferry.LayoutError, r"to_dense\(\)"),
    "sparse with grad": (lambda: torch.eye(2).to_sparse().requires_grad_(), ferry.LayoutError, r"to_dense\(\)"),
    "MKLDNN": (lambda: torch.ones(2, 2).to_mkldnn(), ferry.LayoutError, r"to_dense\(\)"),
    "quantised": (
        lambda: torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8),
        ferry.DTypeError,
        r"int_repr\(\)",
    ),
    "quantised by channel": (_quantized_by_channel, ferry.DTypeError, r"dequantize\(\)"),
    "nested, strided": (
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        ferry.LayoutError,
        r"unbind\(\)",
    ),
    "nested, jagged": (
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        ferry.LayoutError,
        r"values\(\)",
    ),
    "storage taken away": (_emptied, ferry.LayoutError, "restore the storage"),
}


# torch's own messages range from "tensor subclasses" to "Internal error ... file an issue".
@pytest.mark.filterwarnings("ignore:.*(Sparse|nested tensors|quantize).*:UserWarning")
@pytest.mark.parametrize("copy", EVERY_COPY)
@pytest.mark.parametrize("kind", REFUSED)
def test_f032_tensors_without_plain_memory_are_refused_with_the_remedy(kind, copy):
    make, error, remedy = REFUSED[kind]
    tensor = make()
    for given in (tensor, {"leaf": tensor}):
        with pytest.raises(error) as caught:
            ferry.to_numpy(given, copy=copy)
        assert re.search(remedy, caught.value.instead)


@pytest.mark.filterwarnings("ignore:.*(Sparse|nested tensors|quantize).*:UserWarning")
def test_f032_the_remedies_work():
    dense = torch.eye(2)
    for sparse in (dense.to_sparse(), dense.to_sparse_csr(), dense.to_mkldnn()):
        np.testing.assert_array_equal(ferry.to_numpy(sparse.to_dense()), np.eye(2))
    quantized = _quantized_by_channel()
    np.testing.assert_array_equal(ferry.to_numpy(quantized.int_repr()), np.ones((2, 3), np.int8))
    np.testing.assert_array_equal(ferry.to_numpy(quantized.dequantize()), np.ones((2, 3), np.float32))
    for layout in (torch.strided, torch.jagged):
        nested = torch.nested.nested_tensor([torch.ones(2), torch.zeros(1)], layout=layout)
        assert [row.tolist() for row in ferry.to_numpy(nested.unbind())] == [[1, 1], [0]]
        np.testing.assert_array_equal(ferry.to_numpy(nested.values()), [1, 1, 0])


def test_f032_a_zero_tensor_gives_zeros():
    zeros = torch._efficientzerotensor((2, 3))
    for copy in (None, True, "lazy"):
        np.testing.assert_array_equal(ferry.to_numpy(zeros, copy=copy), np.zeros((2, 3), np.float32))
