"""Many small tensors take few calls of the system, from where they lie, and every byte is in its place."""

from __future__ import annotations

import random
import secrets
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

import tensorferry as ferry
from helpers.faulty_system import InterruptedSystem
from tensorferry._io.batch import Batch
from tensorferry._io.entries import entries_of
from tensorferry._io.pipeline import Block
from tensorferry._io.save import save
from tensorferry._io.system import System
from tensorferry._native import core

SIZES = (0, 1, 3, 64, 1000, 40_000, 66_000, 300_000, 1_200_000)


class Counting(System):
    """Counts writes, and how many pieces of memory they were made of."""

    def __init__(self) -> None:
        self.pieces: list[int] = []

    def pwritev(self, fd: int, pieces: Any, offset: int) -> int:
        self.pieces.append(len(pieces))
        return super().pwritev(fd, pieces, offset)


@pytest.mark.parametrize("streamed", [False, True], ids=["known", "from an iterator"])
@pytest.mark.parametrize("nbytes", [16, 4096, 60_000])
def test_few_writes(tmp_path: Path, nbytes: int, streamed: bool) -> None:
    tree = {f"w{i}": np.full(nbytes, i % 251, np.uint8) for i in range(2000)}
    system = Counting()
    save(iter(tree.items()) if streamed else tree, tmp_path / "x.safetensors", system=system)
    assert len(system.pieces) <= 4 + 2000 / 512 + 2000 * nbytes / (1 << 20)
    assert max(system.pieces) <= 512
    assert (max(system.pieces) > 15) is not streamed  # which may use the same memory again, so it is copied
    found = safetensors.numpy.load_file(tmp_path / "x.safetensors")
    assert all(np.array_equal(found[name], array) for name, array in tree.items())


def _random_tensor(chance: random.Random, generator: np.random.Generator) -> Any:
    count = chance.choice(SIZES) // 4
    values = generator.standard_normal(max(count, 0)).astype(np.float32)
    way = chance.randrange(5)
    if way == 0:
        return np.repeat(values, 2)[::2]  # packed
    if way == 1:
        return torch.from_numpy(values.reshape(-1, 1)).t()
    return torch.from_numpy(values) if way == 2 else values


@pytest.mark.parametrize("end", [".safetensors", ".npz", "/"])
def test_any_mixture_of_sizes_layouts_and_ways(tmp_path: Path, end: str) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance, generator = random.Random(seed), np.random.default_rng(seed)
    for number in range(25):
        tree = {f"w{i}": _random_tensor(chance, generator) for i in range(chance.randrange(1, 60))}
        path = f"{tmp_path}/{number}{end}"
        options: dict[str, Any] = {
            "max_staging_bytes": chance.choice([64 << 10, 1 << 20, 64 << 20]),
            "checksum": chance.choice([None, "crc32c"]),
            "dtype": chance.choice([None, None, "float64"]),
        }
        if chance.random() < 0.3:
            options["system"] = InterruptedSystem(at_most=chance.choice([100_000, 999_999]))
        way = chance.randrange(3)
        if way == 0:
            save(tree, path, **options)
        elif way == 1:
            save(_reusing(tree), path, **options)
        else:
            options.pop("system", None)
            ferry.save_async(tree, path, **options).result()
        found = ferry.load(path)
        assert list(found) == list(tree)
        for name, x in tree.items():
            expected = np.asarray(x)
            if options["dtype"] is not None:
                expected = expected.astype(options["dtype"])
            assert found[name].dtype == expected.dtype
            assert np.array_equal(found[name], expected), name
        assert options["checksum"] is None or ferry.verify(path).checked == len(tree)


def _reusing(tree: dict[str, Any]) -> Any:
    """Yield everything in one piece of memory, which is overwritten as soon as the next tensor is asked for."""
    memory = np.empty(max(SIZES), np.uint8)
    for name, x in tree.items():
        array = np.asarray(x)
        lent = memory[: array.nbytes].view(array.dtype).reshape(array.shape)
        lent[...] = array
        yield name, lent
        memory[:] = 255


def test_a_batch_keeps_the_order_of_what_is_lent_and_copied() -> None:
    batch = Batch()
    batch.block = Block(np.zeros(16, np.uint8))
    first, second = np.arange(3, dtype=np.uint8), np.arange(10, 14, dtype=np.uint8)
    assert batch.copy(first) == 3
    assert batch.copy(second) == 4
    assert [piece.tolist() for piece in batch.pieces] == [[0, 1, 2, 10, 11, 12, 13]]
    batch.lend(second)
    assert batch.copy(first) == 3
    assert [piece.tolist() for piece in batch.pieces[1:]] == [[10, 11, 12, 13], [0, 1, 2]]
    assert (batch.nbytes, batch.lent_nbytes, batch.is_lent, batch.is_full) == (14, 7, True, False)
    assert [piece.tolist() for piece in batch.pop_lent()] == [[10, 11, 12, 13], [0, 1, 2]]
    assert (batch.nbytes, batch.lent_nbytes, batch.is_lent) == (7, 0, False)
    assert batch.copy(np.ones(100, np.uint8)) == 6
    assert batch.is_full
    assert [piece.size for piece in batch.pieces] == [
        7,
        6,
    ]  # three bytes that were copied behind what was lent are lost
    assert batch.pieces[-1].tolist() == [1] * 6


def test_the_bytes_of_what_can_be_written_from_where_it_lies() -> None:
    x = torch.arange(6, dtype=torch.int32).reshape(2, 3)
    memory, dtype, shape, identity = core.plain_bytes(x) or pytest.fail("it is plain")
    assert (dtype, shape) == (np.dtype(np.int32), (2, 3))
    assert memory.tobytes() == x.numpy().tobytes()
    assert not memory.flags.writeable
    assert np.shares_memory(memory, x.numpy())
    assert core.plain_bytes(x.detach())[3] == identity
    assert core.plain_bytes(x[:1])[3] != identity
    assert core.plain_bytes(x.view(torch.float32))[3] != identity
    assert core.plain_bytes(x.reshape(3, 2))[3] != identity
    gone = weakref.ref(x)
    del x
    assert gone() is None
    assert memory.view(np.int32).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "x",
    [
        torch.ones(3, 4).t(),
        torch.ones(3, 4)[:, ::2],
        torch.ones(3).expand(2, 3),
        np.ones(3, ">f4"),
        torch.ones(2, dtype=torch.complex64).conj(),
        torch.ones(2, dtype=torch.complex64).conj().imag,
        torch.ones(3).to_sparse(),
        torch.ones(3, device="meta"),
        torch._lazy_clone(torch.ones(1000)),
        np.ma.masked_array([1.0, 2.0]),
        np.array([None]),
        [1.0, 2.0],
        1.0,
        None,
    ],
    ids=lambda x: type(x).__name__,
)
def test_nothing_else_is_taken_for_it(x: Any) -> None:
    assert core.plain_bytes(x) is None


def test_a_snapshot_is_not_copied_by_being_looked_at() -> None:
    snapshot = torch._lazy_clone(torch.ones(1000))
    assert core.plain_bytes(snapshot) is None
    assert torch._C._is_cow_tensor(snapshot)


def test_the_same_memory_is_the_same_tensor_on_every_way() -> None:
    class Kind(torch.Tensor):
        """Takes Python to read."""

    x = torch.ones(1000)
    entries = entries_of({"a": x, "b": x.as_subclass(Kind), "c": torch.nn.Parameter(x), "d": x.clone()}).known
    assert entries is not None
    assert [entry.alias_of for entry in entries] == [None, "a", "a", None]
