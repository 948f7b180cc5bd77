"""``save_async``: when the sources may change, what the futures say, and that no error is lost."""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.faulty_system import names_of
from helpers.saved_trees import FORMATS, same_bits, tree
from helpers.subprocess import run_python, stdout_of
from tensorferry._io.save_async import save_async
from tensorferry._io.system import System


class GatedSystem(System):
    """Writes nothing before `gate` is set."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def pwritev(self, fd: int, pieces: Any, offset: int) -> int:
        assert self.gate.wait(60)
        return super().pwritev(fd, pieces, offset)


@pytest.mark.parametrize("end", [*FORMATS.values(), "-shards.safetensors"], ids=[*FORMATS, "shards"])
@pytest.mark.parametrize("staging", [64 << 10, 64 << 20], ids=["in little memory", "in much memory"])
def test_sources_may_change_as_soon_as_they_are_staged(tmp_path: Path, end: str, staging: int) -> None:
    expected, sources = tree(3), {name: tensor.clone() for name, tensor in tree(3).items()}
    limit = 4000 if "shards" in end else None
    handle = ferry.save_async(
        sources, f"{tmp_path}/x{end}", max_staging_bytes=staging, checksum="crc32c", max_shard_size=limit
    )
    assert handle.staged.result(60) is None
    for tensor in sources.values():
        tensor.zero_()
    report = handle.result(60)
    assert report.tensors == len(expected)
    assert same_bits(ferry.load(report.path, to="torch"), expected)
    assert ferry.verify(report.path).checked == len(expected)


def test_what_fits_is_staged_before_anything_is_written(tmp_path: Path) -> None:
    system = GatedSystem()
    x = np.arange(300_000)
    handle = save_async({"x": x}, tmp_path / "x.npz", system=system)
    handle.staged.result(60)
    assert not handle.written.done()
    assert repr(handle) == f"<SaveHandle of '{tmp_path}/x.npz': staged>"
    x[:] = 0
    system.gate.set()
    handle.result(60)
    assert np.array_equal(np.load(tmp_path / "x.npz")["x"], np.arange(300_000))
    assert "written" in repr(handle)


def test_what_does_not_fit_is_staged_as_the_rest_is_written(tmp_path: Path) -> None:
    system = GatedSystem()
    handle = save_async({"x": np.ones(1 << 20)}, tmp_path / "x.npz", system=system, max_staging_bytes=1 << 20)
    with pytest.raises(TimeoutError):
        handle.staged.result(0.1)
    system.gate.set()
    handle.staged.result(60)
    handle.result(60)


def test_a_result_that_is_late_raises_and_stays_valid(tmp_path: Path) -> None:
    system = GatedSystem()
    handle = save_async({"x": np.ones(9)}, tmp_path / "x.npy", system=system)
    with pytest.raises(ferry.TransferTimeout, match="not written yet"):
        handle.result(0.05)
    system.gate.set()
    assert handle.result().tensors == 1


def test_an_iterator_is_consumed_one_item_at_a_time_with_one_buffer(tmp_path: Path) -> None:
    def items() -> Iterator[tuple[str, Any]]:
        buffer = np.empty(1000)
        for number in range(50):
            buffer[:] = number
            yield f"t{number}", buffer

    ferry.save_async(items(), tmp_path / "x.safetensors", max_staging_bytes="64KiB").result(60)
    found = ferry.load(tmp_path / "x.safetensors")
    assert [found[f"t{number}"][999] for number in range(50)] == list(range(50))


def test_tied_tensors_are_written_once(tmp_path: Path) -> None:
    x = torch.ones(1000)
    report = ferry.save_async({"a": x, "b": x}, tmp_path / "x.safetensors").result(60)
    assert (report.tensors, report.aliases, report.nbytes) == (2, 1, 4000)
    found = ferry.load(report.path)
    assert found["a"] is found["b"]


def test_errors_of_the_arguments_are_raised_at_once(tmp_path: Path) -> None:
    with pytest.raises(ferry.DTypeError, match="text"):
        ferry.save_async({"a": "text"}, tmp_path / "x.npz")
    with pytest.raises(ferry.ArgumentError, match="means no format"):
        ferry.save_async({"a": 1}, tmp_path / "x.xyz")
    assert names_of(tmp_path) == []


def test_errors_of_the_disk_come_with_the_result(tmp_path: Path) -> None:
    handle = ferry.save_async({"a": np.ones(3)}, tmp_path / "nowhere" / "x.npz")
    with pytest.raises(ferry.ExportError, match="make the folder first"):
        handle.result(60)
    assert isinstance(handle.staged.exception(60), ferry.ExportError)


def test_errors_of_an_iterator_come_with_the_result(tmp_path: Path) -> None:
    def items() -> Iterator[tuple[str, Any]]:
        yield "a", np.ones(3)
        raise ZeroDivisionError("in the iterator")

    handle = ferry.save_async(items(), tmp_path / "x.npz")
    with pytest.raises(ZeroDivisionError, match="in the iterator"):
        handle.result(60)
    assert isinstance(handle.staged.exception(60), ZeroDivisionError)
    assert names_of(tmp_path) == []


def _dropped_with_an_error(path: Path, ask: bool) -> Future[Any]:
    handle = ferry.save_async({"a": np.ones(3)}, path / "nowhere" / "x.npz")
    written = handle.written
    Future.exception(written, 60)
    if ask:
        handle.written.exception()
    return written


@pytest.mark.parametrize("ask", [False, True], ids=["that nobody asked for", "that was asked for"])
def test_a_dropped_handle_warns_of_an_error(tmp_path: Path, ask: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _dropped_with_an_error(tmp_path, ask)
        gc.collect()
    told = [str(warning.message) for warning in caught if issubclass(warning.category, ferry.FerryWarning)]
    assert len(told) == (0 if ask else 1)
    assert ask or ("nobody asked" in told[0] and "make the folder first" in told[0])


def test_cancelling_leaves_the_path_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(b"old")
    system = GatedSystem()
    tensors = {f"t{number}": np.ones(100_000) for number in range(20)}
    handle = save_async(tensors, tmp_path / "x.npz", system=system, max_staging_bytes=1 << 20, overwrite=True)
    assert handle.cancel()
    system.gate.set()
    with pytest.raises(CancelledError):
        handle.result(60)
    assert isinstance(handle.staged.exception(60), CancelledError)
    assert names_of(tmp_path) == ["x.npz"]
    assert (tmp_path / "x.npz").read_bytes() == b"old"


def test_what_is_written_cannot_be_cancelled(tmp_path: Path) -> None:
    handle = ferry.save_async({"a": 1}, tmp_path / "x.npz")
    handle.result(60)
    assert not handle.cancel()
    assert ferry.load(tmp_path / "x.npz")["a"] == 1


def test_memory_stays_within_the_bound(tmp_path: Path) -> None:
    from tensorferry._io.staging import StagingPool

    made: list[StagingPool] = []
    original = StagingPool.__init__

    def noted(self: StagingPool, nbytes: int) -> None:
        original(self, nbytes)
        made.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StagingPool, "__init__", noted)
        sizes = [10, 70_000, 3_000_000, 100, 0, 5_000_000]
        sources = {f"t{i}": np.full(size, i, np.uint8) for i, size in enumerate(sizes)}
        ferry.save_async(sources, tmp_path / "x.npz", max_staging_bytes=1 << 20).result(60)
    assert 0 < made[0].most_in_use <= 1 << 20
    found = ferry.load(tmp_path / "x.npz")
    assert all(np.array_equal(found[name], array) for name, array in sources.items())


def test_the_interpreter_waits_for_a_save_that_goes_on(tmp_path: Path) -> None:
    stdout_of(
        f"""
        import numpy as np, tensorferry as ferry
        ferry.save_async({{f"t{{i}}": np.full(100_000, i) for i in range(100)}}, {str(tmp_path / "x.npz")!r})
        """
    )
    with np.load(tmp_path / "x.npz") as archive:
        assert [int(archive[f"t{number}"][-1]) for number in range(100)] == list(range(100))


def test_the_interpreter_waits_for_a_while_only(tmp_path: Path) -> None:
    finished = run_python(
        f"""
        import numpy as np, time
        from tensorferry._io import exit
        from tensorferry._io.save_async import save_async
        exit.EXIT_WAIT_S = 0.2
        def items():
            for number in range(1000):
                time.sleep(0.05)
                yield f"t{{number}}", np.ones(3)
        handle = save_async(items(), {str(tmp_path / "x.npz")!r})
        """
    )
    assert finished.returncode == 0
    assert "the interpreter ended before it was written" in finished.stderr
    assert names_of(tmp_path) == []


def test_an_error_that_nobody_asked_for_is_told_at_the_end(tmp_path: Path) -> None:
    finished = run_python(
        f"""
        import numpy as np, tensorferry as ferry
        handle = ferry.save_async({{"a": np.ones(3)}}, {str(tmp_path / "nowhere" / "x.npz")!r})
        from concurrent.futures import Future
        Future.exception(handle.written)
        """
    )
    assert finished.returncode == 0
    assert "nobody asked for its error" in finished.stderr


def test_a_forked_child_ends_without_waiting(tmp_path: Path) -> None:
    stdout_of(
        f"""
        import os, numpy as np, tensorferry as ferry
        def items():
            for number in range(20):
                import time; time.sleep(0.05)
                yield f"t{{number}}", np.ones(3)
        handle = ferry.save_async(items(), {str(tmp_path / "x.npz")!r})
        pid = os.fork()
        if pid == 0:
            raise SystemExit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert not handle.written.done()
        handle.result()
        """
    )
    assert os.path.exists(tmp_path / "x.npz")
