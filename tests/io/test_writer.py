"""``Writer.put``: tensors one by one, which may change at once; whole, or nothing is left."""

from __future__ import annotations

import errno
import gc
import os
import shutil
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.faulty_system import FaultySystem, names_of
from helpers.saved_trees import FORMATS, same_bits, tree
from helpers.subprocess import run_python, stdout_of
from helpers.writers import fail_within, writer_on
from tensorferry._io.system import System

ENDS = {**FORMATS, "zarr": ".zarr"}
every_format = pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)


class SlowSystem(System):
    """Holds every write back until `gate` is set."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def pwritev(self, fd: int, pieces: Any, offset: int) -> int:
        assert self.gate.wait(60)
        return super().pwritev(fd, pieces, offset)


@every_format
@pytest.mark.parametrize("staging", ["64KiB", "64MiB"], ids="in {}".format)
def test_a_tensor_may_change_as_soon_as_put_returns(tmp_path: Path, end: str, staging: str) -> None:
    expected, sources = tree(5), {name: tensor.clone() for name, tensor in tree(5).items()}
    with ferry.Writer(f"{tmp_path}/x{end}", max_staging_bytes=staging, checksum="crc32c") as writer:
        for name, tensor in sources.items():
            writer.put(name, tensor)
            tensor.zero_()
    report = writer.close()
    assert (report.tensors, report.path) == (len(expected), writer.path)
    assert same_bits(ferry.load(report.path, to="torch"), expected)
    assert ferry.verify(report.path).checked == len(expected)


def test_put_returns_before_anything_is_written(tmp_path: Path) -> None:
    system = SlowSystem()
    writer = writer_on(system, tmp_path / "x.npz")
    x = np.arange(200_000)
    writer.put("x", x)
    x[:] = 0
    system.gate.set()
    writer.close()
    assert np.array_equal(np.load(tmp_path / "x.npz")["x"], np.arange(200_000))


def test_a_caller_that_is_faster_than_the_disk_waits(tmp_path: Path) -> None:
    system = SlowSystem()
    writer = writer_on(system, tmp_path / "x.npz", max_staging_bytes=1 << 20)
    given: list[int] = []

    def give() -> None:
        for number in range(40):
            writer.put(str(number), np.full(100_000, number, np.uint8))
            given.append(number)

    thread = threading.Thread(target=give)
    thread.start()
    thread.join(0.3)
    assert 1 <= len(given) <= 12
    system.gate.set()
    thread.join(60)
    writer.close()
    found = ferry.load(tmp_path / "x.npz")
    assert all((found[str(number)] == number).all() for number in range(40))
    assert writer._thread._pool.most_in_use <= 1 << 19


@every_format
def test_threads_put_side_by_side(tmp_path: Path, end: str) -> None:
    with ferry.Writer(f"{tmp_path}/x{end}", max_staging_bytes="256KiB") as writer:

        def give(number: int) -> None:
            for step in range(10):
                writer.put(f"t{number}-{step}", np.full(20_000, number * 10 + step, np.int32))

        threads = [threading.Thread(target=give, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    found = ferry.load(f"{tmp_path}/x{end}")
    assert len(found) == 40
    for name, array in found.items():
        number, step = map(int, name[1:].split("-"))
        assert array.shape == (20_000,)
        assert (array == number * 10 + step).all()


@every_format
def test_an_exception_removes_everything(tmp_path: Path, end: str) -> None:
    writer = ferry.Writer(f"{tmp_path}/x{end}")
    writer.put("a", np.ones(100_000))
    with pytest.raises(ZeroDivisionError):
        fail_within(writer, lambda writer: writer.flush())
    assert names_of(tmp_path) == []
    with pytest.raises(ferry.ExportError, match="given up"):
        writer.put("b", np.ones(3))


@every_format
def test_an_exception_keeps_what_was_to_be_replaced(tmp_path: Path, end: str) -> None:
    ferry.save(tree(1), f"{tmp_path}/x{end}")
    with pytest.raises(ZeroDivisionError):
        fail_within(
            ferry.Writer(f"{tmp_path}/x{end}", overwrite=True), lambda writer: writer.put("a", np.ones(100_000))
        )
    assert same_bits(ferry.load(f"{tmp_path}/x{end}", to="torch"), tree(1))
    with ferry.Writer(f"{tmp_path}/x{end}", overwrite=True) as writer:
        writer.put("a", np.ones(10))
    assert list(ferry.load(f"{tmp_path}/x{end}")) == ["a"]


@every_format
def test_what_is_there_is_not_replaced_unasked(tmp_path: Path, end: str) -> None:
    ferry.save(tree(1), f"{tmp_path}/x{end}")
    with pytest.raises(ferry.ExportError, match="overwrite=True"):
        ferry.Writer(f"{tmp_path}/x{end}")
    assert same_bits(ferry.load(f"{tmp_path}/x{end}", to="torch"), tree(1))


def test_a_tensor_that_is_refused_does_not_end_the_writer(tmp_path: Path) -> None:
    with ferry.Writer(tmp_path / "x.npz") as writer:
        writer.put("a", torch.ones(3))
        with pytest.raises(ferry.DTypeError, match="'b'"):
            writer.put("b", ["text"])
        with pytest.raises(ferry.ArgumentError, match="second tensor named 'a'"):
            writer.put("a", torch.zeros(3))
        with pytest.raises(ferry.ArgumentError, match="name is text"):
            writer.put(3, torch.zeros(3))  # type: ignore[arg-type]
        with pytest.raises(ferry.ExportError, match="cannot grow"):
            writer.append(torch.zeros(3))
        writer.put("b", 2.5)
    found = ferry.load(tmp_path / "x.npz")
    assert (found["a"].tolist(), float(found["b"])) == ([1, 1, 1], 2.5)


def test_a_name_that_the_format_refuses_is_told_by_the_next_call(tmp_path: Path) -> None:
    writer = ferry.Writer(tmp_path / "x.npz")
    writer.put("../a", np.ones(3))
    with pytest.raises(ferry.ExportError, match="outside of the folder"):
        writer.close()
    assert names_of(tmp_path) == []
    with pytest.raises(ferry.ExportError, match="outside of the folder"):
        writer.close()


def test_closing_again_returns_the_same_report(tmp_path: Path) -> None:
    writer = ferry.Writer(tmp_path / "x.npy", dtype="float16", metadata={"a": "b"})
    writer.put("any", torch.ones(3))
    report = writer.close()
    assert writer.close() is report
    assert np.load(tmp_path / "x.npy").dtype == np.float16
    assert ferry.inspect(tmp_path / "x.npy").metadata == {"a": "b"}
    with pytest.raises(ferry.ExportError, match="closed"):
        writer.put("more", torch.ones(3))


@every_format
def test_every_failing_call_leaves_nothing(tmp_path: Path, end: str) -> None:
    for n in range(1000):
        system = FaultySystem(n, errno.ENOSPC)
        failed = ""
        try:
            writer = writer_on(system, f"{tmp_path}/x{end}", durable=True)
            try:
                writer.put("a", np.ones(300_000))
                writer.put("b", torch.ones(300, 100).t())
                writer.close()
            finally:
                writer.abort()
        except ferry.ExportError as error:
            failed = str(error)
        if not failed or "may not be on the disk yet" in failed:
            assert ferry.load(f"{tmp_path}/x{end}")["b"].sum() == 30_000
            if len(system.calls) <= n:
                break
            _remove(tmp_path)
        else:
            assert names_of(tmp_path) == []
            assert os.strerror(errno.ENOSPC) in failed
    assert n > 5


def _remove(folder: Path) -> None:
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def test_a_dropped_writer_leaves_nothing_and_warns(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        writer = ferry.Writer(tmp_path / "x.safetensors")
        writer.put("a", np.ones(3))
        thread = writer._thread._thread
        del writer
        gc.collect()
        assert thread is not None
        thread.join(60)
    assert [str(w.message) for w in caught if "never closed: nothing was written" in str(w.message)]
    assert names_of(tmp_path) == []


def test_a_writer_that_is_open_at_the_end_leaves_nothing_and_says_so(tmp_path: Path) -> None:
    finished = run_python(
        f"""
        import numpy as np, tensorferry as ferry
        writer = ferry.Writer({str(tmp_path / "x.safetensors")!r})
        writer.put("a", np.ones(3))
        """
    )
    assert finished.returncode == 0
    assert "never closed: nothing was written" in finished.stderr
    assert names_of(tmp_path) == []


def test_a_forked_child_cannot_write_and_removes_nothing(tmp_path: Path) -> None:
    stdout_of(
        f"""
        import os, numpy as np, tensorferry as ferry
        writer = ferry.Writer({str(tmp_path / "x.npz")!r})
        writer.put("a", np.ones(3))
        pid = os.fork()
        if pid == 0:
            try:
                writer.put("b", np.ones(3))
            except ferry.ExportError as error:
                assert "parent" in str(error)
                writer.abort()
                raise SystemExit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        writer.close()
        """
    )
    assert ferry.load(tmp_path / "x.npz")["a"].tolist() == [1, 1, 1]
