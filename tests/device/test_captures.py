"""Captures survive whatever is asked of us: refusals inside of one, and transfers beside one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.captures import MODES, capture
from helpers.device_path import RING_NBYTES, seen, until
from helpers.fake_cuda import LEGACY, FakeCuda, as_test
from helpers.fake_cuda_arrays import ALL_KINDS, DeviceArray, OldCapsuleArray, TableArray
from helpers.fake_cuda_driver import Driver
from tensorferry.types import GraphSlot, Transfer

COUNT = 6
TOUCHING = ("cuMem", "cuEvent", "cuStreamWait", "cuStreamCreate", "cuStreamQuery", "cuUserObject", "cuGraph")
Call = Callable[[Any, Any], Any]


@pytest.fixture
def stream(fake: FakeCuda) -> int:
    made = Driver().stream()
    TableArray.current_stream = made
    return made


def ready(fake: FakeCuda, stream: int, kind: Any = TableArray) -> tuple[Any, Any]:
    x, out = kind(np.arange(COUNT, dtype=np.int32), stream=stream), ferry.empty_pinned(COUNT, "int32")
    fake.drain()
    return x, out


def touched(lines: list[str]) -> list[str]:
    """Calls that enqueue, allocate, ask for work or wait for it."""
    return [line for line in lines if line.startswith(TOUCHING)]


REFUSED: dict[str, Call] = {
    "to_numpy": lambda x, _: ferry.to_numpy(x),
    "to_numpy without pinned memory": lambda x, _: ferry.to_numpy(x, pinned=False),
    "to_numpy with a cast": lambda x, _: ferry.to_numpy(x, dtype="float64"),
    "to_numpy with a checked cast": lambda x, _: ferry.to_numpy(x, dtype="int8", casting="same_value"),
    "to_numpy of a nest": lambda x, _: ferry.to_numpy({"a": 1, "b": [x]}),
    "to_numpy into pinned memory": lambda x, out: ferry.to_numpy(x, out=out),
    "to_numpy into ordinary memory": lambda x, _: ferry.to_numpy(x, out=np.zeros(COUNT, np.int32)),
    "to_python": lambda x, _: ferry.to_python(x),
    "check of values": lambda x, _: ferry.check(x, finite=True, range=(0, 9)),
    "stack": lambda x, _: ferry.stack([x, x], to="numpy"),
    "from_numpy": lambda x, _: ferry.from_numpy(x),
    "to_numpy_async without out": lambda x, _: ferry.to_numpy_async(x),
    "to_numpy_async into ordinary memory": lambda x, _: ferry.to_numpy_async(x, out=np.zeros(COUNT, np.int32)),
    "to_numpy_async with a cast": lambda x, _: ferry.to_numpy_async(x, out=np.zeros(COUNT, np.float64)),
    "to_numpy_async into another byte order": lambda x, out: ferry.to_numpy_async(x, out=out.view(">i4")),
    "to_numpy_async with a snapshot": lambda x, out: ferry.to_numpy_async(x, out=out, snapshot=True),
    "to_numpy_async of a nest with one left out": lambda x, out: ferry.to_numpy_async([x, x], out=[out, None]),
    "to_numpy_async of a nest with one on the host": lambda x, out: ferry.to_numpy_async(
        [np.ones(2), x], out=[np.zeros(2), out]
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_captured_is_refused_untouched(fake: FakeCuda, stream: int, mode: str, call: Call):
    x, out = ready(fake, stream)
    with capture(fake, stream, mode) as made, seen(fake) as record, pytest.raises(ferry.FerryError) as caught:
        call(x, out)
    assert all((caught.value.given, caught.value.why, caught.value.instead))
    assert touched(record.lines) == []
    assert ferry.to_numpy(x).tolist() == list(range(COUNT))
    fake.destroy_graph(made.graph)


def test_what_would_need_packing_is_refused_with_the_remedy(fake: FakeCuda, stream: int):
    x, _ = ready(fake, stream)
    repeated, out = x.view((1025,), (0,)), ferry.empty_pinned(1025, "int32")
    refused = pytest.raises(ferry.LayoutError, match=r"more than 1024 pieces; call \.contiguous")
    with capture(fake, stream) as made, seen(fake) as record, refused:
        ferry.to_numpy_async(repeated, out=out)
    assert touched(record.lines) == []
    fake.destroy_graph(made.graph)


FINE: dict[str, Call] = {
    "plan": lambda x, _: ferry.plan(x),
    "plan with out": lambda x, out: ferry.plan(x, out=out),
    "explain": lambda x, _: str(ferry.explain(x)),
    "describe": lambda x, _: str(ferry.describe(x)),
    "check of the dtype": lambda x, _: ferry.check(x, dtype="int32", shape=(COUNT,)),
    "shares_memory": lambda x, out: ferry.shares_memory(x, out),
    "pool_stats": lambda *_: ferry.pool_stats(),
    "trim": lambda *_: ferry.trim(),
    "options": lambda *_: ferry.options(background=True),
    "hold of nothing new": lambda _, out: ferry.hold(out, LEGACY),
    "conversion of host memory": lambda _, out: ferry.to_numpy_async([out, 1]).result(),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", FINE.values(), ids=FINE)
def test_what_touches_no_work_goes_on_in_a_capture(fake: FakeCuda, stream: int, mode: str, call: Call):
    x, out = ready(fake, stream)
    with capture(fake, stream, mode) as made:
        call(x, out)
    assert made.graph != 0  # the capture was not invalidated
    fake.destroy_graph(made.graph)


@pytest.mark.parametrize("kind", ALL_KINDS.values(), ids=ALL_KINDS)
def test_every_producer_is_refused_when_its_stream_is_named(fake: FakeCuda, stream: int, kind: Any):
    x, _ = ready(fake, stream, kind)
    with capture(fake, stream) as made, seen(fake) as record, pytest.raises(ferry.DeviceError, match="captured"):
        ferry.to_numpy(x, stream=stream)
    assert touched(record.lines) == []
    fake.destroy_graph(made.graph)


def test_a_producer_that_tells_nothing_draws_no_stream_of_copies_into_its_capture(fake: FakeCuda, stream: int):
    x, _ = ready(fake, stream, OldCapsuleArray)
    other = TableArray(np.arange(3, dtype=np.int32))
    TableArray.current_stream = None
    with capture(fake, stream) as made:
        with pytest.raises(ferry.DeviceError, match="captured"):
            ferry.to_numpy(x)
        transfer = ferry.to_numpy_async(other, snapshot=True)  # its copy is made on a stream of ours
        assert transfer.result().tolist() == [0, 1, 2]
    fake.destroy_graph(made.graph)
    assert ferry.to_numpy(x).tolist() == list(range(COUNT))


def test_an_old_producer_is_captured_where_its_stream_is_named(fake: FakeCuda, stream: int):
    x, out = ready(fake, stream, OldCapsuleArray)
    with capture(fake, stream) as made:
        slot = ferry.to_numpy_async(x, out=out, stream=stream)
    assert set(x.asked) == {-1}  # it orders nothing, for it could order work from outside before the capture
    fake.launch_graph(made.graph, stream)
    with pytest.raises(ferry.FerryError, match="name the stream"):
        slot.wait()
    assert slot.wait(stream).tolist() == list(range(COUNT))
    fake.destroy_graph(made.graph)


def test_somebody_elses_mistake_in_a_capture_is_named(fake: FakeCuda, stream: int):
    x, out = ready(fake, stream)
    fake.begin_capture(stream)
    with as_test():
        Driver().code("cuStreamQuery", stream)
    calls: list[Callable[[], Any]] = [lambda: ferry.to_numpy(x), lambda: ferry.to_numpy_async(x, out=out)]
    for call in calls:
        with pytest.raises(ferry.DeviceError, match="capture was invalidated"):
            call()
    assert fake.try_end_capture(stream)[1] is None
    assert any("cuStreamQuery" in line for line in fake.captures())
    assert ferry.to_numpy(x).tolist() == list(range(COUNT))


def test_the_legacy_stream_is_left_alone_while_a_blocking_stream_is_captured(fake: FakeCuda):
    blocking = Driver().stream(blocking=True)
    x, out = ready(fake, LEGACY)
    TableArray.current_stream = None
    with capture(fake, blocking) as made, seen(fake) as record:
        for call in (lambda: ferry.to_numpy(x), lambda: ferry.to_numpy_async(x, out=out)):
            with pytest.raises(ferry.DeviceError, match="legacy default stream"):
                call()
    assert touched(record.lines) == []
    fake.destroy_graph(made.graph)


def test_a_wait_inside_a_capture_is_refused(fake: FakeCuda, stream: int):
    x, out = ready(fake, stream)
    with capture(fake, stream) as made:
        slot = ferry.to_numpy_async(x, out=out)
        with pytest.raises(ferry.DeviceError, match="captured"):
            slot.wait()
    fake.destroy_graph(made.graph)


@pytest.mark.parametrize("mode", MODES)
def test_on_another_stream_the_thread_that_captures_transfers_as_usual(fake: FakeCuda, stream: int, mode: str):
    other = Driver().stream()
    x, out = ready(fake, other)
    with capture(fake, stream, mode) as made:
        assert ferry.to_numpy(x, stream=other).tolist() == list(range(COUNT))
        transfer = ferry.to_numpy_async(x, out=out, stream=other)
        assert isinstance(transfer, Transfer)
        assert transfer.result() is out
    fake.destroy_graph(made.graph)


def _everything(x: Any, large: Any) -> None:
    """Each way of a transfer once, pools that grow and memory that is pinned included."""
    assert ferry.to_numpy(x).tolist() == list(range(COUNT))
    assert ferry.to_numpy_async({"x": x}, snapshot=True).result()["x"].tolist() == list(range(COUNT))
    assert ferry.to_numpy(large, pinned=False).sum() == 0
    assert ferry.to_numpy(DeviceArray(np.ones(3))).sum() == 3
    fresh = ferry.empty_pinned(RING_NBYTES + 4096, "uint8")
    host = np.zeros(3 << 12, np.uint8)
    with ferry.pinned(host):
        pass
    del fresh
    ferry.trim()


@pytest.mark.parametrize("mode", MODES)
def test_a_capture_in_another_thread_is_not_disturbed(any_schedule: FakeCuda, mode: str):
    fake, side = any_schedule, Driver().stream()
    TableArray.current_stream = None
    x, _ = ready(fake, LEGACY)
    large = TableArray(np.zeros(2 * RING_NBYTES, np.uint8))
    theirs, their_out = ready(fake, side)
    begun, over, came = threading.Event(), threading.Event(), []

    def capture_slowly() -> None:
        fake.use_device(0)
        with capture(fake, side, mode) as made:
            slot = ferry.to_numpy_async(theirs, out=their_out, stream=side)
            begun.set()
            over.wait(60)
        came.append((made.graph, slot))

    thread = threading.Thread(target=capture_slowly)
    thread.start()
    try:
        assert begun.wait(20)
        _everything(x, large)
    finally:
        over.set()
        thread.join(20)
    [(graph, slot)] = came
    assert isinstance(slot, GraphSlot)
    theirs.write_later(np.full(COUNT, 5), stream=side)
    fake.launch_graph(graph, side)
    assert slot.wait(side).tolist() == [5] * COUNT
    fake.destroy_graph(graph)
    assert until(lambda: fake.live("pending") == 0 or fake.drain() is None)
