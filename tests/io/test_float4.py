"""float4 in .safetensors files: two values in a byte, as torch and the safetensors library have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.torch
import torch

import tensorferry as ferry
from helpers.saved_trees import write_by_hand

FLOAT4 = torch.float4_e2m1fn_x2
# The sixteen values, by their bits: one of sign, two of exponent, one of mantissa.
VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]


def packed(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    """Return random bytes of two values each."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (rows, columns), dtype=torch.uint8, generator=generator).view(FLOAT4)


def bits(x: torch.Tensor) -> list[Any]:
    """Return the bytes."""
    found: list[Any] = x.view(torch.uint8).tolist()
    return found


def header(path: Path) -> Any:
    """Return the header as JSON."""
    data = path.read_bytes()
    return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])


@pytest.mark.parametrize("way", ["known", "from an iterator", "in the background", "in shards"])
@pytest.mark.parametrize("layout", ["contiguous", "strided", "large"])
def test_other_libraries_and_we_read_the_same_bits(tmp_path: Path, way: str, layout: str) -> None:
    x = packed(1200, 2000) if layout == "large" else packed(6, 10)
    if layout == "strided":
        x = x.view(torch.uint8)[::2, ::3].view(FLOAT4)
    tree = {"w": x, "scale": torch.ones(3, dtype=torch.float8_e4m3fn), "b": torch.arange(5.0)}
    path = tmp_path / "x.safetensors"
    seen: list[tuple[int, int | None]] = []
    if way == "known":
        ferry.save(tree, path, checksum="crc32c", progress=lambda *said: seen.append(said))
    elif way == "from an iterator":
        ferry.save(iter(tree.items()), path, checksum="crc32c")
    elif way == "in the background":
        ferry.save_async(tree, path, checksum="crc32c").result()
    else:
        ferry.save(tree, path, checksum="crc32c", max_shard_size=10)
    found = ferry.load(path, to="torch")
    assert found["w"].dtype == FLOAT4
    assert bits(found["w"]) == bits(x)
    assert ferry.verify(path).checked == 3
    described = {tensor.name: tensor for tensor in ferry.inspect(path).tensors}["w"]
    assert (described.dtype, described.shape) == ("float4_e2m1fn", (x.shape[0], 2 * x.shape[1]))
    assert described.nbytes == x.numel()
    if way == "in shards":
        return
    theirs = safetensors.torch.load_file(path)
    assert theirs["w"].dtype == FLOAT4
    assert bits(theirs["w"]) == bits(x)
    assert torch.equal(theirs["b"], tree["b"])
    assert header(path)["w"]["dtype"] == "F4"
    if seen:
        assert {total for _, total in seen} == {x.numel() + 3 + 20}


@pytest.mark.parametrize("mmap", [True, False])
def test_files_of_others_are_read(tmp_path: Path, mmap: bool) -> None:
    x = torch.arange(8, dtype=torch.uint8).mul(2 * 16 + 2).add(16).reshape(2, 4).view(FLOAT4)  # 0x10, 0x32, ..., 0xFE
    safetensors.torch.save_file({"x": x}, tmp_path / "x.safetensors")
    found = ferry.load(tmp_path / "x.safetensors", mmap=mmap)["x"]
    assert found.dtype == ml_dtypes.float4_e2m1fn
    assert found.astype(np.float32).reshape(-1).tolist() == VALUES
    assert np.signbit(found.astype(np.float32)).reshape(-1).tolist() == [False] * 8 + [True] * 8
    tensor = ferry.load(tmp_path / "x.safetensors", mmap=mmap, to="torch")["x"]
    assert bits(tensor) == bits(x)
    before = (tmp_path / "x.safetensors").read_bytes()
    tensor.view(torch.uint8).zero_()  # a private copy
    assert (tmp_path / "x.safetensors").read_bytes() == before


@pytest.mark.parametrize("order", ["C", "F", "steps"])
def test_arrays_of_one_value_a_byte_are_packed(tmp_path: Path, order: str) -> None:
    a = np.array(VALUES * 3, ml_dtypes.float4_e2m1fn).reshape(6, 8)
    a = {"C": a, "F": np.asfortranarray(a), "steps": np.repeat(a, 2, axis=0)[::2]}[order]
    a.view(np.uint8)[0, 0] |= 0xF0  # bits that mean nothing
    ferry.save({"a": a}, tmp_path / "x.safetensors")
    theirs = safetensors.torch.load_file(tmp_path / "x.safetensors")["a"]
    nibbles = np.ascontiguousarray(a).view(np.uint8) & 0x0F
    assert theirs.view(torch.uint8).numpy().tolist() == (nibbles[:, 0::2] + 16 * nibbles[:, 1::2]).tolist()
    assert np.array_equal(ferry.load(tmp_path / "x.safetensors")["a"].view(np.uint8), nibbles)


def test_what_cannot_be_paired_is_written_as_bits(tmp_path: Path) -> None:
    odd = np.array(VALUES[:15], ml_dtypes.float4_e2m1fn).reshape(5, 3)
    tree = {"odd": odd, "alone": odd[0, 0], "none": odd[:, :0]}
    ferry.save(tree, tmp_path / "x.safetensors")
    assert header(tmp_path / "x.safetensors")["odd"]["dtype"] == "U8"
    found = ferry.load(tmp_path / "x.safetensors")
    for name, array in tree.items():
        assert found[name].dtype == ml_dtypes.float4_e2m1fn
        assert found[name].shape == np.asarray(array).shape
        assert np.array_equal(found[name].view(np.uint8), np.asarray(array).view(np.uint8))


def test_ties_are_found(tmp_path: Path) -> None:
    x = packed(2, 2)
    report = ferry.save({"a": x, "b": x}, tmp_path / "x.safetensors")
    assert (report.tensors, report.aliases, report.nbytes) == (2, 1, 4)
    found = ferry.load(tmp_path / "x.safetensors", to="torch")
    assert bits(found["b"]) == bits(x)


@pytest.mark.parametrize(("shape", "nbytes"), [("[3,4]", 5), ("[3,3]", 4), ("[3,3]", 5)])
def test_a_damaged_header_is_an_error(tmp_path: Path, shape: str, nbytes: int) -> None:
    text = f'{{"x":{{"dtype":"F4","shape":{shape},"data_offsets":[0,{nbytes}]}}}}'
    write_by_hand(f"{tmp_path}/x.safetensors", text.encode(), bytes(nbytes))
    with pytest.raises(ferry.ExportError, match="shape of tensor 'x'"):
        ferry.load(tmp_path / "x.safetensors")
