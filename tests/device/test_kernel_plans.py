"""Promise 5 where kernels pack, cast, store and gather: plans against the driver's trace; and the same without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import STAGING_NBYTES, Seen, kernels, seen, warm
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import TableArray, on_device

pytestmark = pytest.mark.usefixtures("without_thread")

KIB = 1 << 10
# The link of a simulated device is not known, so that the defaults for PCIe 4.0 hold.
STORED_WHEN_WAITING, STORED_BLOCKS = 125_000, 16 * KIB
SYNCHRONISING = ("cuStreamSynchronize", "cuCtxSynchronize", "cuMemcpy", "cuMemcpyDtoH", "cuStreamQuery")

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda x: x,
    "transposed": lambda x: x.T,
    "rows with gaps": lambda x: x[:, :100],
    "wide rows with gaps": lambda x: x.reshape(4, -1)[:, :1024],
    "every other row": lambda x: x[::2],
    "every other element": lambda x: x[:, ::2],
    "backwards": lambda x: x[::-1, ::-1],
    "broadcast": lambda x: np.broadcast_to(x[0], (50, x.shape[1])),
    "one element": lambda x: x[:1, :1],
    "nothing": lambda x: x[:0],
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "private": {"copy": True},
    "narrowed": {"dtype": "float16"},
    "to integers": {"dtype": "int32", "casting": "unsafe"},
    "widened": {"dtype": "float64"},
    "checked": {"dtype": "float16", "casting": "same_value"},
    "in C order": {"order": "C"},
    "in Fortran order": {"order": "F"},
    "narrowed in Fortran order": {"dtype": "float16", "order": "F"},
    "not pinned": {"pinned": False},
}


def base_array(rows: int = 512) -> Any:
    return (np.arange(rows * 512) % 2000).astype(np.float32).reshape(rows, 512)


def assert_told(planned: Any, made: Seen, nbytes: int) -> None:
    """Hold a plan of one tensor against what was done."""
    copies = len(made.copies("DtoH")) + made.copies_of_rows
    assert made.count("cuLaunchKernel") == planned.launches
    assert (copies > 0) == (nbytes > 0 and planned.path != "store")
    if "pack" in planned.path:
        assert planned.launches > 0
    assert all(made.count(name) == 0 for name in SYNCHRONISING)
    assert (made.waits > 0) == (planned.waits == ("the device",) and nbytes > 0)
    host = len([step for step in planned.steps if step.startswith("write")])
    ring = int("ring" in planned.path)
    assert planned.copies == 1 + ring + int("pack" in planned.path) + host


@pytest.mark.parametrize("rows", [16, 512], ids=["small", "large"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_the_plan_of_to_numpy_is_what_happens(fake: FakeCuda, layout: Any, arguments: dict[str, Any], rows: int):
    base = base_array(rows)
    expected = layout(base)
    with kernels():
        x = on_device(TableArray, base, expected)
        ferry.to_numpy(x, **arguments)
        planned = ferry.plan(x, **arguments)
        with seen(fake) as made:
            result = ferry.to_numpy(x, **arguments)
    wanted = expected.astype(arguments.get("dtype", expected.dtype))
    assert np.array_equal(result, wanted)
    assert (result.strides, result.shape, result.dtype.name) == (planned.strides, planned.shape, planned.dtype)
    assert result.flags.writeable == planned.writable
    if "order" in arguments:
        assert result.flags[f"{arguments['order']}_CONTIGUOUS"]
    assert_told(planned, made, expected.nbytes)


@pytest.mark.parametrize(
    ("nbytes", "path"),
    [(STORED_BLOCKS, "store"), (STORED_BLOCKS + 4, "dma")],
    ids=["16 KiB", "more than that"],
)
def test_a_small_block_that_is_waited_for_is_stored(fake: FakeCuda, nbytes: int, path: str):
    values = np.arange(nbytes // 4, dtype=np.float32)
    with kernels():
        x = on_device(TableArray, values)
        warm(fake, lambda: ferry.to_numpy(x))
        planned = ferry.plan(x)
        with seen(fake) as made:
            result = ferry.to_numpy(x)
    assert (planned.path, planned.copies, planned.nbytes_moved) == (path, 1, nbytes)
    assert (made.count("cuLaunchKernel"), made.copies("DtoH")) == ((1, []) if path == "store" else (0, [nbytes]))
    assert made.count("cuEventRecord") == 1
    assert np.array_equal(result, values)


@pytest.mark.parametrize(
    ("rows", "path"),
    [(61, "store"), (62, "pack, dma")],
    ids=["up to 5 us of the link", "more than that"],
)
def test_a_strided_tensor_is_stored_or_packed(fake: FakeCuda, rows: int, path: str):
    base = base_array(rows)
    with kernels():
        wide = np.repeat(base, 2, axis=1)
        strided = on_device(TableArray, wide, wide[:, ::2])
        warm(fake, lambda: ferry.to_numpy(strided))
        planned = ferry.plan(strided)
        with seen(fake) as made:
            result = ferry.to_numpy(strided)
    assert planned.path == path
    assert made.count("cuLaunchKernel") == planned.launches == 1
    assert made.copies("DtoH") == ([] if path == "store" else [base.nbytes])
    assert made.count("cuEventRecord") == 1
    assert made.waits == 1
    assert np.array_equal(result, base)
    assert (path == "store") == (base.nbytes <= STORED_WHEN_WAITING)


def test_a_narrowing_cast_halves_what_goes_over_the_link(fake: FakeCuda):
    values = base_array()
    with kernels():
        x = on_device(TableArray, values)
        ferry.to_numpy(x, dtype="float16")
        planned = ferry.plan(x, dtype="float16")
        with seen(fake) as made:
            result = ferry.to_numpy(x, dtype="float16")
    assert made.copies("DtoH") == [values.nbytes // 2]
    assert (planned.path, planned.copies, planned.nbytes_moved) == ("pack, dma", 2, values.nbytes)
    assert any("cast it to float16 on the device" in step for step in planned.steps)
    assert np.array_equal(result, values.astype(np.float16))


def test_a_widening_cast_is_the_hosts_behind_the_link(fake: FakeCuda):
    values = base_array()
    with kernels():
        x = on_device(TableArray, values)
        with seen(fake) as made:
            result = ferry.to_numpy(x, dtype="float64")
    assert made.copies("DtoH") == [values.nbytes]
    assert made.count("cuLaunchKernel") == 0
    assert np.array_equal(result, values)


def test_what_is_larger_than_staging_goes_in_parts_and_takes_no_more_memory(fake: FakeCuda):
    base = np.arange(2 * STAGING_NBYTES, dtype=np.int32).reshape(2048, -1)
    with kernels():
        x = on_device(TableArray, base, base[:, ::2])
        ferry.to_numpy(x)
        before = fake.live("device_bytes")
        planned = ferry.plan(x)
        with seen(fake) as made:
            result = ferry.to_numpy(x)
        assert fake.live("device_bytes") == before
    parts = 4 * STAGING_NBYTES // (STAGING_NBYTES // 4)
    assert (planned.path, planned.launches) == ("pack, dma", parts)
    assert made.count("cuLaunchKernel") == parts
    assert made.copies("DtoH") == [STAGING_NBYTES // 4] * parts
    assert made.count("cuEventSynchronize") <= 1
    assert np.array_equal(result, base[:, ::2])


def test_a_nest_of_64_tensors_is_one_launch_one_copy_one_event_and_one_wait(fake: FakeCuda):
    nest = {f"leaf {i}": TableArray(np.full((8, i + 1), i, np.float32)) for i in range(64)}
    with kernels():
        warm(fake, lambda: ferry.to_numpy(nest))
        planned = ferry.plan(nest)
        with seen(fake) as made:
            result = ferry.to_numpy(nest)
    assert all((array == i).all() and array.shape == (8, i + 1) for i, array in enumerate(result.values()))
    assert made.count("cuLaunchKernel") == planned.launches == 1
    assert len(made.copies("DtoH")) == 1
    assert made.count("cuEventRecord") == 1
    assert made.waits == 1
    assert all(made.count(name) == 0 for name in SYNCHRONISING)
    assert made.count("cuMemHostRegister") == 0
    assert {part.path for part in planned.parts.values()} == {"gather"}
    assert planned.nbytes_moved == 2 * sum(array.nbytes for array in result.values())


def test_an_asynchronous_nest_is_gathered_before_its_stream_goes_on(fake: FakeCuda):
    leaves = [TableArray(np.full(100, i, np.int64)) for i in range(1000)]
    with kernels():
        warm(fake, lambda: ferry.to_numpy_async(leaves).result())
        with seen(fake) as made:
            transfer = ferry.to_numpy_async(leaves)
        for leaf in leaves:
            leaf.write_later(np.full(100, -1))  # the producer's stream writes after the call
        values = [int(array[0]) for array in transfer.result()]
    assert made.count("cuLaunchKernel") == transfer.plan.launches == transfer.stats.launches == 1
    assert (len(made.copies("DtoH")), transfer.stats.driver_copies) == (1, 1)
    assert made.count("cuEventRecord") == 2
    assert made.count("cuEventSynchronize") == 0
    assert transfer.stats.snapshot
    assert transfer.plan.waits == ()
    assert values == list(range(1000))


def test_a_small_array_of_a_nest_keeps_no_large_block_alive(fake: FakeCuda):
    nest = [TableArray(np.zeros(100 * KIB, np.uint8)) for _ in range(40)]
    with kernels():
        before = ferry.pool_stats().pinned.in_use_nbytes
        arrays = ferry.to_numpy(nest)
        kept = arrays[7]
        del arrays
        assert ferry.pool_stats().pinned.in_use_nbytes - before <= 1 << 20
        assert not kept.any()


@pytest.mark.parametrize("order", ["K", "C"])
def test_without_kernels_everything_is_as_it_was(fake: FakeCuda, order: str):
    base = base_array()
    x = on_device(TableArray, base, base.T)
    planned = ferry.plan(x, order=order, dtype="float16")
    with seen(fake) as made:
        result = ferry.to_numpy(x, order=order, dtype="float16")
    assert made.count("cuLaunchKernel") == planned.launches == 0
    assert made.copies("DtoH") == [base.nbytes]
    assert any(step.startswith("write float16") for step in planned.steps)
    assert np.array_equal(result, base.T.astype(np.float16))
