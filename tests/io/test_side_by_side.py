"""Files of one save that several threads write at the same time: whole or absent all the same."""

from __future__ import annotations

import errno
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

import tensorferry as ferry
from helpers.faulty_system import FaultySystem, names_of, temporary_files
from helpers.saved_trees import same_bits
from helpers.subprocess import run_python
from tensorferry._io.save import save
from tensorferry._io.system import System

LARGE = 1 << 17  # of float32: 512 KiB, which is worth a thread
WAYS = {"folder": ("x/", {}), "shards": ("x.safetensors", {"max_shard_size": LARGE * 4})}
every_way = pytest.mark.parametrize("way", WAYS)


def tensors(value: float, count: int = 6) -> dict[str, torch.Tensor]:
    """Return large tensors, each of one value."""
    return {f"w{i}": torch.full((LARGE,), float(value + i)) for i in range(count)}


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


class Meeting(System):
    """Notes which threads write; where they are to meet, the first writes of two files wait for each other."""

    def __init__(self, *, meet: bool) -> None:
        self.threads: set[threading.Thread] = set()
        self._met = threading.Barrier(2)
        self._seen: set[int] = set()
        self._meet = meet

    def pwritev(self, fd: int, pieces: Any, offset: int) -> int:
        thread = threading.current_thread()
        first = thread not in self.threads
        self.threads.add(thread)
        if self._meet and first and len(self.threads) <= 2 and thread is not threading.main_thread():
            self._met.wait(60)  # BrokenBarrierError unless two threads are here at once
        return super().pwritev(fd, pieces, offset)


@every_way
def test_two_files_are_written_at_once(tmp_path: Path, way: str) -> None:
    end, options = WAYS[way]
    system = Meeting(meet=True)
    save(tensors(1), f"{tmp_path}/{end}", system=system, **options)
    assert len(system.threads - {threading.main_thread()}) == 2
    assert same_bits(ferry.load(f"{tmp_path}/{end}", to="torch"), tensors(1))


@every_way
@pytest.mark.parametrize("reason", ["one thread", "durable", "small", "from an iterator"])
def test_otherwise_the_calling_thread_writes(tmp_path: Path, way: str, reason: str) -> None:
    end, options = WAYS[way]
    tree = {name: x[:1000] for name, x in tensors(1).items()} if reason == "small" else tensors(1)
    if reason == "one thread":
        torch.set_num_threads(1)
    if reason == "small" and way == "shards":
        options = {"max_shard_size": 4000}
    system = Meeting(meet=False)
    given: Any = iter(tree.items()) if reason == "from an iterator" else tree
    save(given, f"{tmp_path}/{end}", system=system, durable=reason == "durable", **options)
    assert system.threads == {threading.main_thread()}
    assert same_bits(ferry.load(f"{tmp_path}/{end}", to="torch"), tree)


def test_the_index_has_the_order_of_the_tree(tmp_path: Path) -> None:
    tree = {"large": torch.ones(LARGE), "small": torch.ones(2), "turned": torch.ones(300, 500).t(), **tensors(2)}
    ferry.save(tree, f"{tmp_path}/x/")
    found = ferry.load(f"{tmp_path}/x")
    assert list(found) == list(tree)
    assert all(np.array_equal(array, tree[name].numpy()) for name, array in found.items())


def test_others_read_each_shard(tmp_path: Path) -> None:
    report = ferry.save(tensors(3), tmp_path / "x.safetensors", max_shard_size=LARGE * 8, checksum="crc32c")
    assert [Path(path).name for path in report.paths[1:]] == [f"x-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]
    found: dict[str, torch.Tensor] = {}
    for path in report.paths[1:]:
        found.update(safetensors.torch.load_file(path))
    assert list(found) == list(tensors(3))
    assert same_bits(found, tensors(3))
    assert ferry.verify(tmp_path / "x.safetensors").checked == 6


@every_way
@pytest.mark.parametrize("replaces", [False, True], ids=["new", "replacing"])
def test_any_failure_leaves_the_old_or_nothing(tmp_path: Path, way: str, replaces: bool) -> None:
    end, options = WAYS[way]
    path = f"{tmp_path}/{end}"
    old, new = tensors(1, 3), tensors(2, 3)
    failed_in = set()
    for n in range(1000):
        for left in tmp_path.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        if replaces:
            ferry.save(old, path, overwrite=True, **options)
        before = names_of(tmp_path)
        system = FaultySystem(n, errno.ENOSPC)
        failure: ferry.ExportError | None = None
        try:
            save(new, path, system=system, overwrite=True, **options)
        except ferry.ExportError as error:
            failure = error
        if failure is not None:
            assert failure.errno == errno.ENOSPC
            failed_in.add(system.failed_in)
            assert names_of(tmp_path) == before
            assert not replaces or same_bits(ferry.load(path, to="torch"), old)
        else:  # also where looking for what dead processes left fails
            assert same_bits(ferry.load(path, to="torch"), new)
            if n >= len(system.calls):
                break
    assert {name.startswith("tensorferry-files") for name in failed_in} == {True, False}
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("tensorferry-files")]


@every_way
def test_progress_comes_in_the_calling_thread_and_may_end_the_save(tmp_path: Path, way: str) -> None:
    end, options = WAYS[way]
    seen: list[tuple[int, int | None]] = []
    callers = set()

    def progress(done: int, total: int | None) -> None:
        seen.append((done, total))
        callers.add(threading.current_thread())

    report = ferry.save(tensors(1), f"{tmp_path}/{end}", progress=progress, **options)
    done = [said[0] for said in seen]
    assert callers == {threading.main_thread()}
    assert done == sorted(set(done))
    assert len(done) >= 6
    assert {said[1] for said in seen} == {6 * LARGE * 4}
    assert report.nbytes <= done[-1] <= report.file_nbytes

    def stop(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ferry.save(tensors(2), f"{tmp_path}/{end}", progress=stop, overwrite=True, **options)
    assert temporary_files(tmp_path) == []
    assert same_bits(ferry.load(f"{tmp_path}/{end}", to="torch"), tensors(1))


def test_a_long_write_is_seen_before_it_ends(tmp_path: Path) -> None:
    seen = threading.Event()

    class Slow(System):
        """The last piece of a file waits until somebody has heard of those before."""

        def pwritev(self, fd: int, pieces: Any, offset: int) -> int:
            if offset >= 24 << 20:
                assert seen.wait(60)
            return super().pwritev(fd, pieces, offset)

    heard: list[int] = []

    def progress(done: int, total: int | None) -> None:
        heard.append(done)
        seen.set()

    save({"w": np.ones(32 << 20, np.uint8)}, f"{tmp_path}/x/", system=Slow(), progress=progress)
    assert heard[0] < 32 << 20 <= heard[-1]


@every_way
def test_without_threads_the_caller_writes(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    end, options = WAYS[way]
    system = Meeting(meet=False)
    save(tensors(1), f"{tmp_path}/{end}", system=system, **options)
    assert system.threads == {threading.main_thread()}
    assert same_bits(ferry.load(f"{tmp_path}/{end}", to="torch"), tensors(1))


@every_way
def test_a_thread_may_save_after_the_main_thread_has_ended(tmp_path: Path, way: str) -> None:
    end, options = WAYS[way]
    code = f"""
        import atexit, threading
        import numpy as np
        import tensorferry as ferry

        def save(name):
            if threading.current_thread() is not threading.main_thread():
                threading.main_thread().join()
            tree = {{str(i): np.full({LARGE}, i, np.float32) for i in range(6)}}
            ferry.save(tree, name + {end!r}, **{options!r})

        threading.Thread(target=save, args=({f"{tmp_path}/thread"!r},)).start()
        atexit.register(save, {f"{tmp_path}/atexit"!r})
    """
    finished = run_python(code)
    assert (finished.returncode, finished.stderr) == (0, "")
    for name in ("thread", "atexit"):
        found = ferry.load(f"{tmp_path}/{name}{end}")
        assert [array[0] for array in found.values()] == [0, 1, 2, 3, 4, 5]
