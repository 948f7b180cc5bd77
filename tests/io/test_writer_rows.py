"""``Writer.append``: arrays that grow by rows, readable by NumPy at any time, and continued."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.faulty_system import names_of
from helpers.saved_trees import bits
from helpers.writers import fail_within

DTYPES = [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.bool, torch.complex64, torch.int8]


def read(path: Path, name: str = "rows") -> Any:
    """Read with NumPy itself; ``.npy`` or one array of a folder."""
    return np.load(path if path.suffix == ".npy" else path / f"{name}.npy")


@pytest.fixture(params=["x.npy", "x/"], ids=["one file", "a folder"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{tmp_path}/{request.param}"


def test_numpy_reads_the_rows_after_each_flush(path: str) -> None:
    with ferry.Writer(path) as writer:
        for count in range(1, 8):
            writer.append(torch.full((10, 3), float(count)))
            writer.flush()
            assert writer.rows == 10 * count
            assert read(Path(path)).tolist() == [[float(i)] * 3 for i in range(1, count + 1) for _ in range(10)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_have_their_dtype_and_bits(path: str, dtype: torch.dtype) -> None:
    batches = [torch.randn(7, 5, 2).to(dtype), torch.randn(0, 5, 2).to(dtype), torch.randn(50, 5, 2).to(dtype)]
    with ferry.Writer(path, checksum="crc32c") as writer:
        for batch in batches:
            given = batch.clone()
            writer.append(given)
            given.zero_()
    whole = torch.cat([batch.view(torch.uint8) for batch in batches]).view(dtype)
    found = ferry.load(path, to="torch")
    found = found if path.endswith(".npy") else found["rows"]
    assert (found.dtype, found.shape) == (dtype, (57, 5, 2))
    assert bits(found) == bits(whole)
    assert ferry.verify(path).checked == 1


@pytest.mark.parametrize("checksum", [None, "crc32c"], ids=["without sums", "with sums"])
def test_appending_goes_on_behind_the_rows_that_are_there(path: str, checksum: Any) -> None:
    for session in range(4):
        with ferry.Writer(path, mode="append", checksum=checksum, metadata={f"k{session}": "v"}) as writer:
            assert writer.rows == 3 * session
            writer.append(np.full((3, 2), session, np.int16))
    assert read(Path(path)).tolist() == [[s, s] for s in range(4) for _ in range(3)]
    assert ferry.verify(path).checked == (1 if checksum else 0)
    assert ferry.inspect(path).metadata == {f"k{session}": "v" for session in range(4)}


def test_a_sum_that_no_longer_fits_is_dropped(path: str) -> None:
    with ferry.Writer(path, checksum="crc32c") as writer:
        writer.append(np.ones((3, 2)))
    with ferry.Writer(path, mode="append") as writer:
        writer.append(np.zeros((3, 2)))
    assert ferry.verify(path).checked == 0
    assert read(Path(path)).sum() == 6


def test_rows_are_appended_to_a_file_of_numpys_own(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(12, dtype=np.float16).reshape(4, 3))
    with ferry.Writer(tmp_path / "x.npy", mode="append") as writer:
        assert writer.rows == 4
        writer.append(np.full((100_000, 3), 7, np.float16))
    found = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert found.shape == (100_004, 3)
    assert found[:4].tolist() == np.arange(12).reshape(4, 3).tolist()
    assert (found[4:] == 7).all()


UNFIT = {
    "a number": np.ones(()),
    "the first axis runs fastest": np.asfortranarray(np.ones((4, 3))),
    "bytes are swapped": np.ones(3, ">f4"),
}


@pytest.mark.parametrize("array", UNFIT.values(), ids=UNFIT)
def test_arrays_that_cannot_grow_are_refused_and_kept(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "x.npy", array)
    before = (tmp_path / "x.npy").read_bytes()
    with pytest.raises(ferry.ExportError, match="cannot be appended"):
        ferry.Writer(tmp_path / "x.npy", mode="append")
    assert (tmp_path / "x.npy").read_bytes() == before


def test_a_file_with_a_second_array_is_refused_and_kept(tmp_path: Path) -> None:
    with open(tmp_path / "x.npy", "wb") as file:
        np.save(file, np.ones(3))
        np.save(file, np.zeros(3))
    before = (tmp_path / "x.npy").read_bytes()
    with pytest.raises(ferry.ExportError, match="another array follows"):
        ferry.Writer(tmp_path / "x.npy", mode="append")
    assert (tmp_path / "x.npy").read_bytes() == before


WRONG = {
    "another shape": (np.ones((2, 4)), ferry.LayoutError, "shape"),
    "another dtype": (np.ones((2, 3), np.float32), ferry.DTypeError, "float32"),
    "no rows at all": (np.float64(3), ferry.LayoutError, "first axis"),
}


@pytest.mark.parametrize(("batch", "kind", "match"), WRONG.values(), ids=WRONG)
def test_rows_that_do_not_fit_are_refused_and_the_writer_goes_on(path: str, batch: Any, kind: Any, match: str) -> None:
    with ferry.Writer(path) as writer:
        writer.append(np.ones((2, 3)))
        with pytest.raises(kind, match=match):
            writer.append(batch)
        writer.append(np.zeros((1, 3)))
    assert read(Path(path)).tolist() == [[1] * 3, [1] * 3, [0] * 3]


def test_rows_are_converted_to_the_writers_dtype(path: str) -> None:
    with ferry.Writer(path, dtype="bfloat16") as writer:
        writer.append(np.ones((2, 3), np.float32))
        writer.append(torch.zeros(1, 3, dtype=torch.float64))
    found = ferry.load(path)
    found = found if path.endswith(".npy") else found["rows"]
    assert found.dtype == ml_dtypes.bfloat16
    assert found.astype(float).tolist() == [[1] * 3, [1] * 3, [0] * 3]


def test_an_exception_removes_a_file_that_is_new(path: str, tmp_path: Path) -> None:
    writer = ferry.Writer(path)
    writer.append(np.ones(3))
    writer.flush()
    assert names_of(tmp_path) == ["x" if path.endswith("/") else "x.npy"]
    with pytest.raises(ZeroDivisionError):
        fail_within(writer, lambda writer: writer.append(np.zeros(3)))
    assert names_of(tmp_path) == []


def test_an_exception_keeps_the_rows_of_a_file_that_is_continued(path: str) -> None:
    with ferry.Writer(path) as writer:
        writer.append(np.ones(3))
    with pytest.raises(ZeroDivisionError):
        fail_within(ferry.Writer(path, mode="append"), lambda writer: writer.append(np.zeros(2)))
    assert read(Path(path)).tolist() == [1, 1, 1, 0, 0]
    with ferry.Writer(path, mode="append") as writer:
        assert writer.rows == 5


def test_an_exception_keeps_the_rows_of_a_new_file_that_is_meant_to_be_continued(path: str) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_within(ferry.Writer(path, mode="append"), lambda writer: writer.append(np.arange(100_000)))
    assert np.array_equal(read(Path(path)), np.arange(100_000))


def test_an_old_file_is_replaced_at_the_end(path: str) -> None:
    with ferry.Writer(path) as writer:
        writer.append(np.ones(3))
    with ferry.Writer(path, overwrite=True) as writer:
        writer.append(np.zeros(2))
        writer.flush()
        assert read(Path(path)).tolist() == [1, 1, 1]
    assert read(Path(path)).tolist() == [0, 0]
    with pytest.raises(ZeroDivisionError):
        fail_within(ferry.Writer(path, overwrite=True), lambda writer: writer.append(np.ones(9)))
    assert read(Path(path)).tolist() == [0, 0]


def test_two_writers_never_append_to_one_file(path: str) -> None:
    with ferry.Writer(path) as writer:
        writer.append(np.ones(3))
        writer.flush()
        with pytest.raises(ferry.ExportError, match="another writer"):
            ferry.Writer(path, mode="append")
    assert read(Path(path)).tolist() == [1, 1, 1]


def test_a_writer_that_got_no_rows_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ferry.ExportError, match="nothing was appended"), ferry.Writer(tmp_path / "x.npy"):
        pass
    assert names_of(tmp_path) == []


def test_threads_append_whole_batches(path: str) -> None:
    with ferry.Writer(path, max_staging_bytes="256KiB") as writer:

        def give(number: int) -> None:
            for _ in range(20):
                writer.append(np.full((500, 10), number))

        threads = [threading.Thread(target=give, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    blocks = read(Path(path)).reshape(80, 5000)
    assert (blocks == blocks[:, :1]).all()
    assert sorted(blocks[:, 0].tolist()) == sorted(list(range(4)) * 20)
