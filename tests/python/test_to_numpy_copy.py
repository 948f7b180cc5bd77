"""``copy=`` and ``order=``: what shares, what is writable, and that a copy is the value at the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.plans import convert_as_planned, refusal_of, refused_as_planned
from helpers.subprocess import stdout_of

SOURCES: dict[str, Callable[[], torch.Tensor]] = {
    "a matrix": lambda: torch.arange(6.0).reshape(2, 3),
    "a transposed matrix": lambda: torch.arange(6.0).reshape(3, 2).T,
    "every other column": lambda: torch.arange(12.0).reshape(2, 6)[:, ::2],
    "an expanded row": lambda: torch.arange(3.0).expand(2, 3),
    "a scalar": lambda: torch.tensor(3.0),
    "nothing": lambda: torch.empty(0, 3),
    "a parameter": lambda: torch.nn.Parameter(torch.ones(2, 2)),
    "half of one": lambda: torch.ones(4, dtype=torch.bfloat16)[2:],
    "an inference tensor": lambda: torch.inference_mode()(torch.ones)(3),
    "another's memory": lambda: torch.frombuffer(bytearray(16), dtype=torch.float32),
}
MARKED: dict[str, Callable[[], torch.Tensor]] = {
    "a conjugate view": lambda: torch.tensor([1 + 2j, 3j]).conj(),
    "a negative view": lambda: torch.tensor([1 + 2j, 3j]).conj().imag,
    "complex32": lambda: torch.zeros(2, dtype=torch.int32).view(torch.complex32),
    "packed float4": lambda: torch.zeros(2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
    "a zero tensor": lambda: torch._efficientzerotensor((2, 3)),
}
every_source = pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
any_source = pytest.mark.parametrize("make", [*SOURCES.values(), *MARKED.values()], ids=[*SOURCES, *MARKED])
marked_source = pytest.mark.parametrize("make", MARKED.values(), ids=MARKED)


@every_source
def test_none_shares_memory_and_is_read_only(make: Callable[[], torch.Tensor]) -> None:
    x = make()
    array = convert_as_planned(x)
    assert ferry.plan(x).shares_memory
    assert not array.flags.writeable


@every_source
def test_a_shared_view_cannot_be_made_writable(make: Callable[[], torch.Tensor]) -> None:
    x = make()
    for view in (ferry.to_numpy(x), ferry.to_numpy(x)[...], ferry.to_numpy(x, copy="lazy")[...].T):
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True
    with pytest.raises(ValueError, match="read-only"):
        ferry.to_numpy(x)[...] = 1


@any_source
def test_promise_3_true_is_private_and_writable(make: Callable[[], torch.Tensor]) -> None:
    x = make()
    before = ferry.to_numpy(x, copy=True).tobytes()
    array = convert_as_planned(x, copy=True)
    assert array.flags.writeable
    array[...] = 1
    assert ferry.to_numpy(x).tobytes() == before


@any_source
def test_promise_3_none_is_read_only_whether_it_shares_or_copies(make: Callable[[], torch.Tensor]) -> None:
    for arguments in ({}, {"dtype": "complex128"}, {"order": "F"}, {"order": "C"}):
        assert not convert_as_planned(make(), **arguments).flags.writeable


@every_source
def test_false_shares(make: Callable[[], torch.Tensor]) -> None:
    x = make()
    assert ferry.plan(x, copy=False).shares_memory
    assert np.array_equal(convert_as_planned(x, copy=False).astype("f4"), x.detach().float().numpy())


@marked_source
def test_false_refuses_naming_the_cause(make: Callable[[], torch.Tensor]) -> None:
    error = refused_as_planned(make(), copy=False)
    assert isinstance(error, ferry.CopyRequiredError)
    assert isinstance(error, BufferError)
    assert "copy=None" in error.instead


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [({"dtype": "float64"}, "dtype"), ({"order": "F"}, "memory order"), ({"dtype": "float64", "order": "F"}, "and")],
    ids=["for a cast", "for an order", "for both"],
)
def test_false_refuses_what_needs_a_copy(arguments: Any, cause: str) -> None:
    error = refused_as_planned(torch.ones(2, 3), copy=False, **arguments)
    assert isinstance(error, ferry.CopyRequiredError)
    assert cause in error.why


def test_a_view_is_live() -> None:
    x = torch.zeros(3)
    array = ferry.to_numpy(x)
    x.add_(1)
    assert array.tolist() == [1, 1, 1]


@pytest.mark.parametrize("copy", [True, "lazy"])
@every_source
def test_promise_2_a_copy_is_the_value_at_the_call(make: Callable[[], torch.Tensor], copy: Any) -> None:
    x = make()
    expected = x.detach().float().numpy().copy()
    array = convert_as_planned(x, copy=copy)
    with torch.inference_mode(x.is_inference()), torch.no_grad():
        writable = x.as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
        writable.fill_(9)
    assert np.array_equal(array.astype("f4"), expected)


@pytest.mark.parametrize("bad", ["yes", 1, 0, np.True_, "LAZY", "deep"], ids=repr)
def test_another_word_for_copy_is_refused(bad: Any) -> None:
    assert isinstance(refused_as_planned(torch.ones(2), copy=bad), ferry.ArgumentError)


@pytest.mark.parametrize("bad", ["k", "X", 1, "", b"C"], ids=repr)
def test_another_word_for_order_is_refused(bad: Any) -> None:
    assert isinstance(refused_as_planned(torch.ones(2), order=bad), ferry.ArgumentError)


def test_keeping_the_order_of_a_channels_last_batch_copies_one_block() -> None:
    x = torch.arange(120.0).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last)
    array = convert_as_planned(x, copy=True)
    assert array.strides == tuple(4 * step for step in x.stride())
    assert np.array_equal(array, x.numpy())


def test_a_misaligned_tensor_is_read_right_and_copied_aligned() -> None:
    raw = bytearray(1) + bytearray(np.arange(4, dtype=np.float32).tobytes())
    x = torch.frombuffer(raw, dtype=torch.float32, offset=1)
    assert ferry.to_numpy(x).tolist() == [0, 1, 2, 3]
    copied = ferry.to_numpy(x, copy=True)
    assert copied.flags.aligned
    assert copied.tolist() == [0, 1, 2, 3]


def test_bool_bytes_other_than_zero_and_one_are_normalised_by_a_copy() -> None:
    x = torch.tensor([0, 1, 2, 255], dtype=torch.uint8).view(torch.bool)
    assert ferry.to_numpy(x, copy=True).view(np.uint8).tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("ndim", [63, 64])
def test_as_many_axes_as_numpy_has(ndim: int) -> None:
    assert convert_as_planned(torch.ones([1] * ndim)).ndim == ndim


def test_more_axes_than_numpy_has_are_refused() -> None:
    assert isinstance(refused_as_planned(torch.ones([1] * 65)), ferry.LayoutError)


def test_a_stream_for_host_memory_is_refused() -> None:
    error = refused_as_planned(torch.ones(2), stream=1)
    assert isinstance(error, ferry.StreamError)
    assert isinstance(error, ValueError)


def test_pinned_memory_that_is_not_there_is_refused() -> None:
    assert isinstance(refused_as_planned(torch.ones(2), pinned=True), ferry.DeviceError)
    assert isinstance(refused_as_planned(torch.ones(2), pinned="yes"), ferry.ArgumentError)
    assert ferry.to_numpy(torch.ones(2), pinned=False).tolist() == [1, 1]


def test_arguments_are_checked_as_python_does() -> None:
    for call in (
        lambda: ferry.to_numpy(),
        lambda: ferry.to_numpy(torch.ones(1), None),
        lambda: ferry.to_numpy(torch.ones(1), bogus=1),
        lambda: ferry.from_numpy(),
        lambda: ferry.from_numpy(np.ones(1), bogus=1),
    ):
        with pytest.raises(TypeError):
            call()
    assert isinstance(refusal_of(lambda: ferry.plan(torch.ones(1), bogus=1)), ferry.ArgumentError)


def test_the_warning_about_ml_dtypes_comes_once_and_only_when_nobody_chose_the_dtype() -> None:
    script = """
import warnings, torch, tensorferry as ferry
x = torch.ones(2).bfloat16()
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for dtype in ("numpy", "bits", "float32", torch.bfloat16):
        ferry.to_numpy(x, dtype=dtype)
    assert not seen, seen
    for _ in range(3):
        ferry.to_numpy(x)
print([w.category.__name__ for w in seen], 'dtype="numpy"' in str(seen[0].message))
"""
    assert stdout_of(script) == "['ExtensionDTypeWarning'] True"
