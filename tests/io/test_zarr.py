"""Zarr v3, with the library zarr as the judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.faulty_system import names_of
from helpers.saved_trees import same_bits, tree
from helpers.subprocess import stdout_of
from helpers.writers import fail_within

zarr = pytest.importorskip("zarr")


@pytest.mark.parametrize("staging", ["64KiB", "64MiB"], ids="in {}".format)
@pytest.mark.parametrize("asynchronous", [False, True], ids=["at once", "in the background"])
def test_every_dtype_and_layout_comes_back(tmp_path: Path, staging: str, asynchronous: bool) -> None:
    path = f"{tmp_path}/x.zarr"
    save = (lambda *a, **k: ferry.save_async(*a, **k).result()) if asynchronous else ferry.save
    report = save(tree(3), path, max_staging_bytes=staging, checksum="crc32c", metadata={"a": "b"})
    assert (report.format, report.tensors) == ("zarr", len(tree(3)))
    assert same_bits(ferry.load(path, to="torch"), tree(3))
    assert ferry.verify(path).checked == len(tree(3))
    assert ferry.inspect(path).metadata == {"a": "b"}
    assert list(ferry.load(path)) == list(tree(3))


def test_zarr_reads_the_values_in_chunks(tmp_path: Path) -> None:
    x = torch.randn(3000, 1001)
    ferry.save({"x": x, "half": x[0].bfloat16()}, f"{tmp_path}/x.zarr", durable=True)
    group = zarr.open_group(f"{tmp_path}/x.zarr", mode="r")
    assert group.metadata.zarr_format == 3
    assert np.array_equal(group["x"][:], x.numpy())
    assert np.prod(group["x"].chunks) * 4 <= 4 << 20
    assert group["half"].dtype == np.uint16
    assert np.array_equal(group["half"][:], x[0].bfloat16().view(torch.uint16).numpy())


NAMES = ["a/b", "../out", "", "zarr.json", "__reserved", "A", "a", "x" * 300, "é", "c", "con"]


def test_any_name_stays_inside_the_group(tmp_path: Path) -> None:
    tensors = {name: np.full(3, number) for number, name in enumerate(NAMES)}
    ferry.save(tensors, f"{tmp_path}/x.zarr")
    found = ferry.load(f"{tmp_path}/x.zarr")
    assert {name: int(array[0]) for name, array in found.items()} == {name: i for i, name in enumerate(NAMES)}
    assert names_of(tmp_path) == ["x.zarr"]
    assert len(list(zarr.open_group(f"{tmp_path}/x.zarr", mode="r").array_keys())) == len(NAMES)


def test_ties_are_noted(tmp_path: Path) -> None:
    x = np.ones(100)
    assert ferry.save({"a": x, "b": x}, f"{tmp_path}/x.zarr").aliases == 1
    found = ferry.load(f"{tmp_path}/x.zarr")
    assert found["a"] is found["b"]


def test_groups_of_others_are_read(tmp_path: Path) -> None:
    group = zarr.open_group(f"{tmp_path}/x.zarr", mode="w", zarr_format=3)
    group.create_array("in/side", data=np.arange(6.0).reshape(2, 3), chunks=(1, 2))
    group.create_array("flat", data=np.arange(3, dtype="i2"))
    found = ferry.load(f"{tmp_path}/x.zarr")
    assert {name: array.tolist() for name, array in found.items()} == {
        "flat": [0, 1, 2],
        "in/side": [[0, 1, 2], [3, 4, 5]],
    }
    zarr.create_array(f"{tmp_path}/y.zarr", data=np.arange(4), zarr_format=2)
    assert ferry.load(f"{tmp_path}/y.zarr").tolist() == [0, 1, 2, 3]


def test_groups_of_others_are_not_replaced(tmp_path: Path) -> None:
    zarr.open_group(f"{tmp_path}/x.zarr", mode="w").create_array("a", data=np.ones(3))
    with pytest.raises(ferry.ExportError, match="not made by tensorferry"):
        ferry.save({"b": 1}, f"{tmp_path}/x.zarr", overwrite=True)
    assert zarr.open_group(f"{tmp_path}/x.zarr", mode="r")["a"][:].tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", [np.dtype("V4"), np.dtype("U3"), np.dtype(np.longdouble)], ids=str)
def test_dtypes_without_a_portable_word_are_refused(tmp_path: Path, dtype: Any) -> None:
    with pytest.raises(ferry.FerryError):
        ferry.save({"a": np.zeros(3, dtype)}, f"{tmp_path}/x.zarr")
    assert names_of(tmp_path) == []


def test_a_damaged_group_is_an_error(tmp_path: Path) -> None:
    ferry.save({"a": np.ones(1000)}, f"{tmp_path}/x.zarr", checksum="crc32c")
    (tmp_path / "x.zarr" / "a" / "c" / "0").unlink()  # zarr takes a missing chunk for zeros
    with pytest.raises(ferry.ExportError, match="checksum"):
        ferry.verify(f"{tmp_path}/x.zarr")
    (tmp_path / "x.zarr" / "zarr.json").write_text("{")
    with pytest.raises(ferry.ExportError, match="zarr cannot read it"):
        ferry.load(f"{tmp_path}/x.zarr")


def test_rows_grow_and_are_continued(tmp_path: Path) -> None:
    path = f"{tmp_path}/x.zarr"
    for session in range(3):
        with ferry.Writer(path, mode="append", max_staging_bytes="256KiB", checksum="crc32c") as writer:
            assert writer.rows == 370 * session
            for step in range(10):
                value = 10 * session + step
                half = torch.full((37, 2), value, dtype=torch.bfloat16)
                writer.append({"x": np.full((37, 50), value, np.float32), "half": half})
                half.zero_()
            writer.flush()
            assert ferry.load(path)["x"].shape == (370 * (session + 1), 50)
    expected = np.repeat(np.arange(30), 37)
    group = zarr.open_group(path, mode="r")
    assert np.array_equal(group["x"][:, 49], expected)
    assert ferry.load(path)["half"].dtype == ml_dtypes.bfloat16
    assert np.array_equal(ferry.load(path)["half"][:, 1].astype(int), expected)
    assert ferry.verify(path).checked == 2


def test_rows_that_were_not_counted_are_dropped(tmp_path: Path) -> None:
    path = f"{tmp_path}/x.zarr"
    with ferry.Writer(path) as writer:
        writer.append(np.ones((5, 2)))
    zarr.open_group(path, mode="r+")["rows"].resize((9, 2))  # as if killed before the rows were counted
    assert ferry.load(path)["rows"].tolist() == [[1, 1]] * 5
    with ferry.Writer(path, mode="append") as writer:
        assert writer.rows == 5
        writer.append(np.zeros((1, 2)))
    assert zarr.open_group(path, mode="r")["rows"][:].tolist() == [[1, 1]] * 5 + [[0, 0]]


def test_an_exception_removes_a_new_group_and_keeps_an_old_one(tmp_path: Path) -> None:
    path = f"{tmp_path}/x.zarr"
    with pytest.raises(ZeroDivisionError):
        fail_within(ferry.Writer(path), lambda writer: writer.append(np.ones(3)))
    assert names_of(tmp_path) == []
    with ferry.Writer(path) as writer:
        writer.append(np.ones(3))
        writer.put("whole", np.eye(2))
    with pytest.raises(ZeroDivisionError):
        fail_within(ferry.Writer(path, mode="append"), lambda writer: writer.append(np.zeros(1)))
    assert ferry.load(path)["rows"][:3].tolist() == [1, 1, 1]
    assert ferry.load(path)["whole"].sum() == 2


def test_without_zarr_an_error_names_the_extra(tmp_path: Path) -> None:
    said = stdout_of(
        f"""
        import sys
        sys.modules["zarr"] = None
        import tensorferry as ferry
        try:
            ferry.save({{"a": 1}}, {str(tmp_path / "x.zarr")!r})
        except ImportError as error:
            print(type(error).__name__, error)
        """
    )
    assert said.startswith("MissingDependencyError")
    assert "pip install 'tensorferry[zarr]'" in said
    assert json.dumps(names_of(tmp_path)) == "[]"


def test_an_array_that_a_crash_left_half_written_is_not_seen(tmp_path: Path) -> None:
    path = f"{tmp_path}/x.zarr"
    with ferry.Writer(path) as writer:
        writer.append(np.ones(3))
        writer.put("whole", np.eye(2))
    array = zarr.open_group(path, mode="r+")["whole"]
    assert "is_draft" not in array.attrs["tensorferry"]
    array.attrs["tensorferry"] = {**array.attrs["tensorferry"], "is_draft": True}
    assert list(ferry.load(path)) == ["rows"]
    with ferry.Writer(path, mode="append") as writer:
        writer.put("whole", np.ones(5))
    assert ferry.load(path)["whole"].tolist() == [1] * 5


def test_half_files_of_a_crash_are_removed_and_do_not_make_the_group_foreign(tmp_path: Path) -> None:
    with ferry.Writer(tmp_path / "x.zarr") as writer:
        writer.append(np.ones((3, 2)))
    half = [f"zarr.{'1c' * 16}.partial", f"rows/c/0/0.{'2d' * 16}.partial"]  # as zarr names them
    for name in half:
        (tmp_path / "x.zarr" / name).write_bytes(b"half")
    with ferry.Writer(tmp_path / "x.zarr", mode="append") as writer:
        writer.append(np.zeros((1, 2)))
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith("partial")]
    assert ferry.load(tmp_path / "x.zarr")["rows"].sum(1).tolist() == [2, 2, 2, 0]
    (tmp_path / "x.zarr" / half[0]).write_bytes(b"half")
    ferry.save({"a": torch.ones(2)}, tmp_path / "x.zarr", overwrite=True)
    assert list(ferry.load(tmp_path / "x.zarr")) == ["a"]
    (tmp_path / "x.zarr" / "notes.partial").write_bytes(b"of somebody")
    with pytest.raises(ferry.ExportError, match="was not made by tensorferry"):
        ferry.save({"b": torch.ones(2)}, tmp_path / "x.zarr", overwrite=True)
