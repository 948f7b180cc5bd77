"""Growing arrays when something fails, or ends too early; and folders in which several grow."""

from __future__ import annotations

import errno
import gc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.faulty_system import FaultySystem, names_of
from helpers.subprocess import run_python
from helpers.writers import writer_on


def read(path: Path, name: str = "rows") -> Any:
    """Read with NumPy itself; ``.npy`` or one array of a folder."""
    return np.load(path if path.suffix == ".npy" else path / f"{name}.npy")


@pytest.fixture(params=["x.npy", "x/"], ids=["one file", "a folder"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{tmp_path}/{request.param}"


def test_parts_of_a_row_are_dropped_when_the_writer_goes_on(tmp_path: Path) -> None:
    with ferry.Writer(tmp_path / "x.npy") as writer:
        writer.append(np.ones((3, 100)))
    with open(tmp_path / "x.npy", "ab") as file:
        file.write(b"torn" * 50)
    with ferry.Writer(tmp_path / "x.npy", mode="append") as writer:
        assert writer.rows == 3
        writer.append(np.zeros((1, 100)))
    assert np.load(tmp_path / "x.npy").sum(1).tolist() == [100, 100, 100, 0]


def test_a_full_disk_keeps_the_rows_before(tmp_path: Path) -> None:
    for n in range(1000):
        system = FaultySystem(n, errno.ENOSPC)
        path = tmp_path / f"x{n}.npy"
        failed = ""
        try:
            with writer_on(system, path, mode="append", durable=n % 2 == 1) as writer:
                for number in range(4):
                    writer.append(np.full(200_000, number, np.uint8))
                    writer.flush()
        except ferry.ExportError as error:
            failed = str(error)
        if not failed and len(system.calls) <= n:
            break
        if path.exists():
            found = np.load(path)
            assert found.size % 200_000 == 0
            assert (found.reshape(-1, 200_000) == np.arange(found.size // 200_000)[:, None]).all()
    assert n > 8


def test_a_full_disk_keeps_the_rows_of_every_array_before(tmp_path: Path) -> None:
    for n in range(1000):
        system = FaultySystem(n, errno.EIO)
        path = f"{tmp_path}/x{n}/"
        failed = False
        try:
            with writer_on(system, path, mode="append", durable=n % 2 == 1) as writer:
                for number in range(3):
                    writer.append({"a": np.full((100, 30), number), "b": np.full(100, number)})
                    writer.flush()
        except ferry.ExportError:
            failed = True
        if not failed and len(system.calls) <= n:
            break
        if Path(path).exists():
            with ferry.Writer(path, mode="append") as again:
                rows = again.rows
            found = ferry.load(path)
            assert rows % 100 == 0
            assert all(len(found[name]) == rows for name in found)
            for array in found.values():
                assert (array.reshape(rows, array.size // max(rows, 1)) == np.arange(rows)[:, None] // 100).all()
    assert n > 15


def test_a_dropped_writer_keeps_its_rows_and_warns(path: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        writer = ferry.Writer(path)
        writer.append(np.ones(3))
        thread = writer._thread._thread
        del writer
        gc.collect()
        assert thread is not None
        thread.join(60)
    assert [str(w.message) for w in caught if "rows that are whole are kept" in str(w.message)]
    assert read(Path(path)).tolist() == [1, 1, 1]


def test_rows_that_were_given_are_written_at_the_end_of_the_interpreter(path: str) -> None:
    finished = run_python(
        f"""
        import numpy as np, tensorferry as ferry
        writer = ferry.Writer({path!r})
        for number in range(50):
            writer.append(np.full((1000, 10), number))
        """
    )
    assert finished.returncode == 0
    assert "rows that are whole are kept" in finished.stderr
    assert read(Path(path))[::1000, 0].tolist() == list(range(50))


def test_a_folder_holds_several_arrays_and_whole_tensors(tmp_path: Path) -> None:
    with ferry.Writer(f"{tmp_path}/x/") as writer:
        writer.append({"layer/1": torch.ones(2, 3), "layer/2": torch.zeros(2)})
        writer.append(np.arange(5), name="ids")
        writer.put("whole", torch.eye(2))
        assert (writer.rows, writer.rows_of("ids"), writer.rows_of("none")) == (2, 5, 0)
        with pytest.raises(ferry.ArgumentError, match="has that name"):
            writer.append(np.ones(3), name="whole")
        with pytest.raises(ferry.LayoutError, match="layer/1: 1, layer/2: 2"):
            writer.append({"layer/1": torch.ones(1, 3), "layer/2": torch.zeros(2)})
        with pytest.raises(ferry.ArgumentError, match="second tensor named 'ids'"):
            writer.put("ids", 3)
    found = ferry.load(f"{tmp_path}/x/")
    assert {name: array.shape for name, array in found.items()} == {
        "layer/1": (2, 3),
        "layer/2": (2,),
        "ids": (5,),
        "whole": (2, 2),
    }


def test_arrays_that_grow_together_are_cut_to_the_rows_that_all_have(tmp_path: Path) -> None:
    with ferry.Writer(f"{tmp_path}/x/") as writer:
        writer.append({"a": np.arange(4), "b": np.arange(4)})
        writer.append(np.arange(9), name="alone")
    with ferry.Writer(tmp_path / "x" / "a.npy", mode="append") as one_of_them:
        one_of_them.append(np.arange(2))
    with ferry.Writer(f"{tmp_path}/x/", mode="append") as writer:
        assert (writer.rows_of("a"), writer.rows_of("b"), writer.rows_of("alone")) == (4, 4, 9)
    assert np.load(tmp_path / "x" / "a.npy").tolist() == [0, 1, 2, 3]


def test_many_durable_arrays_grow_in_little_memory(tmp_path: Path) -> None:
    with ferry.Writer(f"{tmp_path}/x/", durable=True, max_staging_bytes="64KiB") as writer:
        for step in range(3):
            writer.append({f"layer{number}": np.full((2, 3), step) for number in range(30)})
    found = ferry.load(f"{tmp_path}/x/")
    assert all(array[:, 0].tolist() == [0, 0, 1, 1, 2, 2] for array in found.values())
    assert len(found) == 30


def test_what_a_crash_left_in_a_folder_is_removed_and_what_others_put_there_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    with ferry.Writer(f"{folder}/") as writer:
        writer.append(np.ones((3, 2)))
    with ferry.Writer(f"{tmp_path}/y/") as writer:
        writer.append(np.ones((0, 2)), name="next")
    (folder / "next.npy").write_bytes((tmp_path / "y" / "next.npy").read_bytes())  # named, and not listed
    (folder / ".put-1234-0123456789ab.ferry-tmp").write_bytes(b"half")
    np.save(folder / "whole.npy", np.arange(3))
    with ferry.Writer(f"{folder}/", mode="append") as writer:
        writer.append(np.zeros((1, 2)), name="next")
        writer.put("whole", np.eye(2))
    found = ferry.load(f"{folder}/")
    assert {name: array.shape for name, array in found.items()} == {"rows": (3, 2), "next": (1, 2), "whole": (2, 2)}
    assert np.load(folder / "whole.npy").tolist() == [0, 1, 2]
    assert names_of(folder) == ["index.json", "next.npy", "rows.npy", "whole%7E1.npy", "whole.npy"]
