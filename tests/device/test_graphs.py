"""Copies captured into CUDA graphs: what replays bring, in which order, and how long memory is kept."""

from __future__ import annotations

import gc
import signal
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.captures import MODES, capture, order_after
from helpers.device_path import leases_in_use, seen, settle, until
from helpers.fake_cuda import PER_THREAD, FakeCuda, as_test
from helpers.fake_cuda_arrays import DeviceArray, InterfaceArray, TableArray
from helpers.fake_cuda_driver import Driver
from tensorferry._transfer.graph_slot import graph_slot
from tensorferry.types import GraphSlot

SEEDS = 200
CAPTURED_CALLS = {
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxGetId",
    "cuGraphRetainUserObject",
    "cuMemcpyDtoHAsync",
    "cuPointerGetAttributes",
    "cuStreamGetCaptureInfo",
    "cuStreamGetCtx",
    "cuStreamIsCapturing",
    "cuUserObjectCreate",
}


@pytest.fixture
def stream(fake: FakeCuda) -> int:
    """A framework's stream, which is its current one."""
    made = Driver().stream()
    TableArray.current_stream = made
    return made


def ready(fake: FakeCuda, stream: int, kind: Any = TableArray, count: int = 6) -> tuple[Any, Any]:
    """A tensor whose value is there, and pinned memory for it."""
    x = kind(np.zeros(count, np.int32), stream=stream)
    out = ferry.empty_pinned(count, "int32")
    fake.drain()
    return x, out


def captured(fake: FakeCuda, stream: int, x: Any, out: Any) -> tuple[int, Any]:
    with capture(fake, stream) as made:
        slot = ferry.to_numpy_async(x, out=out, stream=stream)
    return made.graph, slot


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("named", [False, True], ids=["stream asked for", "stream named"])
@pytest.mark.parametrize("producer", [TableArray, DeviceArray, InterfaceArray], ids=lambda kind: kind.__name__)
def test_each_replay_fills_the_destination_again(
    any_schedule: FakeCuda, stream: int, mode: str, named: bool, producer: Any
):
    x, out = ready(any_schedule, stream, producer)
    with capture(any_schedule, stream, mode) as made:
        slot = ferry.to_numpy_async(x, out=out, stream=stream if named else None)
    assert isinstance(slot, GraphSlot)
    for replay in range(3):
        x.write_later(np.arange(6) + replay)
        any_schedule.launch_graph(made.graph, stream)
        x.write_later(np.full(6, -1))
        assert slot.wait(stream) is out
        assert out.tolist() == [replay, *range(replay + 1, replay + 6)]
    any_schedule.destroy_graph(made.graph)


def test_replays_see_the_values_of_their_time_in_every_order(fake: FakeCuda, stream: int):
    x, out = ready(fake, stream)
    graph, slot = captured(fake, stream, x, out)
    for seed in range(SEEDS):
        fake.schedule("shuffled", seed)
        x.write_later(np.full(6, seed))
        fake.launch_graph(graph, stream)
        x.write_later(np.full(6, -1))
        assert slot.wait().tolist() == [seed] * 6, f"seed {seed}"
    fake.destroy_graph(graph)


def test_nothing_is_allocated_asked_or_waited_for_in_a_capture(fake: FakeCuda, stream: int):
    x, out = ready(fake, stream)
    with capture(fake, stream) as capturing, seen(fake) as made:
        ferry.to_numpy_async(x, out=out)
    fake.destroy_graph(capturing.graph)
    assert {line.split()[0] for line in made.lines} <= CAPTURED_CALLS
    assert made.copies("DtoH") == [24]
    assert len(made.streams) == 1


def test_a_nest_is_captured_as_a_whole_and_numbers_pass_through(any_schedule: FakeCuda, stream: int):
    x, out = ready(any_schedule, stream)
    y, other = ready(any_schedule, stream, count=3)
    with capture(any_schedule, stream) as made:
        slot = ferry.to_numpy_async({"x": x, "rest": [y, 7]}, out={"x": out, "rest": [other, None]})
    x.write_later(np.arange(6))
    y.write_later(np.arange(3))
    any_schedule.launch_graph(made.graph, stream)
    arrived = slot.wait()
    assert arrived["x"] is out
    assert arrived["rest"][0] is other
    assert arrived["rest"][1] == 7
    assert (out.tolist(), other.tolist()) == (list(range(6)), [0, 1, 2])
    assert set(slot.plan.parts) == {"['x']", "['rest'][0]"}
    any_schedule.destroy_graph(made.graph)


def test_rows_at_a_step_and_empty_tensors_need_no_packing(any_schedule: FakeCuda, stream: int):
    x, _ = ready(any_schedule, stream, count=12)
    rows, out = x.view((3, 2), (4, 1)), ferry.empty_pinned((3, 2), "int32", order="F")
    nothing = TableArray(np.zeros((0, 2), np.int32), stream=stream)
    with capture(any_schedule, stream) as made:
        slot = ferry.to_numpy_async([rows, nothing], out=[out, np.zeros((0, 2), np.int32)])
    x.write_later(np.arange(12))
    any_schedule.launch_graph(made.graph, stream)
    assert slot.wait()[0].tolist() == [[0, 1], [4, 5], [8, 9]]
    any_schedule.destroy_graph(made.graph)


def test_a_forked_stream_joins_the_capture(any_schedule: FakeCuda, stream: int):
    forked = Driver().stream()
    x, out = ready(any_schedule, stream)
    with capture(any_schedule, stream) as made:
        order_after(any_schedule, forked, stream)
        slot = ferry.to_numpy_async(x, out=out, stream=forked)
        order_after(any_schedule, stream, forked)
    x.write_later(np.arange(6))
    any_schedule.launch_graph(made.graph, stream)
    assert slot.wait(stream).tolist() == list(range(6))
    any_schedule.destroy_graph(made.graph)


def test_the_per_thread_stream_can_be_captured(any_schedule: FakeCuda):
    TableArray.current_stream = PER_THREAD
    x, out = ready(any_schedule, PER_THREAD)
    graph, slot = captured(any_schedule, PER_THREAD, x, out)
    x.write_later(np.arange(6))
    any_schedule.launch_graph(graph, PER_THREAD)
    assert slot.wait().tolist() == list(range(6))
    any_schedule.destroy_graph(graph)


def test_the_graph_keeps_memory_that_nobody_else_has(any_schedule: FakeCuda, stream: int):
    fake = any_schedule
    x, out = ready(fake, stream)
    x.write_later(np.arange(6))
    fake.drain()
    before, address = leases_in_use(), out.ctypes.data
    graph, slot = captured(fake, stream, x, out)
    del x, out, slot
    gc.collect()
    settle(fake)
    assert leases_in_use() == before
    others = [ferry.empty_pinned(6, "int32") for _ in range(20)]
    assert address not in [other.ctypes.data for other in others]
    fake.launch_graph(graph, stream)
    fake.destroy_graph(graph)  # while it may be running
    settle(fake)
    assert until(lambda: settle(fake) is None and fake.live("device_bytes") < 24)
    del others
    gc.collect()
    assert leases_in_use() == before - 1


def test_memory_that_its_owner_pinned_stays_pinned_for_the_graph(any_schedule: FakeCuda, stream: int):
    x, _ = ready(any_schedule, stream)
    out = np.zeros(6, np.int32)
    with ferry.pinned(out):
        graph, slot = captured(any_schedule, stream, x, out)
    registrations = any_schedule.live("host_registrations")
    x.write_later(np.arange(6))
    any_schedule.launch_graph(graph, stream)
    assert slot.wait().tolist() == list(range(6))
    any_schedule.destroy_graph(graph)
    assert until(lambda: settle(any_schedule) is None and any_schedule.live("host_registrations") < registrations)


def test_a_slot_outlives_its_graph(any_schedule: FakeCuda, stream: int):
    x, out = ready(any_schedule, stream)
    graph, slot = captured(any_schedule, stream, x, out)
    x.write_later(np.arange(6))
    any_schedule.launch_graph(graph, stream)
    any_schedule.destroy_graph(graph)
    assert slot.wait().tolist() == list(range(6))
    assert slot.out is out


def test_a_capture_that_is_thrown_away_keeps_nothing(fake: FakeCuda, stream: int):
    x, out = ready(fake, stream)
    fake.begin_capture(stream)
    ferry.to_numpy_async(x, out=out)
    with as_test():
        Driver().code("cuStreamQuery", stream)
    assert fake.try_end_capture(stream)[1] is None
    del x
    assert until(lambda: settle(fake) is None and fake.live("device_bytes") < 24)


def test_a_slot_says_what_it_is(fake: FakeCuda, stream: int):
    x, out = ready(fake, stream)
    graph, slot = captured(fake, stream, x, out)
    plan = slot.plan
    assert (plan.path, plan.copies, plan.nbytes_moved, plan.waits) == ("graph", 1, 24, ())
    assert plan.steps[-1] == "keep the tensor's and the destination's memory, by the graph"
    assert repr(slot) == "<GraphSlot of 24 bytes for each replay>"
    old = graph_slot(SimpleNamespace(held_for_good=True, nbytes=24, asks=[]), out, plan)  # type: ignore[arg-type]
    assert "for good: this driver does not tell when a graph is gone" in old.plan.steps[-1]
    fake.destroy_graph(graph)


def test_a_failure_of_the_replay_is_raised_by_wait(fake: FakeCuda, stream: int):
    x, out = ready(fake, stream)
    graph, slot = captured(fake, stream, x, out)
    fake.launch_graph(graph, stream)
    fake.fault("execution", 719)
    with pytest.raises(ferry.DeviceError, match="LAUNCH_FAILED"):
        slot.wait()
    fake.destroy_graph(graph)


def test_ctrl_c_ends_a_wait_and_harms_nothing(fake: FakeCuda, stream: int):
    x, out = ready(fake, stream)
    graph, slot = captured(fake, stream, x, out)
    x.write_later(np.arange(6))
    with fake.held():
        fake.launch_graph(graph, stream)
        timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])

        def wait_and_be_interrupted() -> None:
            timer.start()
            slot.wait()

        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            wait_and_be_interrupted()
        assert time.monotonic() - start < 30
        timer.join()
    assert slot.wait().tolist() == list(range(6))
    fake.destroy_graph(graph)


def test_a_wait_lets_other_threads_run(fake: FakeCuda, stream: int):
    x, out = ready(fake, stream)
    graph, slot = captured(fake, stream, x, out)
    returned = threading.Event()

    def wait() -> None:
        fake.use_device(0)
        slot.wait(stream)
        returned.set()

    with fake.held():
        fake.launch_graph(graph, stream)
        thread = threading.Thread(target=wait)
        thread.start()
        assert not returned.wait(0.05)  # this thread runs meanwhile
    thread.join(20)
    assert returned.is_set()
    fake.destroy_graph(graph)


def test_the_internal_thread_lets_go_of_what_a_graph_held(fake: FakeCuda, stream: int):
    x, out = ready(fake, stream)
    ferry.to_numpy_async(x).result()  # the thread runs from now on
    graph, slot = captured(fake, stream, x, out)
    leases = leases_in_use()
    del x, out, slot
    gc.collect()
    assert leases_in_use() == leases
    fake.destroy_graph(graph)
    fake.drain()  # the driver tells, and tensorferry is called no more
    assert until(lambda: leases_in_use() < leases)
