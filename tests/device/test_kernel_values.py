"""Values where kernels pack, cast, store and gather, against NumPy on the same values, under every schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import kernels, leases_in_use, settle, until
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import TableArray, on_device

DTYPES = [np.dtype(code) for code in "?bBhHiIqQefdFD"] + [
    np.dtype(getattr(ml_dtypes, name))
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e8m0fnu")
]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda x: x,
    "transposed": lambda x: x.T,
    "every other element": lambda x: x[:, :, ::2],
    "backwards in steps": lambda x: x[:, ::-2, ::-3],
    "inner block": lambda x: x[1:, 1:9, 2:11],
    "broadcast": lambda x: np.broadcast_to(x[:1], (5, *x.shape[1:])),
    "with axes in another order": lambda x: x[:, :, ::2].transpose(1, 2, 0),
}
WAYS: dict[str, Callable[[Any], Any]] = {
    "stored": lambda x: ferry.to_numpy(x),
    "packed": lambda x: ferry.to_numpy_async(x, snapshot=True).result(),
    "through the ring": lambda x: ferry.to_numpy(x, pinned=False),
    "in a nest": lambda x: ferry.to_numpy([x, TableArray(np.arange(3)), TableArray(np.arange(4))])[0],
}


@pytest.fixture(autouse=True)
def with_kernels(fake: FakeCuda) -> Iterator[None]:
    """Kernels are there."""
    with kernels():
        yield


def sample(dtype: np.dtype[Any]) -> Any:
    rng = np.random.default_rng(11)
    if dtype == np.bool_:
        return rng.integers(0, 2, (3, 10, 12)).astype(bool)
    return np.frombuffer(rng.bytes(360 * dtype.itemsize), dtype).reshape(3, 10, 12)


def same_bits(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_every_dtype_arrives_bit_by_bit(any_schedule: FakeCuda, layout: Any, way: Any):
    for dtype in DTYPES:
        base = sample(dtype)
        expected = layout(base)
        assert same_bits(way(on_device(TableArray, base, expected)), expected), dtype


@pytest.mark.parametrize(
    ("source", "wanted"),
    [("f", "e"), ("d", "f"), ("d", "e"), ("q", "i"), ("f", "i"), ("i", "f"), ("d", "?"), ("h", "b")],
    ids=lambda code: np.dtype(code).name,
)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_casts_on_the_device_are_numpys(any_schedule: FakeCuda, layout: Any, source: str, wanted: str):
    base = (np.arange(360) % 100 - 20).astype(source).reshape(3, 10, 12)
    expected = layout(base).astype(wanted)
    for arguments in ({}, {"pinned": False}, {"order": "C"}):
        array = ferry.to_numpy(on_device(TableArray, base, layout(base)), dtype=wanted, casting="unsafe", **arguments)
        assert same_bits(array, expected)
    out = np.empty(expected.shape, wanted)
    ferry.to_numpy(on_device(TableArray, base, layout(base)), out=out, casting="unsafe")
    assert same_bits(out, expected)


def test_small_floats_are_made_on_the_device(any_schedule: FakeCuda):
    base = np.linspace(-300, 300, 720, dtype=np.float32).reshape(24, 30)
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        dtype = np.dtype(getattr(ml_dtypes, name))
        array = ferry.to_numpy(on_device(TableArray, base, base.T), dtype=dtype)
        assert same_bits(array, base.T.astype(dtype))


def test_a_copy_is_the_value_at_the_call(any_schedule: FakeCuda):
    base = np.arange(4096, dtype=np.int32).reshape(64, 64)
    x = on_device(TableArray, base, base[:, ::2])
    transfer = ferry.to_numpy_async(x)
    x.write_later(np.full(x.shape, -1, np.int32))
    assert np.array_equal(transfer.result(), base[:, ::2])


@pytest.mark.parametrize("call", ["cuLaunchKernel", "cuMemcpyDtoHAsync", "cuStreamWaitEvent"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_failing_call_loses_nothing(fake: FakeCuda, call: str, nth: int):
    base = np.arange(1 << 20, dtype=np.int32).reshape(1024, 1024)
    x = on_device(TableArray, base, base[:, ::2])
    nest = [TableArray(np.arange(10)) for _ in range(5)]
    before, finished = leases_in_use(), []
    for convert in (
        lambda: ferry.to_numpy(x),
        lambda: ferry.to_numpy_async(x).result(),
        lambda: ferry.to_numpy(x, pinned=False),
        lambda: ferry.to_numpy(nest),
    ):
        fake.fault(call, 2, nth)
        with suppress(ferry.DeviceError):
            convert()
            finished.append(convert)
        fake.clear_faults()
        settle(fake)
    assert len(finished) < 4
    assert until(lambda: leases_in_use() <= before or settle(fake) is not None)
    assert np.array_equal(ferry.to_numpy(x), base[:, ::2])
