"""Memory stays within ``max_staging_bytes`` for trees many times larger; progress and reports tell the truth."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.saved_trees import FORMATS, bits
from tensorferry._io.options import SaveOptions
from tensorferry._io.pipeline import Pipeline
from tensorferry._io.slabs import slabs

LIMIT = 1 << 20
every_format = pytest.mark.parametrize("end", FORMATS.values(), ids=FORMATS)
CASES: dict[str, tuple[Any, Any]] = {
    "contiguous": (lambda: torch.ones(20, 1 << 17), None),
    "transposed": (lambda: torch.ones(1 << 17, 20).t(), None),
    "converted": (lambda: torch.ones(20, 1 << 17), torch.float16),
    "strided rows": (lambda: torch.ones(20, 1 << 18)[:, ::2], None),
    "one long axis": (lambda: torch.ones(20 << 18)[::2], None),
    "a conjugate view": (lambda: torch.ones(20 << 16, dtype=torch.complex64).conj(), None),
    "extended precision": (lambda: np.ones((20 << 16, 2), np.longdouble)[:, 0], None),
}


@every_format
@pytest.mark.parametrize("case", CASES)
def test_no_more_memory_is_taken_than_allowed(tmp_path: Path, end: str, case: str) -> None:
    make, dtype = CASES[case]
    if case == "extended precision" and end == ".safetensors":
        dtype = "float64"
    x = {"x": make()}
    ferry.save({"x": make()[:2]}, f"{tmp_path}/warm{end}", dtype=dtype, checksum="crc32c")  # imports
    tracemalloc.start()
    try:
        report = ferry.save(x, f"{tmp_path}/x{end}", dtype=dtype, max_staging_bytes=LIMIT, checksum="crc32c")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.nbytes >= 5 * LIMIT
    assert peak <= LIMIT + (256 << 10)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("staging", [64 << 10, 100_000, 4 << 20], ids=lambda n: f"{n:,} bytes")
def test_values_do_not_depend_on_the_size_of_the_blocks(tmp_path: Path, case: str, staging: int) -> None:
    make, dtype = CASES[case]
    x = make()
    ferry.save({"x": x}, tmp_path / "x.npz", dtype=dtype, max_staging_bytes=staging)
    expected = x if dtype is None else x.to(dtype)
    found = ferry.load(tmp_path / "x.npz")["x"]
    assert bits(found) == bits(expected) or (isinstance(x, np.ndarray) and (found == x).all())


def test_an_iterator_of_a_large_model_takes_one_tensor_at_a_time(tmp_path: Path) -> None:
    def made() -> Any:
        for i in range(40):
            yield str(i), np.full(1 << 16, i, np.float32)

    tracemalloc.start()
    try:
        report = ferry.save(made(), tmp_path / "x.safetensors", max_staging_bytes=LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.nbytes == 40 << 18
    assert peak <= LIMIT + (3 << 18) + (600 << 10)  # blocks, two tensors, the draft's header


@every_format
@pytest.mark.parametrize("streamed", [False, True], ids=["known", "from an iterator"])
def test_progress_rises_to_what_the_report_says(tmp_path: Path, end: str, streamed: bool) -> None:
    tree = {f"w{i}": torch.ones(1 << 18) for i in range(4)}
    seen: list[tuple[int, int | None]] = []
    report = ferry.save(
        iter(tree.items()) if streamed else tree, f"{tmp_path}/x{end}", progress=lambda *said: seen.append(said)
    )
    done = [said[0] for said in seen]
    assert done == sorted(done)
    assert len(done) >= 4
    assert {said[1] for said in seen} == {None if streamed else 4 << 20}
    assert report.nbytes <= done[-1] <= report.file_nbytes
    size = sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file())
    assert report.file_nbytes == size
    assert report.path == f"{tmp_path}/x{end}".rstrip("/")
    assert report.seconds > 0
    assert "4 tensors" in str(report)


def test_a_report_of_a_buffered_save_says_so(tmp_path: Path) -> None:
    report = ferry.save(torch.ones(3), tmp_path / "x.npy")
    assert (report.io, report.durable, report.checksum, report.format) == ("buffered", False, None, "npy")
    assert report.paths == (str(tmp_path / "x.npy"),)
    assert report.io_reason


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("durable", 1),
        ("overwrite", "yes"),
        ("checksum", "md5"),
        ("progress", 3),
        ("metadata", {"a": 1}),
        ("metadata", {"tensorferry": "x"}),
        ("metadata", "text"),
        ("max_staging_bytes", 1000),
        ("max_staging_bytes", None),
        ("format", "zip"),
    ],
)
def test_arguments_that_mean_nothing_are_refused_before_anything_is_touched(
    tmp_path: Path, name: str, value: object
) -> None:
    with pytest.raises(ferry.ArgumentError, match=name):
        ferry.save(torch.ones(3), tmp_path / "x.npz", **{name: value})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_path_without_a_known_end_needs_a_format(tmp_path: Path) -> None:
    with pytest.raises(ferry.ArgumentError, match="means no format"):
        ferry.save(torch.ones(3), tmp_path / "x.bin")
    ferry.save(torch.ones(3), tmp_path / "x.bin", format="npy")
    assert np.load(tmp_path / "x.bin").tolist() == [1, 1, 1]


@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (2, 3, 4), (1000, 1), (1, 1000), (5, 0, 3)], ids=str)
@pytest.mark.parametrize("limit", [4, 8, 24, 100, 10_000], ids=lambda n: f"{n} bytes")
def test_slabs_are_the_array_in_order(shape: tuple[int, ...], limit: int) -> None:
    array = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    parts = [(array[(*index, ...)], part) for index, part in slabs(shape, 4, limit)]
    assert all(found.shape == part for found, part in parts)
    assert all(found.nbytes <= limit for found, _ in parts)
    assert b"".join(found.tobytes() for found, _ in parts) == array.tobytes()


def test_blocks_are_aligned_and_no_more_than_allowed() -> None:
    pipeline = Pipeline(SaveOptions(max_staging_nbytes=1 << 20))
    blocks = [pipeline.take() for _ in range(pipeline.most_blocks)]
    assert sum(block.nbytes for block in blocks) <= 1 << 20
    assert all(block.memory.ctypes.data % 4096 == 0 and block.nbytes % 4096 == 0 for block in blocks)
    pipeline.give(blocks[0])
    assert pipeline.take() is blocks[0]


@every_format
def test_a_lazy_snapshot_is_saved_without_being_copied_as_a_whole(tmp_path: Path, end: str) -> None:
    x = torch.arange(1 << 18, dtype=torch.float32)
    snapshot = torch._lazy_clone(x)
    ferry.save({"x": snapshot}, f"{tmp_path}/x{end}", max_staging_bytes=64 << 10)
    assert torch._C._is_cow_tensor(snapshot)
    assert torch._C._is_cow_tensor(x)
    assert bits(ferry.load(f"{tmp_path}/x{end}")["x"]) == bits(x)
