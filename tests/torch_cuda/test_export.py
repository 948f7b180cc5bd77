"""Saving CUDA tensors: piece by piece through pinned blocks, in stream order, with the values of the call."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import tensorferry as ferry
from helpers import torch_dtypes as dtypes
from helpers.device_path import no_internal_thread
from helpers.saved_trees import FORMATS, same_bits, tree

_OUT_OF_MEMORY = 2
every_format = pytest.mark.parametrize("end", FORMATS.values(), ids=FORMATS)


@every_format
def test_a_tree_on_a_device_is_saved_as_on_the_host(any_schedule: Any, tmp_path: Path, end: str) -> None:
    on_device = {name: x.to("cuda") for name, x in tree().items()}
    report = ferry.save(on_device, f"{tmp_path}/x{end}", checksum="crc32c")
    assert report.tensors == len(on_device)
    assert same_bits(ferry.load(f"{tmp_path}/x{end}", to="torch"), tree())
    assert ferry.verify(f"{tmp_path}/x{end}").checked == len(on_device)


@pytest.mark.parametrize("dtype", [*dtypes.NUMPY_HAS, *dtypes.ML_FLOATS], ids=dtypes.name_of)
def test_every_dtype_comes_from_the_device(cuda: Any, tmp_path: Path, dtype: torch.dtype) -> None:
    x = dtypes.sample(dtype)
    ferry.save({"x": x.to("cuda"), "rows": x.to("cuda")[:, ::2]}, tmp_path / "x.npz")
    assert same_bits(ferry.load(tmp_path / "x.npz", to="torch"), {"x": x, "rows": x[:, ::2]})


def test_a_large_tensor_is_copied_in_pieces_within_the_limit(any_schedule: Any, tmp_path: Path) -> None:
    x = torch.arange(1 << 20, dtype=torch.float32)
    on_device = x.to("cuda")
    ferry.save(on_device[:10], tmp_path / "small.npy")  # imports what it needs
    tracemalloc.start()
    try:
        ferry.save(on_device, tmp_path / "x.npy", max_staging_bytes=256 << 10)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        with no_internal_thread():  # CPython before 3.12.9 crashes where a thread that is new to it comes meanwhile
            tracemalloc.stop()
    assert peak < 1 << 20
    assert same_bits({"x": ferry.load(tmp_path / "x.npy", to="torch")}, {"x": x})


def test_tied_tensors_on_a_device_are_copied_once(cuda: Any, tmp_path: Path) -> None:
    w = torch.ones(1000, device="cuda")
    report = ferry.save({"a": w, "b": w, "c": w[:500], "d": w.view(10, 100)}, tmp_path / "x.safetensors")
    assert (report.tensors, report.aliases, report.nbytes) == (4, 1, 10_000)


def test_an_iterator_may_fill_the_same_device_memory_again(any_schedule: Any, tmp_path: Path) -> None:
    def reusing() -> Iterator[tuple[str, torch.Tensor]]:
        buffer = torch.empty(100_000, device="cuda")
        for i in range(4):
            yield f"w{i}", buffer.fill_(i)
        buffer.fill_(-1)

    ferry.save(reusing(), tmp_path / "x.safetensors", max_staging_bytes=128 << 10)
    found = ferry.load(tmp_path / "x.safetensors", to="torch")
    assert {name: x.unique().tolist() for name, x in found.items()} == {f"w{i}": [i] for i in range(4)}


def test_values_are_converted_on_the_way(cuda: Any, tmp_path: Path) -> None:
    x = torch.arange(1000.0)
    ferry.save({"x": x.to("cuda"), "i": torch.arange(3, device="cuda")}, tmp_path / "x.npz", dtype=torch.bfloat16)
    assert same_bits(ferry.load(tmp_path / "x.npz", to="torch"), {"x": x.bfloat16(), "i": torch.arange(3)})


def test_a_device_that_fails_leaves_nothing_and_the_next_save_works(cuda: Any, tmp_path: Path) -> None:
    x = torch.arange(1 << 17, dtype=torch.float32)
    on_device = cuda.settled(x)
    for copy in ("cuMemcpyDtoHAsync", "cuMemcpyBatchAsync", "cuLaunchKernel"):
        cuda.fake.fault(copy, _OUT_OF_MEMORY, 0)
    with pytest.raises(ferry.DeviceError):
        ferry.save({"good": torch.ones(3), "bad": on_device}, tmp_path / "x.npz", max_staging_bytes=64 << 10)
    assert list(tmp_path.iterdir()) == []
    cuda.fake.clear_faults()
    ferry.save({"bad": on_device}, tmp_path / "x.npz")
    assert same_bits(ferry.load(tmp_path / "x.npz", to="torch"), {"bad": x})
