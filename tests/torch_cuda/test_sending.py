"""Arrays on their way to a device: with and without kernels of ours, into tensors of any layout, as planned."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.device_path import kernels

SCATTERED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dense": lambda x: x[:, :100].contiguous(),
    "transposed": lambda x: x[:, :100].t().contiguous().t(),
    "every other element": lambda x: x[:, ::2],
    "rows with gaps": lambda x: x[:, 3:103],
    "columns with gaps": lambda x: x.t().contiguous().t()[:, ::2],
}
SOURCES: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "as made": lambda a: a,
    "transposed": lambda a: np.asfortranarray(a),
    "every other row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "repeated": lambda a: np.broadcast_to(a[:1], a.shape),
    "bytes swapped": lambda a: a.astype(a.dtype.newbyteorder()),
}
with_and_without = pytest.mark.parametrize("with_kernels", [True, False], ids=["kernels", "no kernels"])


@pytest.fixture
def sending(cuda: Any) -> Any:
    """The environment, with the device in use."""
    cuda.settled(torch.zeros(()))
    return cuda


def used(with_kernels: bool) -> Any:
    return kernels() if with_kernels else nullcontext()


def numbers(rows: int = 300, columns: int = 100) -> Any:
    return (np.arange(rows * columns) % 251).astype(np.float32).reshape(rows, columns)


def counts(cuda: Any) -> tuple[int, int]:
    made = cuda.fake.call_counts()
    return int(made["cuLaunchKernel"]), int(made["cuMemcpyHtoDAsync"])


@with_and_without
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("layout", SCATTERED.values(), ids=SCATTERED)
def test_every_layout_fills_every_other(any_schedule: Any, layout: Any, source: Any, with_kernels: bool):
    any_schedule.settled(torch.zeros(()))
    given = source(numbers())
    expected = given.astype(np.float32)
    base = torch.full((300, 200), -7.0).to("cuda")
    out = layout(base)
    with used(with_kernels):
        assert ferry.to_device(given, "cuda", out=out) is out
        if given.flags.writeable:
            given[...] = -1  # it may be changed as soon as the call returns
        assert np.array_equal(ferry.to_numpy(out), expected)
        around = ferry.to_numpy(base)
    if out.untyped_storage().data_ptr() == base.untyped_storage().data_ptr():
        inside = np.zeros(around.shape, bool)
        inside_of = torch.from_numpy(inside)
        layout(inside_of)[...] = True
        assert (around[~inside] == -7).all()


@with_and_without
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("uint8", "float32"),
        ("int16", "int64"),
        ("bool", "float16"),
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("float64", "float32"),
        ("float32", "bfloat16"),
        ("float32", "complex64"),
    ],
)
def test_casts_give_what_numpy_gives(sending: Any, given: str, wanted: str, with_kernels: bool):
    named = {"bfloat16": ml_dtypes.bfloat16}
    source = (np.arange(300 * 200).reshape(300, 200) % 97).astype(named.get(given, given))
    expected = source.astype(named.get(wanted, wanted))
    with used(with_kernels):
        for out in (None, torch.zeros((300, 400), dtype=getattr(torch, wanted), device="cuda")[:, ::2]):
            got = ferry.to_device(source, "cuda", out=out, dtype=wanted)
            assert np.array_equal(ferry.to_numpy(got), expected)


def test_a_scattered_destination_is_one_copy_and_one_kernel_and_no_copy_of_torch(sending: Any):
    base = torch.zeros((300, 200), device="cuda")
    with kernels():
        ferry.to_device(numbers(), "cuda", out=base[:, 1::2])
        sending.fake.drain()
        sending.fake.clear_trace()
        before = base._version
        ferry.to_device(numbers(), "cuda", out=base[:, ::2])
        assert counts(sending) == (1, 1)
        assert sending.fake.call_counts()["cuMemcpyDtoDAsync"] == 0
        assert base._version > before


def test_autograd_is_told_of_a_scattered_destination_without_kernels_too(sending: Any):
    base = torch.zeros((300, 200), device="cuda")
    before = base._version
    ferry.to_device(numbers(), "cuda", out=base[:, ::2])
    assert base._version > before


def test_a_widening_cast_sends_the_narrow_elements(sending: Any):
    source = (np.arange(1 << 18) % 256).astype(np.uint8)
    with kernels():
        ferry.to_device(source, "cuda", dtype="float32")
        sending.fake.drain()
        sending.fake.clear_trace()
        got = ferry.to_device(source, "cuda", dtype="float32")
        assert counts(sending)[0] == 1
        assert np.array_equal(ferry.to_numpy(got), source.astype(np.float32))


@with_and_without
@pytest.mark.parametrize("registered", [False, True], ids=["of ours", "registered"])
@pytest.mark.parametrize("nbytes", [1 << 20, 65 << 20], ids=["in staging", "larger than the ring"])
def test_pinned_sources_may_be_changed_when_the_call_returns(
    any_schedule: Any, nbytes: int, registered: bool, with_kernels: bool
):
    any_schedule.settled(torch.zeros(()))
    values = np.arange(nbytes // 4, dtype=np.float32)
    source = values.copy() if registered else ferry.empty_pinned(values.shape)
    source[:] = values
    with used(with_kernels), ferry.pinned(source) if registered else nullcontext():
        t = ferry.to_device(source, "cuda")
        source[:] = -1
        assert np.array_equal(ferry.to_numpy(t), values)


def _sources() -> dict[str, tuple[Callable[[], Any], dict[str, Any]]]:
    def pinned(nbytes: int) -> Any:
        array = ferry.empty_pinned(nbytes // 4)
        array[:] = np.arange(nbytes // 4)
        return array

    return {
        "dense": (numbers, {}),
        "transposed": (lambda: numbers().T, {}),
        "every other row": (lambda: numbers()[::2], {}),
        "narrowed": (lambda: numbers().astype(np.float64), {"dtype": "float32"}),
        "widened": (lambda: np.zeros((400, 300), np.uint8), {"dtype": "float32"}),
        "widened, small": (lambda: np.zeros(100, np.uint8), {"dtype": "float32"}),
        "widened, in parts": (lambda: np.zeros(5 << 20, np.uint8), {"dtype": "float32"}),
        "broadcast": (lambda: np.broadcast_to(numbers(1, 40_000), (30, 40_000)), {}),
        "pinned, small": (lambda: pinned(4096), {}),
        "pinned": (lambda: pinned(1 << 20), {}),
        "pinned, larger than the ring": (lambda: pinned(65 << 20), {}),
        "nothing": (lambda: np.zeros((0, 3), np.float32), {}),
    }


@with_and_without
@pytest.mark.parametrize("name", _sources())
def test_the_plan_of_from_numpy_to_a_device_is_what_happens(sending: Any, name: str, with_kernels: bool):
    make, arguments = _sources()[name]
    source = make()
    with used(with_kernels):
        ferry.from_numpy(source, device="cuda", copy=True, **arguments)
        sending.fake.drain()
        planned = ferry.plan(source, to="torch", device="cuda", copy=True, **arguments)
        sending.fake.clear_trace()
        got = ferry.from_numpy(source, device="cuda", copy=True, **arguments)
        launches, copies = counts(sending)
        assert launches == planned.launches
        assert (copies > 0) == (source.size > 0)
        assert ("unpack" in planned.path) == (launches > 0)
        assert ("dma" in planned.path) == (planned.waits == ("the device",))
        assert tuple(step * got.element_size() for step in got.stride()) == planned.strides
        assert np.array_equal(ferry.to_numpy(got), source.astype(arguments.get("dtype", source.dtype)))
    if with_kernels:
        unpacked = {"widened", "widened, in parts", "broadcast"}
        expected = "ring, unpack" if name in unpacked else {"pinned": "dma, unpack"}.get(name, "ring")
        assert planned.path == ("dma" if "larger" in name else expected)
