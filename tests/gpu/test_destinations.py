"""Where results land: pinned and pageable arrays of the caller, nests, tensors on the device."""

from __future__ import annotations

import collections

import numpy as np
import pytest
import torch

import tensorferry as ferry

SHAPE = (257, 1023)


def numbers(gpu: torch.device) -> torch.Tensor:
    return torch.arange(SHAPE[0] * SHAPE[1], device=gpu, dtype=torch.float32).reshape(SHAPE)


DESTINATIONS = {
    "pinned": lambda path: ferry.empty_pinned(SHAPE, np.float32),
    "pageable": lambda path: np.empty(SHAPE, np.float32),
    "Fortran": lambda path: np.empty(SHAPE, np.float32, order="F"),
    "strided": lambda path: np.empty((SHAPE[0], 2 * SHAPE[1]), np.float32)[:, ::2],
    "a part of a pinned array": lambda path: ferry.empty_pinned((300, 1100), np.float32)[3:260, 7:1030],
    "a file": lambda path: np.memmap(path / "x.bin", np.float32, "w+", shape=SHAPE),
    "backwards": lambda path: np.empty(SHAPE, np.float32)[::-1],
}


@pytest.mark.parametrize("kind", DESTINATIONS)
@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
def test_out_gets_the_values_and_comes_back(gpu, tmp_path, sleep, kind, transposed):
    x = numbers(gpu)
    source = x.T.contiguous().T if transposed else x
    out = DESTINATIONS[kind](tmp_path)
    out[...] = -1
    sleep(10)
    source.mul_(3)
    assert ferry.to_numpy(source, out=out) is out
    np.testing.assert_array_equal(out, source.cpu().numpy())


@pytest.mark.parametrize("kind", DESTINATIONS)
def test_a_transfer_fills_out(gpu, tmp_path, sleep, kind):
    x = numbers(gpu)
    out = DESTINATIONS[kind](tmp_path)
    sleep(10)
    x.mul_(3)
    transfer = ferry.to_numpy_async(x, out=out)
    x.zero_()
    assert transfer.result() is out
    np.testing.assert_array_equal(out, np.arange(out.size, dtype=np.float32).reshape(SHAPE) * 3)


def test_bytes_beside_a_strided_destination_stay(gpu):
    whole = np.full((SHAPE[0], 2 * SHAPE[1]), -1, np.float32)
    ferry.to_numpy(numbers(gpu), out=whole[:, ::2])
    assert (whole[:, 1::2] == -1).all()
    np.testing.assert_array_equal(whole[:, ::2], numbers(gpu).cpu().numpy())


def test_pinned_arrays_are_pinned_for_torch(gpu):
    a = ferry.empty_pinned((1000, 1000), np.float32)
    assert a.shape == (1000, 1000)
    assert torch.from_numpy(a).is_pinned()
    assert not torch.from_numpy(np.empty(1000)).is_pinned()


Pair = collections.namedtuple("Pair", "first second")


def test_a_nest_keeps_its_shape_and_its_order(gpu, sleep):
    shared = torch.zeros(1000, device=gpu)
    leaves = [torch.full((i + 1, 17), float(i), device=gpu) for i in range(64)]
    nest = {"leaves": leaves, "pair": Pair(shared, "text"), "again": shared, "host": torch.arange(3), "none": None}
    sleep(20)
    shared.fill_(5)
    arrays = ferry.to_numpy(nest)
    assert [a.shape for a in arrays["leaves"]] == [(i + 1, 17) for i in range(64)]
    assert all((a == i).all() for i, a in enumerate(arrays["leaves"]))
    assert type(arrays["pair"]) is Pair
    assert arrays["pair"].second == "text"
    assert arrays["again"] is arrays["pair"].first
    assert (arrays["again"] == 5).all()
    np.testing.assert_array_equal(arrays["host"], [0, 1, 2])
    assert arrays["none"] is None


def test_a_nest_in_flight_keeps_the_values_at_the_call(gpu, sleep):
    leaves = [torch.zeros(n, device=gpu) for n in (1, 100, 10_000, 1_000_000)]
    sleep(20)
    for i, leaf in enumerate(leaves):
        leaf.fill_(i)
    transfer = ferry.to_numpy_async(leaves)
    for leaf in leaves:
        leaf.fill_(-1)
    assert all((a == i).all() for i, a in enumerate(transfer.result()))


@pytest.mark.parametrize("kind", ["pageable", "pinned"])
@pytest.mark.parametrize("layout", ["contiguous", "every second column", "Fortran", "backwards"])
def test_arrays_reach_the_device(gpu, kind, layout):
    whole = ferry.empty_pinned((64, 4096), np.float32) if kind == "pinned" else np.empty((64, 4096), np.float32)
    whole[...] = np.arange(whole.size, dtype=np.float32).reshape(whole.shape)
    views = {"contiguous": whole, "every second column": whole[:, ::2], "Fortran": whole.T, "backwards": whole[::-1]}
    array = views[layout]
    tensor = ferry.to_device(array, gpu)
    assert tensor.device.type == "cuda"
    np.testing.assert_array_equal(tensor.cpu().numpy(), array)


def test_arrays_reach_a_given_tensor(gpu):
    destination = torch.zeros(1 << 20, device=gpu)
    array = np.arange(1 << 20, dtype=np.float32)
    assert ferry.to_device(array, gpu, out=destination) is destination
    np.testing.assert_array_equal(destination.cpu().numpy(), array)
