"""Parquet and Arrow's IPC files, with pyarrow as the judge: tensors of equally many rows are columns."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.faulty_system import names_of
from helpers.saved_trees import same_bits
from helpers.subprocess import stdout_of
from helpers.writers import fail_within

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
pq = pytest.importorskip("pyarrow.parquet")

every_end = pytest.mark.parametrize("end", [".parquet", ".arrow", ".feather"])


def columns(rows: int = 100) -> dict[str, torch.Tensor]:
    """Return tensors of every kind of element, with rows of several shapes."""
    generator = torch.Generator().manual_seed(rows)
    x = torch.randn(rows, 4, 3, generator=generator)
    return {
        "matrix": x,
        "half": x[:, 0].bfloat16(),
        "eighth": x[:, 0].to(torch.float8_e4m3fn),
        "id": torch.arange(rows),
        "mask": x[:, 0, 0] > 0,
        "masks": x > 0,
        "float16": x[:, 1, 1].half(),
        "complex": torch.complex(x, x * 2),
        "byte": torch.arange(rows).to(torch.uint8),
        "every_other": torch.randn(rows, 8, generator=generator)[:, ::2],
        "transposed": torch.randn(5, rows, generator=generator).t(),
    }


def read(path: str) -> Any:
    """Read with pyarrow."""
    return pq.read_table(path) if path.endswith(".parquet") else feather.read_table(path, memory_map=False)


@every_end
@pytest.mark.parametrize("staging", ["64KiB", "64MiB"], ids="in {}".format)
@pytest.mark.parametrize("way", ["save", "save_async", "put"])
def test_every_column_comes_back(tmp_path: Path, end: str, staging: str, way: str) -> None:
    path, expected = f"{tmp_path}/x{end}", columns(1000)
    if way == "put":
        with ferry.Writer(path, max_staging_bytes=staging) as writer:
            for name, tensor in expected.items():
                writer.put(name, tensor)
    elif way == "save_async":
        ferry.save_async(expected, path, max_staging_bytes=staging).result(60)
    else:
        ferry.save(expected, path, max_staging_bytes=staging)
    assert same_bits(ferry.load(path, to="torch"), expected)
    assert list(ferry.load(path)) == list(expected)
    assert names_of(tmp_path) == [f"x{end}"]


@every_end
def test_pyarrow_reads_numbers_and_lists_of_fixed_size(tmp_path: Path, end: str) -> None:
    ferry.save(columns(), f"{tmp_path}/x{end}", metadata={"who": "we"})
    table = read(f"{tmp_path}/x{end}")
    assert table.schema.field("matrix").type.list_size == 12
    assert table.schema.field("half").type.value_type == pa.uint16()
    assert table.schema.metadata[b"who"] == b"we"
    assert table.column("id").to_pylist() == list(range(100))
    assert np.array_equal(table.column("matrix").to_pylist(), columns()["matrix"].reshape(100, 12).numpy())
    assert table.column("mask").to_pylist() == columns()["mask"].tolist()
    assert np.array_equal(table.column("half").to_pylist(), columns()["half"].view(torch.uint16).numpy())
    assert ferry.inspect(f"{tmp_path}/x{end}").metadata == {"who": "we"}


@every_end
def test_rows_are_appended_batch_by_batch(tmp_path: Path, end: str) -> None:
    path = f"{tmp_path}/x{end}"
    with ferry.Writer(path, max_staging_bytes="1MiB") as writer:
        for number in range(60):
            count = 3000 if number == 30 else 1 + number % 7
            x = torch.full((count, 64), number, dtype=torch.bfloat16)
            writer.append({"x": x, "id": np.full(count, number)})
            x.zero_()
        assert not (tmp_path / f"x{end}").exists()
        rows = writer.rows
    found = ferry.load(path)
    assert found["id"].shape == (rows,)
    assert np.array_equal(found["x"].astype(int), np.repeat(found["id"][:, None], 64, 1))
    assert sorted(set(found["id"].tolist())) == list(range(60))
    table = read(path)
    assert table.num_rows == rows
    if end == ".parquet":
        assert pq.ParquetFile(path).metadata.num_row_groups < 20


@every_end
def test_an_exception_leaves_nothing(tmp_path: Path, end: str) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_within(ferry.Writer(f"{tmp_path}/x{end}"), lambda writer: writer.append(np.ones((3, 2))))
    assert names_of(tmp_path) == []


@every_end
def test_what_is_finished_cannot_be_continued(tmp_path: Path, end: str) -> None:
    with ferry.Writer(f"{tmp_path}/x{end}", mode="append") as writer:
        writer.append(np.ones((3, 2)))
    with pytest.raises(ferry.ExportError, match="cannot be continued"):
        ferry.Writer(f"{tmp_path}/x{end}", mode="append")
    assert ferry.load(f"{tmp_path}/x{end}")["rows"].shape == (3, 2)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a number": ({"a": np.ones(3), "b": 2.0}, "is a number"),
    "other rows": ({"a": np.ones(3), "b": np.ones(4)}, "4 rows"),
    "nothing": ({}, "at least one column"),
    "empty rows": ({"a": np.ones((3, 0))}, "rows are empty"),
    "records": ({"a": np.zeros(3, [("x", "i4")])}, "no fixed word"),
}


@every_end
@pytest.mark.parametrize(("tensors", "match"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_table_is_refused(tmp_path: Path, end: str, tensors: dict[str, Any], match: str) -> None:
    with pytest.raises(ferry.ExportError, match=match):
        ferry.save(tensors, f"{tmp_path}/x{end}")
    assert names_of(tmp_path) == []


def test_batches_have_the_columns_of_the_first(tmp_path: Path) -> None:
    with ferry.Writer(f"{tmp_path}/x.parquet") as writer:
        writer.append({"a": np.ones(3), "b": np.ones(3)})
        with pytest.raises(ferry.LayoutError, match="all columns"):
            writer.append({"a": np.ones(3)})
        writer.append({"b": np.zeros(1), "a": np.full(1, 5.0)})
    assert {name: array.tolist() for name, array in ferry.load(f"{tmp_path}/x.parquet").items()} == {
        "a": [1, 1, 1, 5],
        "b": [1, 1, 1, 0],
    }


def test_parquet_keeps_sums_and_arrow_refuses_them(tmp_path: Path) -> None:
    ferry.save(columns(), f"{tmp_path}/x.parquet", checksum="crc32c")
    assert ferry.verify(f"{tmp_path}/x.parquet").checked == len(columns())
    with pytest.raises(ferry.ArgumentError, match="no place for sums"):
        ferry.save(columns(), f"{tmp_path}/x.arrow", checksum="crc32c")


def test_a_damaged_parquet_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    ferry.save({"a": np.arange(10_000)}, path)
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)
    with pytest.raises(ferry.ExportError, match="pyarrow cannot read"):
        ferry.load(path)
    path.write_bytes(data[:5000])
    with pytest.raises(ferry.ExportError, match="pyarrow cannot read"):
        ferry.load(path)


@every_end
def test_ties_are_noted(tmp_path: Path, end: str) -> None:
    x = np.ones((10, 3))
    assert ferry.save({"a": x, "b": x}, f"{tmp_path}/x{end}").aliases == 1
    assert read(f"{tmp_path}/x{end}").column_names == ["a"]
    found = ferry.load(f"{tmp_path}/x{end}")
    assert found["a"] is found["b"]


def _write(path: str, table: Any) -> None:
    if path.endswith(".parquet"):
        pq.write_table(table, path)
    else:
        feather.write_feather(table, path)


@every_end
def test_tables_of_others_are_read(tmp_path: Path, end: str) -> None:
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(12, dtype=np.float32).reshape(2, 3, 2))
    nested = pa.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], pa.list_(pa.list_(pa.int8(), 2), 2))
    table = pa.table({"t": tensors, "n": nested, "d": pa.chunked_array([[1.5], [2.5]])})
    _write(f"{tmp_path}/x{end}", table)
    found = ferry.load(f"{tmp_path}/x{end}")
    assert found["t"].tolist() == np.arange(12).reshape(2, 3, 2).tolist()
    assert found["n"].tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    assert found["d"].tolist() == [1.5, 2.5]


UNREADABLE = {
    "text": (["a", "b"], "holds string"),
    "lists of any length": ([[1.0], [1.0, 2.0]], "holds list"),
    "missing values": ([1.0, None], "missing values"),
}


@every_end
@pytest.mark.parametrize(("values", "match"), UNREADABLE.values(), ids=UNREADABLE)
def test_columns_that_are_no_arrays_are_refused(tmp_path: Path, end: str, values: Any, match: str) -> None:
    _write(f"{tmp_path}/x{end}", pa.table({"c": pa.array(values)}))
    with pytest.raises(ferry.ExportError, match=match):
        ferry.load(f"{tmp_path}/x{end}")


def test_threads_append_whole_batches(tmp_path: Path) -> None:
    with ferry.Writer(f"{tmp_path}/x.parquet", max_staging_bytes="512KiB") as writer:

        def give(number: int) -> None:
            for _ in range(10):
                writer.append({"a": np.full((50, 10), number), "b": np.full(50, number)})

        threads = [threading.Thread(target=give, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    found = ferry.load(f"{tmp_path}/x.parquet")
    assert (found["a"] == found["b"][:, None]).all()
    assert np.bincount(found["b"]).tolist() == [500] * 4


def test_without_pyarrow_an_error_names_the_extra(tmp_path: Path) -> None:
    said = stdout_of(
        f"""
        import sys
        sys.modules["pyarrow"] = None
        import numpy as np, tensorferry as ferry
        try:
            ferry.save({{"a": np.ones(3)}}, {str(tmp_path / "x.parquet")!r})
        except ImportError as error:
            print(type(error).__name__, error)
        """
    )
    assert said.startswith("MissingDependencyError")
    assert "pip install 'tensorferry[arrow]'" in said
