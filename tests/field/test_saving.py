"""Field cases: files that are too large, refused for their layout, or lose their dtype."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

import tensorferry as ferry


# A slice of ten elements costs the whole storage, by design; people clone before they save.
@pytest.mark.parametrize("end", [".safetensors", ".npz", ".npy", "/"])
def test_f087_a_slice_takes_what_it_shows(tmp_path: Path, end: str) -> None:
    slice_of_ten = torch.zeros(100_000)[:10]
    by_torch = io.BytesIO()
    torch.save(slice_of_ten, by_torch)
    assert by_torch.tell() > 400_000
    report = ferry.save(slice_of_ten, f"{tmp_path}/x{end}")
    assert report.nbytes == 40
    assert report.file_nbytes < 1000


# After channels_last, merges and tied layouts, people meet "you are trying to save a non contiguous tensor".
@pytest.mark.parametrize(
    "x",
    [torch.ones(2, 3).t(), torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.ones(3).expand(2, 3)],
    ids=["transposed", "channels last", "expanded"],
)
def test_f088_layouts_are_packed_while_they_are_written(tmp_path: Path, x: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="non contiguous"):
        safetensors.torch.save_file({"w": x}, tmp_path / "theirs.safetensors")
    ferry.save({"w": x}, tmp_path / "ours.safetensors")
    found = safetensors.torch.load_file(tmp_path / "ours.safetensors")["w"]
    assert found.is_contiguous()
    assert torch.equal(found, x)


# np.save of an ml_dtypes array comes back as raw bytes of no type, and float8_e5m2 cannot be loaded at all.
@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
@pytest.mark.parametrize("end", [".npy", ".npz", "/"])
def test_f090_small_floats_keep_their_dtype_on_disk(tmp_path: Path, name: str, end: str) -> None:
    dtype = getattr(torch, name)
    x = torch.arange(256, dtype=torch.uint8).view(dtype)
    ferry.save({"x": x} if end != ".npy" else x, f"{tmp_path}/x{end}")
    loaded = ferry.load(f"{tmp_path}/x{end}", to="torch")
    found = loaded if end == ".npy" else loaded["x"]
    assert found.dtype == dtype
    assert torch.equal(found.view(torch.uint8), x.view(torch.uint8))
    if end == ".npy":
        raw = np.load(tmp_path / "x.npy")
        assert raw.dtype.names == (name,)
        assert raw[name].view(np.uint8).tolist() == x.view(torch.uint8).tolist()
