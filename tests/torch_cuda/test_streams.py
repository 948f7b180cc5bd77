"""Streams, devices and memory of the environment: who is ordered after whom, and who has which context."""

from __future__ import annotations

import ctypes
import gc
import threading
from typing import Any

import pytest
import torch

from helpers.counting_capsules import read_offer
from helpers.exchange_tables import ATTRIBUTE
from helpers.fake_cuda import LEGACY, as_test
from helpers.fake_cuda_driver import Driver

CUDA, CPU = 2, 1


def entry_of_table(number: int) -> Any:
    """A function of torch's exchange table; they lie behind its version and its predecessor."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(getattr(torch.Tensor, ATTRIBUTE), b"dlpack_exchange_api")
    return ctypes.c_void_p.from_address(table + 16 + 8 * number).value


def answer_of_table(device: int, kind: int = CUDA) -> int | None:
    """What torch's exchange table says is the current stream."""
    answer = ctypes.c_void_p(99)
    ask = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)(entry_of_table(4))
    assert ask(kind, device, ctypes.addressof(answer)) == 0
    return answer.value


def current_context() -> int | None:
    """The thread's current context, as the driver has it."""
    with as_test():
        return Driver().get_handle("cuCtxGetCurrent")


def test_the_exchange_table_gives_the_current_stream_of_each_device(cuda: Any):
    side, there = torch.cuda.Stream(), torch.cuda.Stream(device=1)
    assert answer_of_table(0) is None
    with torch.cuda.stream(side):
        assert (answer_of_table(0), answer_of_table(1)) == (side.cuda_stream, None)
        with torch.cuda.stream(there):
            assert (answer_of_table(0), answer_of_table(1)) == (side.cuda_stream, there.cuda_stream)
    assert (answer_of_table(0), answer_of_table(1)) == (None, None)
    assert answer_of_table(0, CPU) is None


def test_the_current_stream_has_the_handle_that_torch_gives(cuda: Any):
    assert torch.cuda.current_stream().cuda_stream == 0
    assert cuda.current_handle == LEGACY
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        assert torch.cuda.current_stream("cuda:0").cuda_stream == cuda.current_handle == side.cuda_stream
        assert side.__cuda_stream__() == (0, side.cuda_stream)
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_current_stream_and_device_belong_to_a_thread(cuda: Any):
    seen: list[Any] = []
    with torch.cuda.stream(torch.cuda.Stream(device=1)):
        thread = threading.Thread(
            target=lambda: seen.append((torch.cuda.current_device(), torch.cuda.current_stream(1).cuda_stream))
        )
        thread.start()
        thread.join()
        assert torch.cuda.current_device() == 1
    assert torch.cuda.current_device() == 0
    assert seen == [(0, 0)]


def test_the_pool_gives_its_streams_out_in_turn(cuda: Any):
    handles = [torch.cuda.Stream().cuda_stream for _ in range(64)]
    assert len(set(handles)) == 32
    assert handles[:32] == handles[32:]
    assert torch.cuda.Stream(priority=-1).cuda_stream not in handles
    assert torch.cuda.ExternalStream(handles[3]).cuda_stream == handles[3]


def test_switching_the_device_switches_the_context(cuda: Any):
    torch.empty(1, device="cuda:0")
    first = current_context()
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        assert current_context() != first
        assert torch.empty(1, device="cuda").get_device() == 1
    assert current_context() == first


def test_nothing_of_torch_is_in_the_products_trace(cuda: Any):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x = torch.arange(4, device="cuda").clone()
    event = side.record_event()
    event.synchronize()
    assert x.cpu().tolist() == [0, 1, 2, 3]
    assert cuda.fake.trace() == []


def test_side_streams_are_ordered_by_waiting_for_each_other(any_schedule: Any):
    side, other = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.arange(4, device="cuda")
    other.wait_event(side.record_event())
    with torch.cuda.stream(other):
        y = x + 1
        y.add_(x)
    torch.cuda.current_stream().wait_stream(other)
    assert y.cpu().tolist() == [1, 3, 5, 7]


def test_events_and_streams_say_whether_they_are_done(cuda: Any):
    event, side = torch.cuda.Event(), torch.cuda.Stream()
    assert event.query()
    with torch.cuda.stream(side):
        x = torch.ones(3, device="cuda")
        event.record()
    assert not event.query()
    assert not side.query()
    side.synchronize()
    assert event.query()
    assert cuda.fake.live("pending") == 0
    x.fill_(2)
    torch.cuda.synchronize()
    assert cuda.fake.live("pending") == 0


def test_work_is_enqueued_and_happens_when_the_schedule_says(cuda: Any):
    x = torch.tensor([1, 2, 3], dtype=torch.uint8).to("cuda")
    assert cuda.peek(x).tolist() == [0xDE] * 3
    x.cpu()
    assert cuda.peek(x).tolist() == [1, 2, 3]
    x.fill_(7)
    assert cuda.peek(x).tolist() == [1, 2, 3]
    made = [x.clone(), torch.stack([x, x]), torch.zeros_like(x), x[::2].contiguous(), x.to("cuda:1")]
    assert [set(cuda.peek(one)) for one in made] == [{0xDE}] * 5
    cuda.fake.schedule("eager")
    assert cuda.peek(x).tolist() == [7] * 3
    assert cuda.peek(cuda.settled(torch.tensor([5], dtype=torch.uint8))).tolist() == [5]


def test_a_copy_between_devices_is_ordered_on_both(cuda: Any):
    cuda.fake.schedule("shuffled", 5)
    for _ in range(20):
        a = torch.arange(6, device="cuda:0").reshape(2, 3)
        b = a.t().to("cuda:1")
        a.fill_(-1)
        with torch.cuda.device(1):
            c = b + 1
        assert b.get_device() == c.get_device() == 1
        assert c.tolist() == [[1, 4], [2, 5], [3, 6]]


def test_dlpack_orders_the_consumers_stream_after_the_current_one(cuda: Any):
    side, consumer = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.arange(3, device="cuda")
        x.__dlpack__(stream=consumer.cuda_stream)
    consumer.synchronize()
    assert side.query()


def test_the_exchange_table_gives_tensors_that_hold_their_memory(cuda: Any):
    before, given = cuda.fake.live("device_bytes"), ctypes.c_void_p()
    x = torch.zeros(2, 3, dtype=torch.bfloat16, device="cuda:1").t()
    give = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(entry_of_table(1))
    assert give(x, ctypes.addressof(given)) == 0
    with pytest.raises(BufferError, match="different CUDA device index"):
        x.__dlpack__(stream=-1)  # torch asks for its current device here, not in the table
    with torch.cuda.device(1):
        offer = read_offer(x.__dlpack__(stream=-1, max_version=(1, 0)))
    assert (offer.device, offer.shape, offer.strides, offer.data) == ((CUDA, 1), (3, 2), (1, 3), x.data_ptr())
    tensor = given.value + 32  # behind version, context, deleter and flags
    assert ctypes.c_void_p.from_address(tensor).value == x.data_ptr()
    assert tuple((ctypes.c_int32 * 2).from_address(tensor + 8)) == (CUDA, 1)
    del x, offer
    gc.collect()
    cuda.fake.drain()
    assert cuda.fake.live("device_bytes") == before + 12
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.c_void_p.from_address(given.value + 16).value)(given.value)
    cuda.fake.drain()
    assert cuda.fake.live("device_bytes") == before


def test_memory_goes_back_when_its_stream_gets_there(cuda: Any):
    side, before = torch.cuda.Stream(), cuda.fake.live("device_bytes")
    with torch.cuda.stream(side):
        x = torch.zeros(100, device="cuda")
        part = x[10:20]
    del x
    gc.collect()
    assert cuda.fake.live("device_bytes") == before + 400  # the view holds it
    del part
    gc.collect()
    assert cuda.fake.live("device_bytes") == before + 400  # the stream has not got there
    side.synchronize()
    assert cuda.fake.live("device_bytes") == before


def test_memory_may_go_back_on_any_thread(any_schedule: Any):
    before = any_schedule.fake.live("device_bytes")
    for _ in range(20):
        held = [torch.zeros(100, device="cuda")]
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
    any_schedule.fake.drain()
    assert any_schedule.fake.live("device_bytes") == before
