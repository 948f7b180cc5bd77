"""Every dtype in every format: NumPy, safetensors and torch read the same values, and ``load`` gives back the dtype."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import safetensors.torch
import torch

import tensorferry as ferry
from helpers.saved_trees import FORMATS, bits, same_bits, tree
from helpers.torch_dtypes import CONVERTIBLE, ML_FLOATS, NUMPY_HAS, QUANTIZED, name_of, sample

every_format = pytest.mark.parametrize(("format", "end"), FORMATS.items(), ids=FORMATS)
# torch has these dtypes, and arrays have others that hold the same.
SAME_IN_ARRAYS = [dtype for dtype in CONVERTIBLE if dtype in NUMPY_HAS or dtype in ML_FLOATS]


@pytest.mark.parametrize(
    ("format", "dtype"),
    [(f, d) for f in FORMATS for d in SAME_IN_ARRAYS if (f, d) != ("safetensors", torch.complex128)],
    ids=lambda value: value if isinstance(value, str) else name_of(value),
)
def test_every_dtype_comes_back_bit_for_bit(tmp_path: Path, format: str, dtype: torch.dtype) -> None:
    x, end = sample(dtype), FORMATS[format]
    ferry.save({"x": x}, f"{tmp_path}/x{end}", checksum="crc32c")
    assert same_bits(ferry.load(f"{tmp_path}/x{end}", to="torch"), {"x": x})
    assert bits(ferry.load(f"{tmp_path}/x{end}", mmap=False)["x"]) == bits(x)


@every_format
@pytest.mark.parametrize("dtype", [torch.int4, torch.uint2, torch.float4_e2m1fn_x2], ids=name_of)
def test_dtypes_smaller_than_a_byte_are_tagged_and_restored(
    tmp_path: Path, format: str, end: str, dtype: torch.dtype
) -> None:
    x = sample(dtype)
    expected = ferry.to_numpy(x)
    ferry.save({"x": x}, f"{tmp_path}/x{end}")
    found = ferry.load(f"{tmp_path}/x{end}")["x"]
    assert found.dtype == expected.dtype
    assert found.astype(np.float32).tolist() == expected.astype(np.float32).tolist()


@pytest.mark.parametrize("dtype", [d for d in SAME_IN_ARRAYS if d is not torch.complex128], ids=name_of)
def test_the_safetensors_library_reads_what_was_saved(tmp_path: Path, dtype: torch.dtype) -> None:
    path = str(tmp_path / "x.safetensors")
    ferry.save({"x": sample(dtype), "also": torch.ones(3)}, path)
    with safetensors.safe_open(path, framework="pt") as file:
        assert file.metadata() == {"format": "pt"}
        found = file.get_tensor("x")
    assert found.dtype == dtype
    assert bits(found) == bits(sample(dtype))


def test_safetensors_has_no_complex128_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(ferry.ExportError, match=r"'deep\.x': a \.safetensors file has no complex128"):
        ferry.save({"deep": {"x": torch.ones(2, dtype=torch.complex128)}}, tmp_path / "x.safetensors")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", NUMPY_HAS, ids=name_of)
def test_numpy_reads_npy_npz_and_the_files_of_a_folder(tmp_path: Path, dtype: torch.dtype) -> None:
    x = sample(dtype)
    ferry.save(x, tmp_path / "x.npy")
    ferry.save({"x": x}, tmp_path / "x.npz")
    ferry.save({"x": x}, f"{tmp_path}/folder/")
    loaded = [np.load(tmp_path / "x.npy"), np.load(tmp_path / "x.npz")["x"], np.load(tmp_path / "folder" / "x.npy")]
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for array in [*loaded, mapped]:
        assert array.dtype == x.numpy().dtype
        assert array.tobytes() == x.numpy().tobytes()


def test_numpy_reads_the_bits_of_bfloat16_from_a_field_of_that_name(tmp_path: Path) -> None:
    x = torch.tensor([1.0, -2.5, float("nan")], dtype=torch.bfloat16)
    ferry.save(x, tmp_path / "x.npy")
    array = np.load(tmp_path / "x.npy")
    assert array.dtype == np.dtype([("bfloat16", "<u2")])
    assert array["bfloat16"].tolist() == x.view(torch.uint16).tolist()


@pytest.mark.parametrize("dtype", QUANTIZED, ids=name_of)
def test_quantised_tensors_are_refused_by_name(tmp_path: Path, dtype: torch.dtype) -> None:
    quantised = torch.quantize_per_tensor(torch.ones(4), 0.1, 0, dtype) if dtype in QUANTIZED[:3] else None
    x = quantised if quantised is not None else torch.empty(4, dtype=dtype)
    with pytest.raises(ferry.DTypeError, match="tensor 'x'"):
        ferry.save({"x": x}, tmp_path / "x.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "array",
    [
        np.array(["2024-02-29", "NaT"], "datetime64[D]"),
        np.array([1.5, 2.5], np.longdouble),
        np.array([(1, 2.0)], [("a", "<i4"), ("b", "<f8")]),
        np.array(["text", "more"]),
        np.arange(6, dtype=">f8").reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(24).reshape(2, 3, 4)[::-1, :, ::2],
    ],
    ids=["dates", "extended precision", "records", "text", "big endian", "Fortran order", "negative steps"],
)
@pytest.mark.parametrize("end", [".npz", "/"], ids=["npz", "folder"])
def test_arrays_that_only_numpy_has_come_back(tmp_path: Path, array: Any, end: str) -> None:
    ferry.save({"x": array}, f"{tmp_path}/x{end}")
    found = ferry.load(f"{tmp_path}/x{end}")["x"]
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.tolist() == array.tolist()


@pytest.mark.parametrize("end", [".npz", ".npy", ".safetensors"])
def test_python_objects_are_never_written(tmp_path: Path, end: str) -> None:
    with pytest.raises(ferry.DTypeError, match="Python objects"):
        ferry.save(np.array([{}, []], object), f"{tmp_path}/x{end}")
    assert list(tmp_path.iterdir()) == []


def test_torch_and_safetensors_agree_on_a_whole_tree(tmp_path: Path) -> None:
    ferry.save(tree(), tmp_path / "x.safetensors", metadata={"run": "7", "format": "np"})
    found = safetensors.torch.load_file(tmp_path / "x.safetensors")
    assert same_bits(found, tree())
    with safetensors.safe_open(tmp_path / "x.safetensors", framework="np") as file:
        assert file.metadata()["run"] == "7"
        assert file.metadata()["format"] == "np"


def test_data_in_a_large_file_begins_on_a_page_and_each_tensor_at_its_own_size(tmp_path: Path) -> None:
    ferry.save({"b": torch.ones(1, dtype=torch.int8), "w": torch.ones(1 << 18)}, tmp_path / "x.safetensors")
    raw = (tmp_path / "x.safetensors").read_bytes()
    assert (8 + int.from_bytes(raw[:8], "little")) % 4096 == 0
    found = ferry.load(tmp_path / "x.safetensors")
    assert all(array.ctypes.data % array.dtype.itemsize == 0 for array in found.values())


def test_numbers_become_arrays_without_axes(tmp_path: Path) -> None:
    ferry.save({"lr": 0.125, "step": 7, "done": True}, tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as found:
        assert {name: found[name].tolist() for name in found.files} == {"lr": 0.125, "step": 7, "done": True}


def test_what_is_no_tensor_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(ferry.DTypeError, match=r"tensor 'a\.1': a str"):
        ferry.save({"a": [torch.ones(1), "text"]}, tmp_path / "x.npz")
    with pytest.raises(ferry.DTypeError, match="mask"):
        ferry.save({"a": np.ma.masked_array([1, 2], [0, 1])}, tmp_path / "x.npz")
    assert list(tmp_path.iterdir()) == []
