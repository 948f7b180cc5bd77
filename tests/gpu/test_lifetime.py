"""Who holds what while bytes are on their way: sources freed and overwritten at once, results that are reused."""

from __future__ import annotations

import asyncio
import gc

import numpy as np
import pytest
import torch

import tensorferry as ferry

SIZES = {"4 KiB": 1 << 10, "1 MiB": 1 << 18, "64 MiB": 1 << 24}


@pytest.mark.parametrize("count", SIZES.values(), ids=SIZES.keys())
def test_a_source_may_be_freed_and_its_memory_overwritten_at_once(gpu, stream, sleep, count):
    for value in range(10):
        x = torch.full((count,), float(value), device=gpu)
        sleep(2)
        transfer = ferry.to_numpy_async(x)
        del x
        reused = torch.full((count,), -1.0, device=gpu)  # torch's allocator gives the same memory again
        assert (transfer.result() == value).all()
        del reused


@pytest.mark.parametrize("count", SIZES.values(), ids=SIZES.keys())
def test_a_source_of_another_stream_may_be_freed(gpu, sleep, count):
    side = torch.cuda.Stream()
    for value in range(10):
        with torch.cuda.stream(side):
            x = torch.full((count,), float(value), device=gpu)
            sleep(2)
            transfer = ferry.to_numpy_async(x)
            del x
            torch.full((count,), -1.0, device=gpu)
        assert (transfer.result() == value).all()


def test_a_dropped_transfer_is_harmless(gpu, sleep):
    x = torch.zeros(1 << 20, device=gpu)
    for _ in range(50):
        sleep(1)
        ferry.to_numpy_async(x)
    gc.collect()
    x.fill_(3)
    assert (ferry.to_numpy(x) == 3).all()


def test_results_do_not_change_when_others_follow(gpu):
    x = torch.zeros(1 << 18, device=gpu)
    kept = []
    for value in range(40):
        x.fill_(value)
        kept.append(ferry.to_numpy(x))
        ferry.to_numpy(x + 1000)  # its block comes back at once
    assert all((a == value).all() for value, a in enumerate(kept))


def test_memory_given_to_torch_is_not_reused_while_torch_reads_it(gpu, sleep):
    """A pinned block that died while an asynchronous copy of torch's still reads it must rest."""
    side = torch.cuda.Stream()
    wanted = torch.empty(1 << 20, device=gpu)
    for value in range(5):
        a = ferry.to_numpy(torch.full((1 << 20,), float(value), device=gpu), copy=True)
        with torch.cuda.stream(side):
            sleep(20)
            wanted.copy_(torch.from_numpy(a), non_blocking=True)
        del a
        later = [ferry.to_numpy(torch.full((1 << 20,), -1.0, device=gpu), copy=True) for _ in range(4)]
        side.synchronize()
        assert (wanted == value).all().item()
        del later


def test_device_memory_does_not_grow(gpu):
    x = torch.zeros(1 << 20, device=gpu)
    for _ in range(20):
        ferry.to_numpy(x[::2])
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(200):
        ferry.to_numpy(x[::2])
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() <= before


def test_a_transfer_can_be_awaited(gpu, sleep):
    x = torch.zeros(1 << 18, device=gpu)

    async def both() -> tuple[np.ndarray, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticking = asyncio.create_task(tick())
        sleep(100)
        x.fill_(7)
        array = await ferry.to_numpy_async(x)
        ticking.cancel()
        return array, ticks

    array, ticks = asyncio.run(both())
    assert (array == 7).all()
    assert ticks > 5, "the event loop stood still"


def test_a_callback_gets_the_finished_transfer(gpu, sleep):
    x = torch.zeros(1 << 18, device=gpu)
    seen: list[float] = []
    sleep(10)
    x.fill_(7)
    transfer = ferry.to_numpy_async(x)
    transfer.add_done_callback(lambda done: seen.append(float(done.result()[0])))
    future = transfer.future()
    assert (future.result(timeout=60) == 7).all()
    assert (transfer.result() == 7).all()
    for _ in range(1000):
        if seen:
            break
        torch.cuda._sleep(2_000_000)
        torch.cuda.synchronize()
    assert seen == [7.0]
