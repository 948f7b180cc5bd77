"""Field cases: values that were read before they had arrived, and what may be read when."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import seen, until
from helpers.fake_cuda import PENDING, FakeCuda
from helpers.fake_cuda_arrays import ALL_KINDS, TableArray
from helpers.fake_cuda_driver import Driver
from helpers.orders import orders

every_kind = pytest.mark.parametrize("kind", ALL_KINDS.values(), ids=ALL_KINDS)


@pytest.fixture(autouse=True)
def legacy_again() -> Any:
    """Let no test leave another current stream behind."""
    yield
    TableArray.current_stream = None


def test_f001_an_asynchronous_copy_gives_no_array_before_it_is_complete(fake: FakeCuda):
    """Seen: a non-blocking copy to the host whose values were read too early."""
    last = (1 << 16) - 1
    x = TableArray(np.zeros(1 << 16, np.int32))
    ferry.to_numpy_async(x).result()
    x.write_later(np.arange(1 << 16))
    with fake.held():
        transfer = ferry.to_numpy_async(x)
        assert not isinstance(transfer, np.ndarray)
        assert not any(
            hasattr(transfer, name) for name in ("__array__", "__array_interface__", "__dlpack__", "__buffer__")
        )
        assert not transfer.done()
        with pytest.raises(ferry.TransferTimeout):
            transfer.result(timeout=0)
    assert transfer.result()[last] == last


@every_kind
def test_f001_blocking_is_the_default(fake: FakeCuda, kind: Any):
    x = kind(np.zeros(1000, np.int64))
    returned = threading.Event()
    found: list[Any] = []

    def read() -> None:
        fake.use_device(0)
        found.append(ferry.to_numpy(x)[-1])
        returned.set()

    x.write_later(np.arange(1000))
    thread = threading.Thread(target=read)
    with fake.held():
        thread.start()
        assert not returned.wait(0.05)
    thread.join(60)
    assert found == [999]


@pytest.mark.parametrize("call", ["to_numpy", "to_numpy_async"])
def test_f002_a_complex_volume_has_no_chunks_of_zeros(fake: FakeCuda, call: str):
    """Seen: a helper that copied without blocking, and images with chunks of zeros, not reproducibly."""
    rng = np.random.default_rng(2)
    volume = (rng.normal(size=(4, 16, 16)) + 1j * rng.normal(size=(4, 16, 16))).astype(np.complex64)
    x = TableArray(np.zeros_like(volume))
    for round_, order in enumerate(orders(fake)):
        x.write_later(volume * round_)
        made = ferry.to_numpy(x) if call == "to_numpy" else ferry.to_numpy_async(x).result()
        assert np.array_equal(made, volume * np.complex64(round_)), order


def test_f002_a_destination_that_is_read_early_shows_poison_on_the_double(fake: FakeCuda):
    """Wanted: a pattern in place of old values where a read comes too early."""
    x, out = TableArray(np.zeros(64, np.uint8)), ferry.zeros_pinned(64, "uint8")
    x.write_later(np.arange(64))
    with fake.held():
        transfer = ferry.to_numpy_async(x, out=out)
        early = out.copy()
    assert transfer.result() is out
    assert early.tolist() == [PENDING] * 64
    assert out.tolist() == list(range(64))


@every_kind
def test_f003_to_numpy_waits_for_the_stream_that_is_current(fake: FakeCuda, kind: Any):
    """Seen: asnumpy() under a stream that was not the default one came back before the data was there."""
    stream = Driver().stream()
    TableArray.current_stream = stream
    x = kind(np.zeros(32, np.float64), stream=stream)
    for round_, order in enumerate(orders(fake)):
        x.write_later(np.full(32, round_))
        assert (ferry.to_numpy(x) == round_).all(), order


def test_f004_a_scalar_is_never_the_one_that_was_there_before(fake: FakeCuda):
    """Seen: float(buffer.copy_(x.sum(), non_blocking=True)) gave the previous value."""
    loss = TableArray(np.float32(0))
    for round_, order in enumerate(orders(fake)):
        loss.write_later(np.float32(round_ + 0.5))
        assert ferry.to_python(loss) == round_ + 0.5, order
        assert float(ferry.to_numpy(loss)) == round_ + 0.5, order


def test_f004_scalars_of_many_steps_in_flight_keep_to_their_steps(fake: FakeCuda):
    loss = TableArray(np.float32(0))
    for order in orders(fake, 100):
        transfers = []
        for step in range(20):
            loss.write_later(np.float32(step))
            transfers.append(ferry.to_numpy_async(loss))
        assert [float(transfer.result()) for transfer in transfers] == list(range(20)), order


def test_f012_only_the_copys_own_event_is_waited_for(fake: FakeCuda):
    """Seen: tolist() blocked copies in other streams, and the time of queued work was called the copy's."""
    mine, others = Driver().stream(), Driver().stream()
    TableArray.current_stream = mine
    x, busy = TableArray(np.zeros(4, np.int32), stream=mine), TableArray(np.zeros(4, np.int32), stream=others)
    busy.write_later(np.full(4, 9))
    x.write_later([1, 2, 3, 4])
    with seen(fake) as made:
        assert ferry.to_python(x) == [1, 2, 3, 4]
        assert ferry.to_numpy(x).tolist() == [1, 2, 3, 4]
    assert busy.peek().tolist() == [0, 0, 0, 0]  # the other stream has not moved
    waits = {"cuCtxSynchronize", "cuStreamSynchronize", "cuStreamQuery", "cuCtxRecordEvent"}
    assert not waits & {line.split()[0] for line in made.lines}
    assert "legacy" not in made.streams
    fake.drain()


def test_f013_the_device_may_need_python_while_a_thread_waits_for_it(fake: FakeCuda):
    """Seen: waits that held the GIL, and so a deadlock with the thread whose work the device was waiting for."""
    x = TableArray(np.zeros(4, np.float32))
    x.write_later([1, 2, 3, 4])
    found: list[Any] = []
    ran_python = 0
    with fake.held():
        transfer = ferry.to_numpy_async(x)
        thread = threading.Thread(target=lambda: found.append(transfer.result().tolist()))
        thread.start()
        while ran_python < 200:  # only this lets the device go on
            ran_python += sum([1] * 1)
            assert found == []
            until(lambda: False, timeout_s=0.0005)
    thread.join(60)
    assert found == [[1, 2, 3, 4]]


@pytest.mark.parametrize("call", ["to_numpy", "to_numpy_async", "to_python", "to_numpy of a nest"])
def test_f014_inside_a_capture_a_copy_is_refused_and_the_capture_is_spared(fake: FakeCuda, call: str):
    """Seen: numpy() in a capture failed in the legacy stream and took the capture with it."""
    stream = Driver().stream()
    TableArray.current_stream = stream
    x = TableArray(np.arange(4), stream=stream)
    calls = {
        "to_numpy": lambda: ferry.to_numpy(x),
        "to_numpy_async": lambda: ferry.to_numpy_async(x),
        "to_python": lambda: ferry.to_python(x),
        "to_numpy of a nest": lambda: ferry.to_numpy({"x": [x]}),
    }
    fake.begin_capture(stream)
    with seen(fake) as made, pytest.raises(ferry.DeviceError, match="captur"):
        calls[call]()
    graph = fake.end_capture(stream)
    assert not any(line.startswith(("cuMemcpy", "cuEventRecord", "cuMemAlloc")) for line in made.lines)
    fake.launch_graph(graph, stream)
    fake.destroy_graph(graph)
    assert calls[call]() is not None


def test_f014_a_copy_into_memory_pinned_before_is_captured_and_replayed(fake: FakeCuda):
    stream = Driver().stream()
    TableArray.current_stream = stream
    x = TableArray(np.zeros(4, np.float32), stream=stream)
    out = ferry.zeros_pinned(4)
    fake.begin_capture(stream)
    slot = ferry.to_numpy_async(x, out=out)
    graph = fake.end_capture(stream)
    for value in (1, 2, 3):
        x.write_later(np.full(4, value))
        fake.launch_graph(graph, stream)
        assert slot.wait(stream).tolist() == [value] * 4
    fake.destroy_graph(graph)
    fake.drain()
