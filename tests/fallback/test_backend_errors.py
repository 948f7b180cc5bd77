"""What a backend refuses or fails at becomes an error in three parts; nothing is left, and the next call works."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers import torch_dtypes as dtypes
from helpers.array_oracle import array_of, assert_same
from helpers.plans import refusal_of
from helpers.remote_device import Remote


def fallen() -> RuntimeError:
    """As torch's own: the words, then a back-trace."""
    return RuntimeError("the device fell off the bus\nException raised from remote.cpp:42\nframe #0: ...")


READERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "to_numpy": ferry.to_numpy,
    "to_numpy of a private copy": lambda x: ferry.to_numpy(x, copy=True),
    "to_numpy of a nest": lambda x: ferry.to_numpy({"a": [x]}),
    "to_numpy into a destination": lambda x: ferry.to_numpy(x, out=np.zeros((2, 3), np.float32)),
    "to_python": ferry.to_python,
    "stack": lambda x: ferry.stack([x], to="numpy"),
    "from_dlpack": lambda x: ferry.from_dlpack(x, to="numpy", copy=None),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
def test_a_failing_copy_to_the_host_names_tensor_device_and_what_the_backend_said(
    remote: Remote, read: Callable[[torch.Tensor], Any]
) -> None:
    x = torch.ones(2, 3).to("remote")
    remote.fails_with = fallen()
    error = refusal_of(lambda: read(x))
    assert isinstance(error, ferry.DeviceError)
    assert "a (2, 3) torch.float32 tensor on device remote:0" in error.given
    assert error.why == "its backend cannot copy it to the host (RuntimeError: the device fell off the bus)"
    assert isinstance(error.__cause__, RuntimeError)
    remote.behave()
    assert ferry.to_numpy(x).tolist() == [[1, 1, 1], [1, 1, 1]]


def test_a_check_whose_device_fails_is_no_failed_check(remote: Remote) -> None:
    x = torch.ones(2, 3).to("remote")
    remote.fails_with = fallen()
    error = refusal_of(lambda: ferry.check(x, finite=True))
    assert isinstance(error, ferry.DeviceError)
    assert not isinstance(error, ferry.CheckError)
    assert "the device fell off the bus" in error.why


def test_a_failed_destination_is_not_half_written(remote: Remote) -> None:
    x, out = torch.ones(2, 3).to("remote"), np.full((2, 3), 7.0, np.float32)
    remote.fails_with = fallen()
    refusal_of(lambda: ferry.to_numpy([x], out=[out]))
    assert out.tolist() == [[7, 7, 7], [7, 7, 7]]


@pytest.mark.parametrize("error", [TypeError("no"), NotImplementedError("no"), ValueError("no"), AssertionError("no")])
def test_whatever_a_backend_raises_is_wrapped_both_ways(remote: Remote, error: Exception) -> None:
    x = torch.ones(2).to("remote")
    remote.fails_with = error
    calls: list[Callable[[], Any]] = [
        lambda: ferry.to_numpy(x),
        lambda: ferry.from_numpy(np.ones(2), device="remote"),
    ]
    for call in calls:
        found = refusal_of(call)
        assert type(found) is ferry.DeviceError
        assert f"({type(error).__name__}: no)" in found.why


def test_an_interrupt_is_not_swallowed(remote: Remote) -> None:
    x = torch.ones(2).to("remote")
    remote.fails_with = KeyboardInterrupt()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        ferry.to_numpy(x)


@pytest.mark.parametrize(
    ("name", "instead"),
    [("float64", "float32"), ("complex128", "complex64"), ("uint64", "int64"), ("int8", "int64"), ("bool", "uint8")],
)
def test_f049_a_dtype_that_the_device_lacks_is_named_with_one_that_it_takes(
    remote: Remote, name: str, instead: str
) -> None:
    array = np.ones(3, name)
    remote.lacks = {getattr(torch, name)}
    error = refusal_of(lambda: ferry.from_numpy(array, device="remote"))
    assert isinstance(error, ferry.DTypeError)
    assert error.given == f"a (3,) torch.{name} tensor for device remote"
    assert f"TypeError: Cannot make a remote tensor of torch.{name}, which the device has no units for" in error.why
    assert error.instead == f'pass dtype="{instead}", which it takes'
    sent = ferry.from_numpy(array, device="remote", dtype=instead)
    assert sent.dtype == getattr(torch, instead)
    assert sent.cpu().tolist() == [1, 1, 1]


def test_f049_the_remedy_is_one_that_this_device_takes(remote: Remote) -> None:
    remote.lacks = {torch.float64, torch.float32}
    error = refusal_of(lambda: ferry.stack([np.ones(3)], device="remote"))
    assert error.instead == 'pass dtype="float16", which it takes'


def test_a_device_that_takes_nothing_is_not_blamed_on_the_dtype(remote: Remote) -> None:
    remote.lacks = set(dtypes.ALL)
    error = refusal_of(lambda: ferry.from_numpy(np.ones(3), device="remote"))
    assert isinstance(error, ferry.DeviceError)
    assert "doctor" in error.instead


def test_too_little_memory_is_not_blamed_on_the_dtype(remote: Remote) -> None:
    remote.capacity_nbytes = 64
    error = refusal_of(lambda: ferry.from_numpy(np.ones(1000), device="remote"))
    assert isinstance(error, ferry.DeviceError)
    assert error.given == "a (1000,) torch.float64 tensor for device remote"
    assert error.why.endswith("(RuntimeError: remote out of memory: tried to allocate 8000 bytes)")
    assert ferry.from_numpy(np.ones(2), device="remote").cpu().tolist() == [1, 1]


def test_a_device_that_torch_does_not_know_is_refused_before_any_copy(remote: Remote) -> None:
    copies = remote.copies
    error = refusal_of(lambda: ferry.from_numpy(np.ones(2), device="remotely"))
    assert isinstance(error, ferry.DeviceError)
    assert "device='remotely'" in error.given
    assert remote.copies == copies


ODD = [dtype for dtype in dtypes.CONVERTIBLE if dtype not in dtypes.NUMPY_HAS]


@pytest.mark.parametrize("dtype", ODD, ids=dtypes.name_of)
def test_a_dtype_without_a_copy_kernel_is_read_by_its_bits(remote: Remote, dtype: torch.dtype) -> None:
    host = dtypes.sample(dtype)
    device = host.to("remote")
    remote.cannot_copy = {dtype}
    assert_same(ferry.to_numpy(device.transpose(0, 1)), array_of(host.transpose(0, 1)))


@pytest.mark.parametrize("dtype", dtypes.QUANTIZED, ids=dtypes.name_of)
def test_dtypes_that_no_array_holds_are_refused_as_on_the_host(remote: Remote, dtype: torch.dtype) -> None:
    copies = remote.copies
    on_host = refusal_of(lambda: ferry.to_numpy(torch.empty(2, 4, dtype=dtype)))
    on_device = refusal_of(lambda: ferry.to_numpy(torch._C._acc.create_empty_tensor((2, 4), dtype)))
    assert (type(on_device), str(on_device)) == (type(on_host), str(on_host))
    assert remote.copies == copies


def test_memory_that_was_taken_away_is_refused_without_touching_the_device(remote: Remote) -> None:
    emptied = torch._C._acc.create_empty_tensor((2, 3), torch.float32)
    assert emptied.untyped_storage().nbytes() == 0
    copies = remote.copies
    for call in (ferry.to_numpy, ferry.plan):
        error = refusal_of(lambda call=call: call(emptied))
        assert isinstance(error, ferry.LayoutError)
        assert "storage holds 0 bytes" in error.given
    assert remote.copies == copies


WRONG_OUT: dict[str, tuple[Any, type[ferry.FerryError]]] = {
    "of another shape": (lambda: np.zeros((3, 2), np.float32), ferry.BufferMismatchError),
    "read-only": (lambda: np.broadcast_to(np.float32(0), (2, 3)), ferry.ReadOnlyError),
    "of a dtype that the cast does not reach": (lambda: np.zeros((2, 3), np.int32), ferry.DTypeError),
    "that is a list": (lambda: [0.0], ferry.ArgumentError),
    "whose elements overlap": (
        lambda: np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (2, 3), (4, 4)),
        ferry.BufferMismatchError,
    ),
}


@pytest.mark.parametrize(("make", "kind"), WRONG_OUT.values(), ids=WRONG_OUT.keys())
def test_a_wrong_destination_is_refused_before_the_device_is_asked(
    remote: Remote, make: Any, kind: type[ferry.FerryError]
) -> None:
    x = torch.ones(2, 3).to("remote")
    out = make()
    copies = remote.copies
    for convert in (ferry.to_numpy, ferry.plan):
        assert isinstance(refusal_of(lambda convert=convert: convert(x, out=out)), kind)
    assert remote.copies == copies


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize("fails", [False, True], ids=["that works", "that fails"])
def test_no_call_keeps_the_device_tensor_or_its_memory(
    remote: Remote, read: Callable[[torch.Tensor], Any], fails: bool
) -> None:
    gc.collect()
    allocations = remote.allocations
    x = torch.ones(2, 3).to("remote")
    alive = weakref.ref(x)
    remote.fails_with = fallen() if fails else None
    result = None
    try:
        result = read(x)
    except ferry.DeviceError:
        assert fails
    remote.behave()  # it holds the error, and that its traceback
    del x
    gc.collect()
    assert alive() is None
    assert remote.allocations == allocations
    if isinstance(result, np.ndarray):
        assert result.ravel().tolist() == [1] * 6


@pytest.mark.parametrize("fails", [False, True], ids=["that works", "that fails"])
def test_sending_keeps_neither_the_array_nor_device_memory(remote: Remote, fails: bool) -> None:
    gc.collect()
    allocations, array = remote.allocations, np.ones(1000)
    alive = weakref.ref(array)
    remote.capacity_nbytes = 64 if fails else None
    try:
        ferry.from_numpy(array, device="remote")
    except ferry.DeviceError:
        assert fails
    del array
    gc.collect()
    assert alive() is None
    assert remote.allocations == allocations
