"""``await transfer``: under asyncio without blocking the loop, in any loop, and refused elsewhere."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from types import SimpleNamespace

import pytest

import tensorferry as ferry
from helpers.transfers import PLAN, NativeDouble, PendingDouble, transfer_of, used_background
from tensorferry._transfer import arrival, awaiting
from tensorferry._transfer import transfer as transfer_module
from tensorferry._transfer.transfer import Transfer

LOST = ferry.DeviceError("device 0", "an earlier operation failed", "restart the process")


async def value_of(transfer: Transfer[object]) -> object:
    return await transfer


def test_a_transfer_that_is_done_is_awaited_without_a_turn_of_the_loop():
    value = object()

    async def main() -> list[object]:
        turns: list[object] = []
        asyncio.get_running_loop().call_soon(turns.append, "turn")
        return [*turns, await Transfer.completed(value, PLAN), *turns]

    assert asyncio.run(main()) == [value]


def test_the_loop_goes_on_while_the_device_works():
    transfer, pending = transfer_of(lambda: "value")

    async def main() -> tuple[object, int]:
        task = asyncio.ensure_future(value_of(transfer))
        turns = 0
        while turns < 20:
            await asyncio.sleep(0)
            turns += 1
            assert not task.done()
        thread = pending.finish_soon(0.01)
        value = await asyncio.wait_for(task, 10)
        thread.join()
        return value, turns

    assert asyncio.run(main()) == ("value", 20)
    assert pending.waits == []  # nobody waited on a thread


def test_the_internal_thread_wakes_the_loop(monkeypatch):
    monkeypatch.setattr(awaiting, "_PAUSE_S", 1000)
    transfer, pending = transfer_of(lambda: "value")
    thread = pending.finish_soon(0.02)
    assert asyncio.run(asyncio.wait_for(transfer, 10)) == "value"
    thread.join()


def test_several_awaits_of_one_transfer_get_the_same_object():
    transfer, pending = transfer_of(lambda: [1])

    async def main() -> list[object]:
        thread = pending.finish_soon(0.01)
        values = await asyncio.gather(*(value_of(transfer) for _ in range(5)), transfer)
        thread.join()
        return [*values, await transfer, await transfer]

    values = asyncio.run(main())
    assert len(values) == 8
    assert all(value is transfer.result() for value in values)


def test_awaiting_raises_the_error_and_counts_as_its_delivery(caplog):
    transfer, pending = transfer_of(lambda: None)
    thread = pending.finish_soon(0.01)
    pending.error = LOST
    with pytest.raises(ferry.DeviceError) as caught:
        asyncio.run(value_of(transfer))
    thread.join()
    assert caught.value is LOST
    del transfer
    assert caplog.records == []


@pytest.mark.parametrize("ends_at_once", [False, True], ids=["before the end", "just before the end"])
def test_cancelling_the_task_leaves_the_transfer_valid(ends_at_once):
    complaints: list[object] = []
    transfer, pending = transfer_of(lambda: "value")

    async def main() -> object:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        task = asyncio.ensure_future(value_of(transfer))
        other = asyncio.ensure_future(value_of(transfer))
        await asyncio.sleep(0.01)
        task.cancel()
        if ends_at_once:
            pending.finish()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert transfer.done() == ends_at_once
        assert not transfer.cancelled()
        pending.finish()
        return await other

    assert asyncio.run(main()) == transfer.result(0) == "value"
    assert complaints == []


def test_timeouts_of_asyncio_leave_nothing_behind():
    transfer, pending = transfer_of(lambda: "value")

    async def main() -> object:
        for _ in range(10):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(transfer, 0.002)
        assert transfer._arrival._calls == {}
        pending.finish()
        return await asyncio.wait_for(transfer, 10)

    assert asyncio.run(main()) == "value"


def test_a_loop_that_is_closed_before_the_end_harms_nothing(caplog):
    transfer, pending = transfer_of(lambda: "value")
    loop = asyncio.new_event_loop()
    steps = value_of(transfer).__await__()

    async def main() -> None:
        waiter = next(steps)
        waiter._asyncio_future_blocking = False

    loop.run_until_complete(main())
    loop.close()
    pending.finish()
    assert transfer.result(0) == "value"
    assert asyncio.run(value_of(transfer)) == "value"
    steps.close()
    assert caplog.records == []


def test_two_loops_at_once_may_await_one_transfer():
    transfer, pending = transfer_of(lambda: [1])
    values: list[object] = []
    threads = [threading.Thread(target=lambda: values.append(asyncio.run(value_of(transfer)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.02)
    pending.finish()
    for thread in threads:
        thread.join(10)
    assert len(values) == 4
    assert all(value is transfer.result() for value in values)


@pytest.mark.parametrize(("nbytes", "in_loop"), [(1 << 10, True), (64 << 20, False)], ids=["small", "large"])
def test_the_last_step_of_what_is_large_is_not_made_in_the_loops_thread(nbytes, in_loop):
    transfer, pending = transfer_of(threading.get_ident, nbytes=nbytes)
    pending.finish()
    assert (asyncio.run(value_of(transfer)) == threading.get_ident()) == in_loop


def test_the_loop_goes_on_while_another_thread_makes_the_result():
    going, may_end = threading.Event(), threading.Event()

    def finish() -> bool:
        going.set()
        return may_end.wait(20)

    transfer, pending = transfer_of(finish)
    pending.finish()
    thread = threading.Thread(target=transfer.result)
    thread.start()
    going.wait(20)

    async def main() -> object:
        asyncio.get_running_loop().call_later(0.01, may_end.set)
        return await asyncio.wait_for(transfer, 10)

    assert asyncio.run(main()) is True
    thread.join()


def test_without_the_internal_thread_the_loop_asks_by_a_timer(monkeypatch):
    monkeypatch.setattr(awaiting, "_PAUSE_S", 1000)
    background = used_background(NativeDouble(), on=False)
    for module in (arrival, awaiting, transfer_module):
        monkeypatch.setattr(module, "background", background)
    transfer, pending = transfer_of(lambda: "value", PendingDouble())

    async def main() -> object:
        asyncio.get_running_loop().call_later(0.2, lambda: pending.finish(calls=False))
        return await asyncio.wait_for(transfer, 10)

    assert asyncio.run(main()) == "value"
    assert 3 <= pending.asked <= 80  # the pauses grow to 10 ms


def test_an_await_outlives_the_internal_threads_end():
    transfer, pending = transfer_of(lambda: "value")

    async def main() -> object:
        asyncio.get_running_loop().call_later(0.01, lambda: pending.finish(calls=False))
        return await asyncio.wait_for(transfer, 10)

    assert asyncio.run(main()) == "value"


def test_without_a_loop_it_is_refused():
    transfer, pending = transfer_of(lambda: "value")
    with pytest.raises(ferry.ArgumentError, match=r"only a running asyncio loop .* in a coroutine of asyncio"):
        value_of(transfer).send(None)
    pending.finish()
    assert transfer.result() == "value"


def test_under_trio_it_is_refused_with_what_to_write(monkeypatch):
    sniffio = SimpleNamespace(current_async_library=lambda: "trio", AsyncLibraryNotFoundError=RuntimeError)
    monkeypatch.setitem(sys.modules, "sniffio", sniffio)
    transfer, _ = transfer_of(lambda: "value")
    with pytest.raises(ferry.ArgumentError, match=r"under trio: .* await trio\.to_thread\.run_sync\(transfer\.result"):
        value_of(transfer).send(None)


def test_where_sniffio_knows_no_library_the_loop_is_asked(monkeypatch):
    def unknown() -> str:
        raise LookupError

    sniffio = SimpleNamespace(current_async_library=unknown, AsyncLibraryNotFoundError=LookupError)
    monkeypatch.setitem(sys.modules, "sniffio", sniffio)
    transfer, pending = transfer_of(lambda: "value")
    pending.finish()
    assert asyncio.run(value_of(transfer)) == "value"
