"""A copy is the value at the call, in the order of the producer's stream, which sleeps here before it writes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensorferry as ferry

SHAPES = {"one element": (1,), "4 KiB": (1024,), "4 MiB": (1024, 1024), "strided": None}


def source(gpu: torch.device, kind: str) -> torch.Tensor:
    """Zeros; every kind takes another path."""
    shape = SHAPES[kind]
    return torch.zeros(512, 1024, device=gpu)[:, ::2] if shape is None else torch.zeros(shape, device=gpu)


@pytest.mark.parametrize("kind", SHAPES)
def test_to_numpy_waits_for_the_producers_stream(gpu, stream, sleep, kind):
    x = source(gpu, kind)
    sleep(30)
    x.fill_(7)
    assert (ferry.to_numpy(x) == 7).all()


@pytest.mark.parametrize("kind", SHAPES)
def test_a_transfer_waits_for_the_producers_stream(gpu, stream, sleep, kind):
    x = source(gpu, kind)
    sleep(30)
    x.fill_(7)
    assert (ferry.to_numpy_async(x).result() == 7).all()


@pytest.mark.parametrize("kind", SHAPES)
def test_a_transfer_keeps_the_value_at_the_call(gpu, stream, sleep, kind):
    x = source(gpu, kind)
    sleep(10)
    x.fill_(1)
    transfer = ferry.to_numpy_async(x)
    x.fill_(2)
    assert (transfer.result() == 1).all()
    assert (ferry.to_numpy(x) == 2).all()


@pytest.mark.parametrize("kind", SHAPES)
def test_streams_ordered_after_the_call_do_not_change_it(gpu, stream, sleep, kind):
    x = source(gpu, kind)
    torch.cuda.synchronize()
    other = torch.cuda.Stream()
    sleep(10)
    x.fill_(1)
    transfer = ferry.to_numpy_async(x)
    other.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(other):
        x.fill_(2)
    assert (transfer.result() == 1).all()


def test_a_stream_can_be_named(gpu, sleep):
    x = torch.zeros(1 << 20, device=gpu)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        sleep(30)
        x.fill_(7)
    assert (ferry.to_numpy(x, stream=side) == 7).all()
    with torch.cuda.stream(side):
        sleep(30)
        x.fill_(8)
    assert (ferry.to_numpy(x, stream=side.cuda_stream) == 8).all()


def test_transfers_in_a_row_keep_their_own_values(gpu, stream):
    x = torch.zeros(1 << 16, device=gpu)
    transfers = []
    for value in range(100):
        x.fill_(value)
        transfers.append(ferry.to_numpy_async(x))
    for value, transfer in enumerate(transfers):
        assert (transfer.result() == value).all()


def test_an_enqueued_transfer_does_not_wait(gpu, stream, sleep):
    x = torch.zeros(1 << 16, device=gpu)
    ferry.to_numpy_async(x).result()  # whatever the first use sets up
    sleep(200)
    x.fill_(7)
    transfer = ferry.to_numpy_async(x)
    assert not transfer.done()
    with pytest.raises(ferry.TransferTimeout):
        transfer.result(timeout=0.001)
    assert (transfer.result() == 7).all()
    assert transfer.done()


def test_to_device_is_ordered_with_the_consumers_stream(gpu, stream, sleep):
    a = np.arange(1 << 20, dtype=np.float32)
    sleep(30)
    t = ferry.to_device(a, gpu)
    a[:] = -1  # the value at the call counts
    doubled = t * 2
    np.testing.assert_array_equal(doubled.cpu().numpy(), np.arange(1 << 20, dtype=np.float32) * 2)
