"""``explain``: every answer of the chart agrees with the plan, and with what the conversion then gives."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.counting_capsules import CPU, CUDA, CountingCapsule, Producer
from helpers.plans import refusal_of

GRAPH, DEVICE, CHANGE, LAYOUT, DTYPE, BACK = range(6)


def _read_only(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


TENSORS: dict[str, Callable[[], torch.Tensor]] = {
    "contiguous": lambda: torch.arange(6.0).reshape(2, 3),
    "transposed": lambda: torch.arange(6.0).reshape(2, 3).T,
    "strided": lambda: torch.arange(12.0).reshape(2, 6)[:, ::2],
    "expanded": lambda: torch.arange(3.0).expand(2, 3),
    "requires grad": lambda: torch.ones(2, 3, requires_grad=True),
    "in a graph": lambda: torch.ones(2, 3, requires_grad=True) * 2,
    "conjugate": lambda: (torch.ones(2, 3) * 1j).conj(),
    "negative": lambda: (torch.ones(2, 3) * 1j).conj().imag,
    "bfloat16": lambda: torch.ones(2, 3).bfloat16(),
    "float8": lambda: torch.ones(2, 3).to(torch.float8_e5m2),
    "complex32": lambda: torch.zeros(2, 3, dtype=torch.int32).view(torch.complex32),
    "packed float4": lambda: torch.zeros(2, 4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
    "uint3": lambda: torch.zeros(4, dtype=torch.uint8).view(torch.uint3),
    "int64": lambda: torch.arange(6).reshape(2, 3),
    "scalar": lambda: torch.tensor(3.0),
    "empty": lambda: torch.zeros(0, 3),
    "zero tensor": lambda: torch._efficientzerotensor((2, 3)),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2, 3)),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "compressed sparse": lambda: torch.eye(3).to_sparse_csr(),
    "jagged": lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged),
    "meta": lambda: torch.ones(2, device="meta"),
    "quantised": lambda: torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]),
}
ARRAYS: dict[str, Callable[[], Any]] = {
    "contiguous": lambda: np.arange(6.0).reshape(2, 3),
    "Fortran order": lambda: np.arange(6.0).reshape(2, 3).T,
    "reversed": lambda: np.arange(6.0)[::-1],
    "read-only": lambda: _read_only(np.arange(6.0)),
    "broadcast": lambda: np.broadcast_to(np.arange(3.0), (2, 3)),
    "big-endian": lambda: np.arange(6, dtype=">i4"),
    "misaligned": lambda: np.frombuffer(bytearray(33), dtype="f8", offset=1),
    "bool": lambda: np.array([True, False]),
    "bfloat16": lambda: np.ones(3, ml_dtypes.bfloat16),
    "float4": lambda: np.ones(4, ml_dtypes.float4_e2m1fn),
    "int4": lambda: np.ones(4, ml_dtypes.int4),
    "text": lambda: np.array(["a"]),
    "dates": lambda: np.array(["2020"], "M8[Y]"),
    "masked": lambda: np.ma.masked_array([1.0], [True]),
    "objects": lambda: np.array([None]),
    "view of a tensor": lambda: ferry.to_numpy(torch.arange(6.0).reshape(2, 3)),
    "scalar of NumPy": lambda: np.float32(3),
    "bytes": lambda: b"abc",
    "bytearray": lambda: bytearray(8),
    "our offer": lambda: ferry.to_dlpack(np.arange(3.0)),
    "strided offer": lambda: ferry.to_dlpack(np.arange(12.0).reshape(3, 4)[:, ::2]),
    "no array": lambda: object(),
}
CASES = {
    **{f"tensor, {kind}": (make, "numpy") for kind, make in TENSORS.items()},
    **{f"array, {kind}": (make, "numpy") for kind, make in ARRAYS.items()},
    **{f"tensor, {kind}, to torch": (make, "torch") for kind, make in TENSORS.items()},
    **{f"array, {kind}, to torch": (make, "torch") for kind, make in ARRAYS.items()},
}
TO_NUMPY = [
    {"copy": copy, "dtype": dtype, "order": order}
    for copy, dtype, order in itertools.product(
        (None, True, False, "lazy"), (None, "float32", "numpy", "bits"), ("K", "C", "F")
    )
]
TO_TORCH = [
    {"copy": copy, "dtype": dtype, "readonly": readonly}
    for copy, dtype, readonly in itertools.product(
        (None, True, False), (None, "float32", "bits"), ("copy", "share", "raise")
    )
]
TO_TORCH_FROM_TENSOR: list[dict[str, Any]] = [{}, {"copy": False}, {"readonly": "share"}]

pytestmark = pytest.mark.filterwarnings("ignore:.*(Sparse|nested tensors|quantize).*:UserWarning")


def _combinations(x: Any, to: str) -> list[dict[str, Any]]:
    if to == "numpy":
        return TO_NUMPY
    return TO_TORCH_FROM_TENSOR if isinstance(x, torch.Tensor) else TO_TORCH


@pytest.mark.parametrize("case", CASES)
def test_plan_and_refusal_are_those_of_the_conversion(case):
    make, to = CASES[case]
    convert = ferry.to_numpy if to == "numpy" else ferry.from_numpy
    x = make()
    for arguments in _combinations(x, to):
        explained = ferry.explain(x, to=to, **arguments)
        if explained.plan is None:
            assert explained.refusal == str(refusal_of(lambda arguments=arguments: convert(x, **arguments)))
        else:
            assert explained.refusal == ""
            assert explained.plan == ferry.plan(x, to=to, **arguments)


@pytest.mark.parametrize("case", CASES)
def test_the_text_is_stable_and_at_most_a_hundred_columns_wide(case):
    make, to = CASES[case]
    x = make()
    for arguments in _combinations(x, to):
        explained = ferry.explain(x, to=to, **arguments)
        text = str(explained)
        assert max(map(len, text.splitlines())) <= 100
        assert text == str(explained) == str(ferry.explain(x, to=to, **arguments))
        assert " at 0x" not in text
        words = " ".join(text.split())
        for step in explained.steps:
            assert step.question in words
            assert " ".join(step.consequence.split()) in words
        assert len(explained.steps) == 6
        end = explained.refusal or str(explained.plan)
        assert " ".join(end.split()) in words


@pytest.mark.parametrize("case", CASES)
def test_every_answer_agrees_with_what_happens(case):
    make, to = CASES[case]
    convert = ferry.to_numpy if to == "numpy" else ferry.from_numpy
    x = make()
    for arguments in _combinations(x, to):
        x = make()  # a snapshot of the last round would change the plan
        explained = ferry.explain(x, to=to, **arguments)
        answers = [step.answer for step in explained.steps]
        texts = [f"{step.answer} {step.consequence}" for step in explained.steps]
        grad = isinstance(x, torch.Tensor) and x.requires_grad
        assert answers[GRAPH] == ("yes" if grad else "no")
        device = str(x.device) if isinstance(x, torch.Tensor) else "cpu"
        assert answers[DEVICE] == ("yes" if device == "cpu" else f"no, on {device}")
        planned = explained.plan
        if planned is None:
            assert answers[LAYOUT] == answers[DTYPE] == "it is not converted"
            continue
        result = convert(x, **arguments)
        copied = planned.copies > 0
        assert ("packs" in texts[LAYOUT]) <= copied
        assert answers[LAYOUT].startswith("yes") != copied
        assert (answers[LAYOUT] == 'no, order="F" was asked for') <= (arguments.get("order") == "F" and copied)
        assert ("ml_dtypes" in texts[DTYPE]) <= (to == "numpy" and result.dtype.name == planned.dtype)
        assert planned.dtype in texts[DTYPE]
        own = str(getattr(x, "dtype", planned.dtype)).removeprefix("torch.")
        changes = own != planned.dtype and not isinstance(x, np.ndarray)
        assert ("becomes" in answers[DTYPE] or "is read as" in answers[DTYPE]) >= changes
        assert ("is read as" in answers[DTYPE]) <= (arguments.get("dtype") == "bits")
        if to == "numpy":
            assert (", so the array is read-only" in texts[GRAPH]) <= (not result.flags.writeable)
            assert ("private" in texts[GRAPH]) <= result.flags.writeable
            back = ferry.from_numpy(result) if isinstance(x, torch.Tensor) else None
            if back is not None and result.size:
                shares = back.data_ptr() == result.ctypes.data
                assert ("private copy" in texts[BACK]) != shares
                assert ("alias" in texts[BACK]) == (shares and not copied)
        else:
            assert "read-only" not in texts[GRAPH]
            assert "writable()" not in str(explained)


@pytest.mark.parametrize("kind", [kind for kind in ARRAYS if kind not in ("no array", "scalar of NumPy")])
def test_to_torch_the_chart_speaks_of_writable_tensors(kind):
    x = ARRAYS[kind]()
    for arguments in TO_TORCH:
        explained = ferry.explain(x, to="torch", **arguments)
        change = explained.steps[CHANGE]
        if explained.plan is None:
            continue
        result = ferry.from_numpy(x, **arguments)
        assert "writable()" not in change.consequence
        assert "read-only; pass copy=True" not in change.consequence
        if not explained.plan.shares_memory:
            assert "stays in it" in change.consequence
        elif explained.plan.path == "view" and isinstance(x, np.ndarray) and not x.flags.writeable:
            assert "never write" in change.consequence
        else:
            assert change.answer.startswith("writes reach the array")
            assert "copy=True" in change.consequence
            assert result.numel() == 0 or ferry.shares_memory(result, x)


def test_a_copy_asked_for_is_private_in_both_directions():
    assert "private" in ferry.explain(np.ones(3), to="torch", copy=True).steps[CHANGE].consequence
    assert "private" in ferry.explain(torch.ones(3), copy=True).steps[CHANGE].consequence
    leaf = torch.ones(3, requires_grad=True)
    assert "read-only" not in ferry.explain(leaf, copy=True).steps[GRAPH].consequence


def test_a_destination_is_named_as_such():
    explained = ferry.explain(torch.ones(3), out=np.zeros(3))
    assert explained.steps[CHANGE].answer == "it is your own array"
    assert "destination" in explained.steps[LAYOUT].answer
    assert "your array's memory" in explained.steps[BACK].consequence


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (lambda: np.arange(3.0)[::-1], "no, negative strides"),
        (lambda: np.broadcast_to(np.ones(1), (3,)).copy()[:1].repeat(3)[::-1], "no, negative strides"),
        (lambda: np.lib.stride_tricks.as_strided(np.zeros(3), (2, 2), (8, 8)), "no, elements overlap"),
        (lambda: np.frombuffer(bytearray(33), dtype="f8", offset=1), "no, misaligned"),
        (lambda: np.ones(4, ml_dtypes.float4_e2m1fn), "no, two elements go into a byte"),
    ],
    ids=["reversed", "repeated and reversed", "overlapping", "misaligned", "float4"],
)
def test_the_layout_that_costs_the_copy_is_named(make, answer):
    assert ferry.explain(make(), to="torch").steps[LAYOUT].answer == answer


def test_byte_order_is_no_cast():
    step = ferry.explain(np.arange(3, dtype=">i4"), to="torch").steps[DTYPE]
    assert step.answer == "yes: int32"
    assert "swapped" in step.consequence


@pytest.mark.parametrize("device", [CPU, CUDA, 3, 99])
def test_a_producer_is_asked_once_and_its_device_is_told(device):
    made = CountingCapsule(device=device, data=None if device in (CPU, 3) else 0x10)
    explained = ferry.explain(Producer(made, device))
    host = device in (CPU, 3)
    assert explained.steps[DEVICE].answer == (
        "yes" if host else {CUDA: "no, on cuda:0", 99: "no, on dlpack99:0"}[device]
    )
    assert (explained.plan is None) != host
    if host:
        assert made.deletions == 1
    else:
        del made.capsule


def test_a_producer_that_tells_nothing_is_explained_by_its_refusal():
    class Silent:
        def __dlpack_device__(self) -> Any:
            raise KeyError("no device")

        def __dlpack__(self, **_: Any) -> Any:
            raise AssertionError

    explained = ferry.explain(Silent())
    assert "no device" in explained.refusal
    assert explained.steps[DEVICE].answer.startswith("no")


def test_inside_a_transform_the_refusal_is_explained():
    def function(x: torch.Tensor) -> torch.Tensor:
        assert "vmap" in ferry.explain(x).refusal
        return x

    assert torch.func.vmap(function)(torch.ones(2)).tolist() == [1, 1]


@pytest.mark.parametrize("nest", [[torch.ones(1)], {"a": np.ones(1)}, (1, 2)], ids=["list", "dict", "tuple"])
def test_a_nest_is_refused_naming_plan(nest):
    with pytest.raises(ferry.ArgumentError, match=r"plan\(x\)"):
        ferry.explain(nest)


def test_arguments_that_contradict_each_other_are_not_explained_but_raised():
    for arguments in ({"copy": "maybe"}, {"order": "Z"}, {"copy": False, "out": np.ones(1)}, {"to": "jax"}):
        with pytest.raises(ferry.ArgumentError):
            ferry.explain(torch.ones(1), **arguments)
    with pytest.raises(ferry.ArgumentError):
        ferry.explain(torch.ones(1), to="torch", copy=True)


def test_nothing_is_converted_by_explaining():
    x, out = torch.ones(3), np.zeros(3)
    ferry.explain(x, out=out)
    ferry.explain(x, copy="lazy")
    ferry.explain(np.ones(3)[::-1], to="torch")
    assert not out.any()
    assert x._version == 0
    assert not torch._C._is_cow_tensor(x)
