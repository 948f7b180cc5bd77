"""Field cases: pinned memory that was too much, too slow, never given back, or could not be had."""

from __future__ import annotations

import gc
import mmap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import is_pinned, seen, settle, until
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import TableArray
from helpers.subprocess import stdout_of
from tensorferry._native import core

MIB = 1 << 20
PAGE, LARGE_PAGE = mmap.PAGESIZE, 2 * MIB


def held_by_pool() -> int:
    """Bytes of pinned memory that nobody uses."""
    stats = core.pinned_stats()
    return 0 if stats is None else int(stats["idle_nbytes"] + stats["retired_nbytes"])


def emptied(fake: FakeCuda) -> bool:
    """Give back what earlier tests left in the pool."""
    gc.collect()
    return until(lambda: settle(fake) is None and ferry.trim() >= 0 and held_by_pool() == 0)


@pytest.mark.parametrize("nbytes", [5 * MIB, 5 * MIB + 1, 33 * MIB, 65 * MIB + 3], ids="{} bytes".format)
def test_f071_a_block_costs_what_was_asked_for_in_pages(fake: FakeCuda, nbytes: int):
    """Seen: requests rounded up to powers of two, 5 GiB to 8."""
    assert emptied(fake)
    before = fake.live("host_bytes")
    array = ferry.empty_pinned(nbytes, "uint8")
    held = fake.live("host_bytes") - before
    assert array.nbytes == nbytes
    assert nbytes <= held < nbytes + (LARGE_PAGE if nbytes >= 64 * MIB else PAGE)


def test_f072_arrays_in_pinned_memory_are_ordinary_arrays_of_the_right_length(any_schedule: FakeCuda):
    """Seen: an allocator that gave a longer buffer; and a wish for out=."""
    array = ferry.empty_pinned((1_000_000,), "f8")
    assert type(array) is np.ndarray
    assert (array.nbytes, array.shape, array.flags.writeable) == (8_000_000, (1_000_000,), True)
    assert is_pinned(array)
    x = TableArray(np.zeros(1_000_000))
    x.write_later(np.arange(1_000_000))
    assert ferry.to_numpy(x, out=array) is array
    assert np.array_equal(array, np.arange(1_000_000.0))
    like = ferry.empty_like_pinned(array)
    assert (like.shape, like.dtype) == (array.shape, array.dtype)
    assert is_pinned(like)
    assert not ferry.zeros_pinned(100, "i4").any()


def registrations(fake: FakeCuda, steps: int, step: Any) -> int:
    """How often memory was pinned in so many steps."""
    with seen(fake) as made:
        for value in range(steps):
            assert (step(value % 250) == value % 250).all()
            settle(fake)
    return made.count("cuMemHostRegister") + made.count("cuMemHostAlloc")


def test_f074_steps_with_a_destination_of_their_own_pin_nothing(fake: FakeCuda):
    """Seen: pinning takes milliseconds and stalls everyone, in the middle of a step."""
    x, out = TableArray(np.zeros(MIB, np.uint8)), ferry.empty_pinned(MIB, "uint8")

    def step(value: int) -> Any:
        x.write_later(np.full(MIB, value, np.uint8))
        return ferry.to_numpy_async(x, out=out).result()

    registrations(fake, 1, step)
    assert registrations(fake, 30, step) == 0


@pytest.mark.usefixtures("without_thread")  # it may hold a result's memory for a moment longer
def test_f074_steps_that_make_results_pin_less_and_less(fake: FakeCuda):
    assert emptied(fake)
    x = TableArray(np.zeros(100_000, np.uint8))

    def step(value: int) -> Any:
        x.write_later(np.full(100_000, value, np.uint8))
        return ferry.to_numpy_async(x).result()

    first, second, third = (registrations(fake, 60, step) for _ in range(3))
    assert first <= 11
    assert second <= first // 2
    assert third <= second


def test_f075_trim_gives_everything_back(fake: FakeCuda):
    """Seen: a cache that was still held after training, and no way to free it."""
    assert emptied(fake)
    before = fake.live("host_bytes")
    kept = [ferry.empty_pinned(8 * MIB, "uint8") for _ in range(4)]
    assert fake.live("host_bytes") >= before + 32 * MIB
    del kept
    assert emptied(fake)
    assert fake.live("host_bytes") <= before


def test_f076_pinning_the_same_place_again_and_again(fake: FakeCuda):
    """Seen: a registration that was left made the next one at that address fail with error 712."""
    before = fake.live("host_registrations")
    places = set()
    for value in range(100):
        memory = mmap.mmap(-1, 16 * PAGE)
        array = np.frombuffer(memory, np.uint8)
        places.add(array.ctypes.data)
        with ferry.pinned(array) as held:
            assert held.nbytes == array.nbytes
            assert is_pinned(array)
            x = TableArray(np.full(array.nbytes, value, np.uint8))
            assert ferry.to_numpy(x, out=array) is array
        assert not is_pinned(array)
        assert (array == value).all()
        del array, held
        memory.close()
    assert len(places) < 100  # addresses came again
    assert fake.live("host_registrations") <= before + 1


def test_f076_no_bytes_are_nothing_to_pin_and_twice_is_once(fake: FakeCuda, tmp_path: Path):
    with ferry.pinned(np.zeros(0)) as held:
        assert held.nbytes == 0
    array = np.arange(4096)
    with ferry.pinned(array), ferry.pinned(array):
        assert is_pinned(array)
    assert not is_pinned(array)
    path = tmp_path / "values.npy"
    np.save(path, array)
    with ferry.pinned(np.load(path, mmap_mode="r")) as held:
        assert held.nbytes == array.nbytes
    assert np.array_equal(np.load(path), array)


def test_f077_where_little_can_be_pinned_all_goes_on_in_ordinary_memory(fake: FakeCuda):
    """Seen: a system that pins 1 GB at most, whose refusal read "CUDA out of memory" on an empty card."""
    assert emptied(fake)
    fake.host_budget(fake.live("host_bytes") + 16 * MIB)
    x = TableArray(np.zeros(40 * MIB, np.uint8))
    x.write_later(np.full(40 * MIB, 3, np.uint8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (ferry.to_numpy(x) == 3).all()
        array = ferry.empty_pinned(40 * MIB, "uint8")
    assert not is_pinned(array)
    with pytest.raises(ferry.DeviceError, match="pinned") as caught:
        ferry.to_numpy(x, pinned=True)
    assert "device memory" not in str(caught.value)


def test_f078_a_forked_child_gets_ordinary_memory_and_asks_no_driver():
    """Seen: pinning in a forked worker, and an initialization error or a failed launch."""
    said = stdout_of(
        """
        import os, sys
        import numpy as np
        from helpers.device_path import fresh
        from helpers.fake_cuda_arrays import TableArray
        import tensorferry as ferry
        fake = fresh()
        x = TableArray(np.arange(4.0))
        kept, mine = ferry.to_numpy(x), ferry.empty_pinned(1 << 16)
        fake.clear_trace()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            made = ferry.empty_pinned(1000, "int16")
            made[:] = 5
            zeros = ferry.zeros_pinned((300, 300))
            ok = made.sum() == 5000 and not zeros.any() and kept.tolist() == [0, 1, 2, 3]
            ok = ok and not ferry.describe(made).pinned and fake.trace() == []
            del made, zeros, kept, mine
            os._exit(0 if ok and fake.trace() == [] else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), ferry.to_numpy(x).tolist(), fake.violations())
        """
    )
    assert said == "0 [0.0, 1.0, 2.0, 3.0] []"


def test_f079_without_a_driver_pinned_means_ordinary_or_one_clear_error():
    """Seen: two different errors for the same missing accelerator."""
    said = stdout_of(
        """
        import os
        os.environ["TENSORFERRY_LIBCUDA"] = "/nonexistent/libcuda.so.1"
        import numpy as np
        import tensorferry as ferry
        array = ferry.empty_pinned(100, "int32")
        array[:] = 1
        described = ferry.describe(array)
        print(array.sum(), described.pinned, described.note)

        class OnDevice:
            def __dlpack_device__(self):
                return (2, 0)

            def __dlpack__(self, **arguments):
                raise AssertionError("nobody can read this")

        calls = {
            "pinned": lambda: ferry.pinned(np.ones(3)),
            "to_numpy": lambda: ferry.to_numpy(OnDevice(), pinned=True),
            "to_numpy auto": lambda: ferry.to_numpy(OnDevice()),
        }
        for name, call in calls.items():
            said = set()
            for _ in range(2):
                try:
                    call()
                except ferry.DeviceError as error:
                    said.add(str(error))
            print(name, len(said), "/nonexistent/libcuda.so.1" in said.pop())
        """
    )
    pageable, *errors = said.splitlines()
    assert pageable.startswith("100 False ")
    assert "/nonexistent/libcuda.so.1" in pageable
    assert errors == ["pinned 1 True", "to_numpy 1 True", "to_numpy auto 1 True"]
