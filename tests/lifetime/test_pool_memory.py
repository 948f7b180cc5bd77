"""Memory goes back to the pool when the last array over it is gone, not before; in threads, forks and at exit too."""

from __future__ import annotations

import gc
import random
import threading

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.memory import address, resident_nbytes
from helpers.subprocess import stdout_of

MIB = 1 << 20
TENSOR = torch.arange(1 << 18, dtype=torch.float32)  # 1 MiB

HOLDERS = {
    "array": lambda a: a,
    "slice": lambda a: a[5:9],
    "view of a view": lambda a: a.reshape(512, 512).T[3:][::-1],
    "memoryview": memoryview,
    "view of a memoryview": lambda a: np.frombuffer(memoryview(a)[4:8], np.float32),
    "torch tensor": torch.from_numpy,
    "tensor of ours": ferry.from_numpy,
    "tensor by DLPack": torch.from_dlpack,
    "capsule": lambda a: ferry.to_dlpack(a, writable=True).__dlpack__(),
    "iterator": lambda a: a.flat,
    "array in a record": lambda a: {"kept": [a.view(np.int32)]},
}


@pytest.mark.parametrize("kind", HOLDERS)
def test_a_block_is_lent_again_only_when_nobody_reaches_it(kind):
    ferry.trim()
    copied = ferry.to_numpy(TENSOR, copy=True)
    place = address(copied)
    holder = HOLDERS[kind](copied)
    del copied
    gc.collect()
    others = [ferry.to_numpy(TENSOR, copy=True) for _ in range(3)]
    assert place not in map(address, others)
    del holder
    gc.collect()
    assert address(ferry.to_numpy(TENSOR, copy=True)) == place


@pytest.mark.parametrize("seed", range(5))
def test_patterns_written_through_views_survive_all_that_others_do(seed):
    print(f"seed {seed}")
    rng = random.Random(seed)
    sizes = [100, 9_000, 70_000, 75_000, MIB, 3 * MIB]
    held: list[tuple[np.ndarray, int]] = []
    with ferry.options(host_pool_nbytes=rng.choice([0, MIB, 1 << 30])):
        for number in range(400):
            size = rng.choice(sizes) + rng.randrange(64)
            copied = ferry.to_numpy(np.full(size, number % 251, np.uint8), copy=True)
            if rng.random() < 0.3:
                copied += 1
                held.append((copied[: size // 2][::-2], (number % 251 + 1) % 256))
            else:
                held.append((copied, number % 251))
            del copied
            while len(held) > 12 or (held and rng.random() < 0.4):
                array, pattern = held.pop(rng.randrange(len(held)))
                assert (array == pattern).all()
            if rng.random() < 0.05:
                ferry.trim(rng.choice([0, MIB]))
    assert all((array == pattern).all() for array, pattern in held)


def test_threads_copy_and_drop_at_once():
    before = ferry.pool_stats()
    errors: list[str] = []

    def work(number: int) -> None:
        values = np.full(1 << 16, number, np.float32)
        kept: list[np.ndarray] = []
        for i in range(150):
            kept.append(ferry.to_numpy(values[: 4096 * (1 + (i + number) % 16)], copy=True))
            if len(kept) > 4 and not (kept.pop(i % 4) == number).all():
                errors.append(f"thread {number}, copy {i}")
            if i % 40 == 0:
                ferry.trim()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    after = ferry.pool_stats()
    assert (after.in_use_nbytes, after.in_use_blocks) == (before.in_use_nbytes, before.in_use_blocks)
    assert after.hits + after.misses - before.hits - before.misses == 6 * 150


def test_an_array_may_die_in_another_thread():
    before = ferry.pool_stats()
    arrays = [ferry.to_numpy(TENSOR, copy=True) for _ in range(4)]
    thread = threading.Thread(target=arrays.clear)
    thread.start()
    thread.join()
    assert ferry.pool_stats().in_use_nbytes == before.in_use_nbytes


def test_memory_does_not_grow_over_many_copies():
    tensors = [torch.zeros(n, dtype=torch.uint8) for n in (1000, 9_000, 70_000)]
    for tensor in tensors * 100:
        ferry.to_numpy(tensor, copy=True)
    gc.collect()
    for _ in range(3):  # other threads of the process take memory, too, but not each time
        resident, before = resident_nbytes(), ferry.pool_stats()
        for _ in range(34_000):
            for tensor in tensors:
                ferry.to_numpy(tensor, copy=True)
        after, grown_nbytes = ferry.pool_stats(), resident_nbytes() - resident
        assert (after.idle_nbytes, after.misses) == (before.idle_nbytes, before.misses)
        assert after.hits - before.hits == 2 * 34_000
        if grown_nbytes <= MIB:
            break
    assert grown_nbytes <= MIB


def test_trimmed_memory_leaves_the_process():
    ferry.trim()
    resident = resident_nbytes()
    with ferry.options(host_pool_nbytes=1 << 40):
        copied = ferry.to_numpy(np.ones(64 * MIB, np.uint8), copy=True)
        del copied
        assert resident_nbytes() - resident > 60 * MIB
        assert ferry.trim() == 64 * MIB
    assert resident_nbytes() - resident < 4 * MIB


def test_a_forked_child_has_a_pool_of_its_own():
    printed = stdout_of(
        """
        import os, threading, warnings
        warnings.simplefilter("ignore")
        import numpy as np
        import tensorferry as ferry
        source = np.arange(1 << 18)
        kept, dropped = ferry.to_numpy(source, copy=True), ferry.to_numpy(source, copy=True)
        del dropped
        ferry.trim(1 << 22), ferry.pool_stats()  # imported: a child waits for ever for what another thread imports
        stop = threading.Event()
        def work():
            while not stop.is_set():
                ferry.to_numpy(source, copy=True), ferry.trim(0 if source[0] else 1 << 22)
        threads = [threading.Thread(target=work) for _ in range(3)]
        for t in threads: t.start()
        codes = []
        for _ in range(10):
            child = os.fork()
            if child == 0:
                copies = [ferry.to_numpy(source + i, copy=True) for i in range(4)]
                kept[:] = -1
                right = all((c == source + i).all() for i, c in enumerate(copies))
                os._exit(0 if right and ferry.trim() >= 0 and ferry.pool_stats().idle_nbytes == 0 else 1)
            codes.append(os.waitpid(child, 0)[1])
        stop.set()
        for t in threads: t.join()
        print(codes, (kept == source).all())
        """
    )
    assert printed == f"{[0] * 10} True"


def test_an_interpreter_exits_cleanly_with_arrays_and_idle_blocks():
    printed = stdout_of(
        """
        import atexit, builtins, sys
        import numpy as np
        import tensorferry as ferry
        source = np.arange(1 << 18)
        held = [ferry.to_numpy(source[:n], copy=True) for n in (3, 3000, 1 << 18)]
        held.append(held); builtins.held = sys.held = np.held = held
        ferry.to_numpy(source, copy=True)
        class Late:
            def __init__(self): self.kept = ferry.to_numpy(source, copy=True)
            def __del__(self): self.kept.sum()
        builtins.late = Late()
        atexit.register(lambda: ferry.to_numpy(source, copy=True).sum())
        atexit.register(ferry.trim)
        print(ferry.pool_stats().in_use_blocks)
        """
    )
    assert printed == "3"
