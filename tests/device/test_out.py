"""Destinations of a copy from a device: pinned, ordinary, strided, mapped from a file; and what is refused."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import RING_NBYTES, seen
from helpers.fake_cuda import FakeCuda, as_test
from helpers.fake_cuda_arrays import TableArray, on_device
from helpers.fake_cuda_driver import Driver

MIB = 1 << 20
ENQUEUING = ("cuMemcpy", "cuEventRecord", "cuMemHostRegister", "cuStreamWaitEvent", "cuMemAlloc")
Make = Callable[[int], Any]


@pytest.fixture
def registered(fake: FakeCuda) -> Iterator[Make]:
    """Makes bytes of pages that the caller has registered with the driver."""
    driver, made = Driver(), []

    def make(nbytes: int) -> Any:
        host = np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)[:nbytes]
        with as_test():
            driver("cuMemHostRegister", host.ctypes.data, nbytes, 3)
        made.append(host)
        return host

    yield make
    fake.drain()
    with as_test():
        for host in made:
            driver.code("cuMemHostUnregister", host.ctypes.data)


def values(nbytes: int) -> Any:
    return (np.arange(nbytes) % 251).astype(np.uint8)


@pytest.mark.parametrize("call", ["to_numpy", "to_numpy_async"])
@pytest.mark.parametrize("nbytes", [100, MIB, 9 * MIB])
def test_memory_that_its_owner_pinned_is_filled_directly(
    any_schedule: FakeCuda, registered: Make, call: str, nbytes: int
):
    out, x = registered(nbytes), TableArray(values(nbytes))
    with seen(any_schedule) as made:
        if call == "to_numpy":
            assert ferry.to_numpy(x, out=out) is out
        else:
            assert ferry.to_numpy_async(x, out=out, snapshot=False).result() is out
    assert np.array_equal(out, values(nbytes))
    assert sum(made.copies("DtoH")) == nbytes
    assert ferry.plan(x, out=out).copies == 1


def test_a_strided_part_of_pinned_memory_is_filled_by_rows(any_schedule: FakeCuda, registered: Make):
    whole = registered(64 * 100).reshape(64, 100)
    out, x = whole[:, 10:50], TableArray(values(64 * 40).reshape(64, 40))
    with seen(any_schedule) as made:
        assert ferry.to_numpy(x, out=out) is out
    assert made.copies_of_rows == 1
    assert np.array_equal(out, values(64 * 40).reshape(64, 40))
    assert whole[:, :10].sum() == whole[:, 50:].sum() == 0


@pytest.mark.parametrize("nbytes", [4000, 10 * MIB], ids=["small", "large"])
@pytest.mark.parametrize("call", ["to_numpy", "to_numpy_async"])
def test_ordinary_strided_and_fortran_destinations(any_schedule: FakeCuda, nbytes: int, call: str):
    base = np.arange(nbytes // 4, dtype=np.int32).reshape(-1, 50 if nbytes < MIB else 512)
    rows, columns = base.shape
    x = on_device(TableArray, base)
    whole = np.full((rows + 2, 2 * columns), -1, np.int32)
    for out in (
        np.zeros_like(base),
        np.zeros_like(base, order="F"),
        whole[1:-1, ::2],
        np.zeros_like(base)[::-1, ::-1],
        np.zeros(base.shape, np.float64),
        np.zeros(base.shape, ">i4"),
    ):
        made = ferry.to_numpy(x, out=out) if call == "to_numpy" else ferry.to_numpy_async(x, out=out).result()
        assert made is out
        assert np.array_equal(out, base)
    assert (whole[:, 1::2] == -1).all()
    assert (whole[0] == -1).all()
    assert any_schedule.live("pageable_copies") == 0


def test_a_file_mapped_into_memory_is_filled(any_schedule: FakeCuda, tmp_path: Path):
    path = tmp_path / "values.bin"
    out = np.memmap(path, np.uint8, "w+", shape=(9 * MIB,))
    x = TableArray(values(9 * MIB))
    assert ferry.to_numpy(x, out=out) is out
    out.flush()
    assert path.read_bytes() == values(9 * MIB).tobytes()


def test_large_ordinary_memory_comes_through_the_ring(any_schedule: FakeCuda):
    nbytes = 3 * RING_NBYTES + 12345
    out, x = np.zeros(nbytes, np.uint8), TableArray(values(nbytes))
    planned = ferry.plan(x, out=out)
    with seen(any_schedule) as made:
        assert ferry.to_numpy(x, out=out) is out
    assert np.array_equal(out, values(nbytes))
    assert (planned.path, planned.copies) == ("ring", 2)
    assert sum(made.copies("DtoH")) == nbytes
    assert len(made.copies("DtoH")) > 4


def test_a_nest_of_destinations(any_schedule: FakeCuda, registered: Make):
    out = {"pinned": registered(4096), "ordinary": np.zeros(7, np.float64), "strided": np.zeros((4, 6))[:, ::3]}
    nest = {
        "pinned": TableArray(values(4096)),
        "ordinary": TableArray(np.arange(7, dtype=np.float32)),
        "strided": TableArray(np.arange(8.0).reshape(4, 2)),
    }
    for call in (ferry.to_numpy, lambda nest, out: ferry.to_numpy_async(nest, out=out).result()):
        made = call(nest, out=out)
        assert all(made[key] is out[key] for key in out)
        assert np.array_equal(out["pinned"], values(4096))
        assert out["ordinary"].tolist() == [0, 1, 2, 3, 4, 5, 6]
        assert out["strided"].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
        for array in out.values():
            array[...] = 0


def test_a_destination_across_two_registrations_is_right(any_schedule: FakeCuda):
    driver, memory = Driver(), np.frombuffer(mmap.mmap(-1, 4 * MIB), np.uint8)
    address = memory.ctypes.data
    with as_test():
        driver("cuMemHostRegister", address, MIB, 3)
        driver("cuMemHostRegister", address + MIB, MIB, 3)
    for out in (memory[MIB // 2 : 3 * MIB // 2], memory[3 * MIB // 2 : 5 * MIB // 2]):  # across; and half outside
        assert ferry.to_numpy(TableArray(values(MIB)), out=out) is out
        assert np.array_equal(out, values(MIB))
    any_schedule.drain()
    with as_test():
        driver("cuMemHostUnregister", address)
        driver("cuMemHostUnregister", address + MIB)


def read_only() -> Any:
    made = np.zeros(6)
    made.flags.writeable = False
    return made


REFUSED: dict[str, tuple[Callable[[], Any], dict[str, Any], type[Exception]]] = {
    "of another shape": (lambda: np.zeros(5), {}, ferry.BufferMismatchError),
    "of another number of axes": (lambda: np.zeros((2, 3)), {}, ferry.BufferMismatchError),
    "read-only": (read_only, {}, ferry.ReadOnlyError),
    "broadcast": (lambda: np.lib.stride_tricks.as_strided(np.zeros(1), (6,), (0,)), {}, ferry.BufferMismatchError),
    "no array": (lambda: [0.0] * 6, {}, ferry.ArgumentError),
    "of a dtype that the rule forbids": (lambda: np.zeros(6, np.int32), {}, ferry.DTypeError),
    "of another dtype than asked for": (lambda: np.zeros(6), {"dtype": "float32"}, ferry.BufferMismatchError),
    "with copy=False": (lambda: np.zeros(6), {"copy": False}, ferry.ArgumentError),
}


CALLS: dict[str, Callable[..., Any]] = {
    "to_numpy": lambda x, out, good, **arguments: ferry.to_numpy(x, out=out, **arguments),
    "to_numpy of a nest": lambda x, out, good, **arguments: ferry.to_numpy(
        [x, x.view((6,), (1,))], out=[good, out], **arguments
    ),
    "to_numpy_async": lambda x, out, good, copy=None, **arguments: ferry.to_numpy_async(x, out=out, **arguments),
}
REFUSALS = [
    pytest.param(call, *case, id=f"{name} {what}")
    for name, call in CALLS.items()
    for what, case in REFUSED.items()
    if not (name == "to_numpy_async" and "copy" in case[1])  # it has no such argument
]


@pytest.mark.parametrize(("call", "make", "arguments", "error"), REFUSALS)
def test_what_does_not_fit_is_refused_before_anything_is_enqueued(
    fake: FakeCuda, call: Any, make: Any, arguments: dict[str, Any], error: type[Exception]
):
    x, good, out = TableArray(np.arange(6.0)), np.full(6, -1.0), make()
    with seen(fake) as made, pytest.raises(error):
        call(x, out, good, **arguments)
    assert [line for line in made.lines if line.startswith(ENQUEUING)] == []
    assert (good == -1).all()


def test_destinations_that_overlap_each_other_are_refused(fake: FakeCuda):
    memory, x = np.zeros(10), TableArray(np.arange(6.0))
    with seen(fake) as made, pytest.raises(ferry.BufferMismatchError, match="overlaps another"):
        ferry.to_numpy([x, x.view((6,), (1,))], out=[memory[:6], memory[4:]])
    assert [line for line in made.lines if line.startswith(ENQUEUING)] == []


def test_a_value_that_does_not_survive_in_the_destination_is_named(any_schedule: FakeCuda):
    out, x = np.zeros(3, np.float32), TableArray(np.array([1.0, 0.1, 2.0]))
    for call in (ferry.to_numpy, lambda *a, **k: ferry.to_numpy_async(*a, **k).result()):
        with pytest.raises(ferry.PrecisionLossError) as caught:
            call(x, out=out, casting="same_value")
        assert caught.value.index == (1,)
    x = TableArray(np.array([1.0, 0.5, 2.0]))
    assert ferry.to_numpy(x, out=out, casting="same_value") is out
    assert out.tolist() == [1, 0.5, 2]
