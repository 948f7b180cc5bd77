"""Where the memory of copied tensors comes from, and when it goes back."""

import numpy as np
import pytest
import torch

import tensorferry as ferry

MIB = 1 << 20


@pytest.mark.parametrize("nbytes", [4, 4096, 8192, 65536, 3 * MIB])
def test_copies_are_aligned_to_cache_lines_and_private(nbytes):
    a = np.arange(nbytes // 4, dtype="f4")
    t = ferry.from_numpy(a, copy=True)
    assert t.data_ptr() % 64 == 0
    a[:] = -1
    assert torch.equal(t, torch.arange(nbytes // 4, dtype=torch.float32))


def test_memory_goes_back_when_the_last_tensor_over_it_dies():
    a = np.ones(MIB, "f8")
    before = ferry.pool_stats().in_use_nbytes
    t = ferry.from_numpy(a, copy=True)
    assert ferry.pool_stats().in_use_nbytes - before == a.nbytes
    part = t[5:7]
    del t
    assert ferry.pool_stats().in_use_nbytes - before == a.nbytes
    assert part.tolist() == [1, 1]
    del part
    assert ferry.pool_stats().in_use_nbytes == before


def test_freed_memory_is_used_again():
    a = np.ones(MIB, "f8")
    first = ferry.from_numpy(a, copy=True).data_ptr()
    assert ferry.from_numpy(a, dtype="float64", copy=True).data_ptr() == first


def test_torch_works_with_the_memory_as_with_its_own():
    t = ferry.from_numpy(np.arange(5000.0)[::-1])
    t += 1
    assert t.sum().item() == sum(range(1, 5001))
    shared = t.share_memory_()
    assert shared.tolist() == list(range(5000, 0, -1))
    other = torch.nn.Parameter(ferry.from_numpy(np.ones((64, 64)), dtype="float32"))
    (other.sum() * 2).backward()
    assert other.grad.unique().tolist() == [2]


def test_torch_cannot_enlarge_it_as_with_every_tensor_over_foreign_memory():
    t = ferry.from_numpy(np.ones(3000), copy=True)
    with pytest.raises(RuntimeError, match="not resizable"):
        t.resize_(4000)
