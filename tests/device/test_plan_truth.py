"""Promise 5: what ``plan`` and ``Transfer.plan`` say, against the driver's trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import RING_NBYTES, STAGING_NBYTES, Seen, is_pinned, seen, warm
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import TableArray, on_device

pytestmark = pytest.mark.usefixtures("without_thread")

MIB = 1 << 20
SYNCHRONISING = ("cuStreamSynchronize", "cuCtxSynchronize", "cuMemcpy", "cuMemcpyDtoH", "cuStreamQuery")

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda x: x,
    "transposed": lambda x: x.T,
    "rows with gaps": lambda x: x[:, :100],
    "every other row": lambda x: x[::2],
    "every other element": lambda x: x[:4, ::2],
    "backwards": lambda x: x[::-1, ::-1],
    "broadcast": lambda x: np.broadcast_to(x[0], (50, x.shape[1])),
    "one element": lambda x: x[:1, :1],
    "nothing": lambda x: x[:0],
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "private": {"copy": True},
    "cast": {"dtype": "float64"},
    "in C order": {"order": "C"},
    "in Fortran order": {"order": "F"},
    "not pinned": {"pinned": False},
}


def base_array() -> Any:
    return np.arange(128 * 128, dtype=np.float32).reshape(128, 128)


def over_the_link(made: Seen) -> int:
    """Bytes that plain copies to the host moved."""
    return sum(made.copies("DtoH"))


def assert_told(planned: Any, made: Seen, result: Any, nbytes: int) -> None:
    """Hold a plan of one tensor against what was done."""
    rows = made.copies_of_rows
    direct = made.copies("DtoH")
    assert (len(direct) + rows > 0) == (nbytes > 0)
    if rows == 0:
        assert over_the_link(made) >= nbytes
    assert all(made.count(name) == 0 for name in SYNCHRONISING)
    assert (made.waits > 0) == (planned.waits == ("the device",) and nbytes > 0)
    assert (result.strides, result.shape, result.dtype.name) == (planned.strides, planned.shape, planned.dtype)
    assert result.flags.writeable == planned.writable
    assert ("ring" in planned.path) == (planned.copies - len([s for s in planned.steps if s.startswith("write")]) == 2)
    assert not planned.shares_memory


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_the_plan_of_to_numpy_is_what_happens(fake: FakeCuda, layout: Any, arguments: dict[str, Any]):
    base = base_array()
    expected = layout(base)
    x = on_device(TableArray, base, expected)
    ferry.to_numpy(x, **arguments)
    planned = ferry.plan(x, **arguments)
    with seen(fake) as made:
        result = ferry.to_numpy(x, **arguments)
    assert np.array_equal(result, expected)
    moved = expected[:1] if 0 in expected.strides else expected
    assert_told(planned, made, result, moved.nbytes)


@pytest.mark.parametrize("name", ["dense", "transposed", "backwards", "one element"])
def test_what_is_dense_is_one_copy_of_exactly_its_bytes(fake: FakeCuda, name: str):
    base = base_array()
    expected = LAYOUTS[name](base)
    x = on_device(TableArray, base, expected)
    warm(fake, lambda: ferry.to_numpy(x))
    planned = ferry.plan(x)
    with seen(fake) as made:
        ferry.to_numpy(x)
    assert (planned.path, planned.copies, planned.nbytes_moved) == ("dma", 1, expected.nbytes)
    assert made.copies("DtoH") == [expected.nbytes]
    assert made.count("cuEventRecord") == 1
    assert made.waits == 1
    assert made.count("cuMemHostRegister") == made.count("cuMemHostAlloc") == 0


def test_a_nest_of_64_tensors_is_64_copies_one_event_and_one_wait(fake: FakeCuda):
    nest = {f"leaf {i}": TableArray(np.full((8, i + 1), i, np.float32)) for i in range(64)}
    warm(fake, lambda: ferry.to_numpy(nest))
    planned = ferry.plan(nest)
    with seen(fake) as made:
        result = ferry.to_numpy(nest)
    assert all((array == i).all() for i, array in enumerate(result.values()))
    assert made.copies("DtoH") == [8 * (i + 1) * 4 for i in range(64)]
    assert planned.copies == 64
    assert planned.nbytes_moved == sum(made.copies("DtoH"))
    assert made.count("cuEventRecord") == 1
    assert made.waits == 1
    assert made.count("cuEventSynchronize") <= 1
    assert all(made.count(name) == 0 for name in SYNCHRONISING)
    assert made.count("cuMemHostRegister") == 0


def test_an_asynchronous_nest_of_64_tensors_is_two_events_and_no_wait(fake: FakeCuda):
    nest = [TableArray(np.full(10, i, np.int64)) for i in range(64)]
    warm(fake, lambda: ferry.to_numpy_async(nest).result())
    with seen(fake) as made:
        transfer = ferry.to_numpy_async(nest)
    assert made.copies("DtoD") == made.copies("DtoH") == [80] * 64
    assert made.count("cuEventRecord") == 2  # the snapshots, and the copies
    assert made.count("cuStreamWaitEvent") == 1
    assert made.count("cuEventSynchronize") == 0
    assert all(made.count(name) == 0 for name in SYNCHRONISING)
    assert transfer.plan.waits == ()
    assert (transfer.plan.copies, transfer.plan.nbytes_moved) == (128, 2 * 64 * 80)
    assert transfer.stats.driver_copies == 128
    assert [array[0] for array in transfer.result()] == list(range(64))


@pytest.mark.parametrize("snapshot", ["auto", True, False])
def test_the_plan_of_a_transfer_says_whether_there_was_a_snapshot(fake: FakeCuda, snapshot: Any):
    x = TableArray(np.arange(1000))
    ferry.to_numpy_async(x, snapshot=snapshot).result()
    with seen(fake) as made:
        transfer = ferry.to_numpy_async(x, snapshot=snapshot)
    taken = len(made.copies("DtoD"))
    assert taken == (snapshot is not False)
    assert transfer.stats.snapshot == bool(taken)
    assert transfer.plan.copies == 1 + taken
    assert transfer.plan.nbytes_moved == 8000 * (1 + taken)
    assert any("snapshot" in step for step in transfer.plan.steps) == bool(taken)
    assert transfer.result().tolist() == list(range(1000))


def test_what_is_too_large_for_a_snapshot_is_copied_in_its_stream_and_the_plan_says_so(fake: FakeCuda):
    x = TableArray(np.ones(STAGING_NBYTES + 8, np.uint8))
    with seen(fake) as made:
        transfer = ferry.to_numpy_async(x)
    assert made.copies("DtoD") == []
    assert sum(made.copies("DtoH")) == STAGING_NBYTES + 8
    assert (transfer.plan.copies, transfer.plan.nbytes_moved) == (1, STAGING_NBYTES + 8)
    assert not transfer.stats.snapshot
    with pytest.raises(ferry.DeviceError, match="snapshot"):
        ferry.to_numpy_async(x, snapshot=True)
    assert (transfer.result() == 1).all()


def test_a_large_result_in_ordinary_memory_comes_in_pieces_of_the_ring(fake: FakeCuda):
    x = TableArray(np.arange(2 * RING_NBYTES, dtype=np.uint8))
    planned = ferry.plan(x, pinned=False)
    with seen(fake) as made:
        result = ferry.to_numpy(x, pinned=False)
    assert (planned.path, planned.copies, planned.nbytes_moved) == ("ring", 2, 2 * 2 * RING_NBYTES)
    assert not is_pinned(result)
    assert sum(made.copies("DtoH")) == 2 * RING_NBYTES
    assert max(made.copies("DtoH")) <= RING_NBYTES // 4
    assert np.array_equal(result, np.arange(2 * RING_NBYTES, dtype=np.uint8))


def test_a_plan_asks_nothing_of_the_device(fake: FakeCuda, kind: Any):
    x = on_device(kind, base_array())
    ferry.to_numpy(x)
    with seen(fake) as made:
        assert ferry.plan(x).copies == 1
        assert ferry.plan({"a": [x]}, copy=True, dtype="float64").copies == 2
        assert "cuda" in str(ferry.explain(x))
        assert ferry.describe(x).device.startswith("cuda")
    forbidden = ("cuMemcpy", "cuEvent", "cuMemHost", "cuStream", "cuMemAlloc")
    assert [line for line in made.lines if line.startswith(forbidden)] == []


@pytest.mark.parametrize("direction", ["numpy", "torch"])
def test_a_plan_for_either_library_enqueues_nothing(fake: FakeCuda, kind: Any, direction: str):
    x = on_device(kind, base_array())
    with seen(fake) as made:
        planned = ferry.plan(x, to=direction)
    assert "cuMemcpyDtoHAsync" not in [line.split()[0] for line in made.lines]
    assert planned.waits == ("the device",)
    assert planned.path == "dma"


REFUSED: dict[str, dict[str, Any]] = {
    "sharing": {"copy": False},
    "a cast to another kind": {"dtype": "int32"},
    "a destination of another shape": {"out": np.zeros(3)},
    "a destination that overlaps itself": {"out": np.broadcast_to(np.zeros(1), (128, 128))},
    "a rule that there is not": {"casting": "sometimes"},
}


@pytest.mark.parametrize("arguments", REFUSED.values(), ids=REFUSED)
def test_refusals_of_the_plan_are_those_of_the_call(fake: FakeCuda, kind: Any, arguments: dict[str, Any]):
    x = on_device(kind, base_array())
    with pytest.raises(ferry.FerryError) as planned:
        ferry.plan(x, **arguments)
    with pytest.raises(ferry.FerryError) as done:
        ferry.to_numpy(x, **arguments)
    assert (type(planned.value), str(planned.value)) == (type(done.value), str(done.value))
