"""pinned(): memory of others registered and let go again, also where arrays share pages, and around transfers."""

from __future__ import annotations

import gc
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.device_path import seen
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import TableArray
from helpers.fake_cuda_driver import Driver
from helpers.pinned_pages import PAGE, is_pinned, pages, registrations


@pytest.fixture
def registered(fake: FakeCuda) -> Any:
    """How many more registrations there are than at the beginning."""
    with registrations(fake) as count:
        yield count


KINDS = {
    "array": lambda: np.zeros(50_000, np.float64),
    "array of a few bytes": lambda: np.zeros(3, np.int8),
    "Fortran order": lambda: np.zeros((100, 200), order="F"),
    "permuted": lambda: np.zeros((10, 20, 30)).transpose(1, 2, 0),
    "reversed": lambda: np.zeros(9000)[::-1],
    "structured": lambda: np.zeros((4, 1000), [("a", "i4"), ("b", "f8")]),
    "dates": lambda: np.zeros(1000, "M8[s]"),
    "tensor": lambda: torch.zeros(300, 40),
    "tensor that requires grad": lambda: torch.zeros(5000, requires_grad=True),
    "transposed tensor": lambda: torch.zeros(300, 40).t(),
    "bytearray": lambda: bytearray(20_000),
    "read-only array": lambda: np.broadcast_to(np.zeros(1), (1,)),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_all_kinds_of_memory_can_be_pinned_for_a_while(registered: Any, make: Any):
    x = make()
    assert not is_pinned(x)
    with ferry.pinned(x) as held:
        assert registered() == 1
        assert is_pinned(x)
        assert held.nbytes == ferry.describe(x).span_nbytes
        assert not held.closed
    assert held.closed
    assert registered() == 0
    assert not is_pinned(x)


def test_memory_of_no_bytes_needs_no_page(registered: Any):
    with ferry.pinned(np.zeros((0, 3)), torch.zeros(0)) as held:
        assert (held.nbytes, registered()) == (0, 0)
    with ferry.pinned() as held:
        assert held.nbytes == 0


def test_the_pages_around_an_unaligned_array_are_covered(fake: FakeCuda, registered: Any):
    memory = pages(6)
    with seen(fake) as record, ferry.pinned(memory[100 : PAGE + 1]):
        assert is_pinned(memory[: 2 * PAGE])
        assert not is_pinned(memory[: 2 * PAGE + 1])
    assert f"cuMemHostRegister bytes={2 * PAGE} flags=3" in record.lines


def test_arrays_that_share_a_page_do_not_collide(fake: FakeCuda, registered: Any):
    memory = pages(6)
    first = ferry.pinned(memory[: PAGE + 10])
    second = ferry.pinned(memory[PAGE + 10 : 4 * PAGE])
    assert registered() == 2
    third = ferry.pinned(memory[: 4 * PAGE])
    assert registered() == 2
    first.close()
    assert registered() == 2
    assert is_pinned(memory[: 4 * PAGE])
    third.close()
    assert registered() == 2  # the first registration has a page of the second array
    second.close()
    assert registered() == 0


def test_arrays_of_one_call_that_share_a_page_are_registered_as_one(fake: FakeCuda, registered: Any):
    memory = pages(8)
    with ferry.pinned(memory[5 * PAGE + 7 :], memory[: PAGE + 3], memory[PAGE + 3 : 2 * PAGE], memory[10:20]):
        assert registered() == 2


def test_a_copy_across_two_registrations_is_split(any_schedule: FakeCuda):
    memory = pages(4, np.int32)
    half = memory.size // 2
    x = TableArray(np.zeros(memory.size, np.int32))
    x.write_later(np.arange(memory.size))
    with ferry.pinned(memory[:half]), ferry.pinned(memory[half:]), seen(any_schedule) as record:
        assert ferry.plan(x, out=memory).path == "dma"
        ferry.to_numpy(x, out=memory)
    assert record.copies("DtoH") == [2 * PAGE, 2 * PAGE]
    assert memory.tolist() == list(range(memory.size))


def test_the_same_memory_twice_stays_until_both_are_closed(registered: Any):
    memory = pages(3)
    first, second = ferry.pinned(memory), ferry.pinned(memory)
    assert registered() == 1
    first.close()
    first.close()
    assert is_pinned(memory)
    second.close()
    assert not is_pinned(memory)


def test_dropping_it_lets_go_of_the_memory(registered: Any):
    memory = pages(2)
    held = ferry.pinned(memory)
    assert registered() == 1
    del held
    gc.collect()
    assert registered() == 0


def test_the_memory_cannot_go_while_it_is_pinned(registered: Any):
    owner = bytearray(3 * PAGE)
    mapped = mmap.mmap(-1, 2 * PAGE)
    array = np.zeros(4 * PAGE, np.uint8)
    with ferry.pinned(owner, mapped, array):
        with pytest.raises(BufferError):
            owner.extend(b"more")
        with pytest.raises(BufferError):
            mapped.close()
        with pytest.raises(ValueError, match="resize"):
            array.resize(8 * PAGE)
        del array
        gc.collect()
        assert registered() >= 2
    owner.extend(b"more")
    mapped.close()


def test_read_only_maps_are_registered_for_reading(fake: FakeCuda, registered: Any, tmp_path: Path):
    path = tmp_path / "data"
    np.arange(PAGE, dtype=np.int32).tofile(path)
    frozen = np.memmap(path, np.int32, "r")
    with seen(fake) as record, ferry.pinned(frozen):
        assert is_pinned(frozen)
    assert f"cuMemHostRegister bytes={4 * PAGE} flags=11" in record.lines
    writable = np.zeros(5 * PAGE, np.uint8)
    writable.flags.writeable = False  # its pages are not
    with seen(fake) as record, ferry.pinned(writable):
        pass
    assert next(line for line in record.lines if line.startswith("cuMemHostRegister")).endswith("flags=3")


def test_where_read_only_maps_cannot_be_registered_the_error_says_so(fake: FakeCuda, registered: Any, tmp_path: Path):
    fake.preset("no_read_only_register")
    path = tmp_path / "data"
    np.arange(10).tofile(path)
    with pytest.raises(ferry.DeviceError, match="the device does not support it for this kind of memory"):
        ferry.pinned(np.memmap(path, np.int64, "r"))


def test_when_one_array_cannot_be_pinned_none_is(fake: FakeCuda, registered: Any):
    good, bad = pages(3), pages(300)
    fake.host_budget(fake.live("host_bytes") + 100 * PAGE)
    with pytest.raises(ferry.DeviceError) as refused:
        ferry.pinned(good, bad)
    assert refused.value.given == f"pinned() of {303 * PAGE} bytes"
    assert refused.value.why == "the system does not allow to lock so much memory"
    assert "pin less at a time" in refused.value.instead
    assert registered() == 0
    with ferry.pinned(good):
        assert registered() == 1


@pytest.mark.parametrize("nth", [1, 2])
def test_a_failure_of_the_driver_leaves_nothing_behind(fake: FakeCuda, registered: Any, nth: int):
    a, b = pages(2), pages(2)
    fake.fault("cuMemHostRegister", 304, nth)  # an error of the operating system
    with pytest.raises(ferry.DeviceError, match="cuMemHostRegister"):
        ferry.pinned(a, b)
    fake.clear_faults()
    assert registered() == 0
    with ferry.pinned(a, b):
        assert registered() == 2


def test_memory_that_others_have_registered_is_left_to_them(fake: FakeCuda, registered: Any):
    cuda, memory = Driver(), pages(4)
    at = memory.ctypes.data
    cuda("cuMemHostRegister", at, 2 * PAGE, 3)
    with ferry.pinned(memory[: 2 * PAGE]):
        assert registered() == 1
        assert is_pinned(memory[: 2 * PAGE])
    assert registered() == 1
    with pytest.raises(ferry.DeviceError, match="some of its pages, not all, are registered"):
        ferry.pinned(memory)
    cuda("cuMemHostUnregister", at)


def test_memory_of_ours_is_only_kept(fake: FakeCuda, registered: Any):
    array = ferry.zeros_pinned(100_000)
    before = registered()
    with ferry.pinned(array[10:20], array):
        assert registered() == before
        held = array.ctypes.data
        del array
        gc.collect()
        assert ferry.empty_pinned(100_000).ctypes.data != held
    ferry.trim()
    fake.drain()
    ferry.trim()
    ferry.trim()


REFUSED = {
    "gaps": (lambda: np.zeros((4, 6))[:, ::2], ferry.LayoutError),
    "broadcast": (lambda: np.broadcast_to(np.zeros(3), (5, 3)), ferry.LayoutError),
    "objects": (lambda: np.array([None, 1]), ferry.LayoutError),
    "a list": (lambda: [np.zeros(3)], ferry.ArgumentError),
    "a number": (lambda: 3, ferry.DTypeError),
    "on a device": (lambda: TableArray(np.zeros(3)), ferry.DeviceError),
}


@pytest.mark.parametrize(("make", "error"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_pinned_is_refused(registered: Any, make: Any, error: type[Exception]):
    with pytest.raises(error):
        ferry.pinned(np.zeros(1000), make())
    assert registered() == 0
