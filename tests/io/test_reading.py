"""``load``: maps, copies, dtypes, files of others; and every kind of damage, which is named and never believed."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

import tensorferry as ferry
from helpers.saved_trees import FORMATS, same_bits, tree, write_by_hand

every_format = pytest.mark.parametrize("end", FORMATS.values(), ids=FORMATS)
ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@every_format
def test_mapped_arrays_are_read_only_and_mapped_tensors_private(tmp_path: Path, end: str) -> None:
    ferry.save(tree(), f"{tmp_path}/x{end}")
    arrays = ferry.load(f"{tmp_path}/x{end}")
    assert not any(array.flags.writeable for array in arrays.values() if array.size)
    tensors = ferry.load(f"{tmp_path}/x{end}", to="torch")
    tensors["weight"].fill_(7)
    tensors["half"].add_(1)
    assert same_bits(ferry.load(f"{tmp_path}/x{end}", to="torch"), tree())
    assert same_bits(arrays, tree())


@every_format
def test_without_a_map_everything_is_read_into_private_memory(tmp_path: Path, end: str) -> None:
    ferry.save({"x": np.zeros(3)}, f"{tmp_path}/x{end}")
    x = ferry.load(f"{tmp_path}/x{end}", mmap=False)["x"]
    x += 1
    assert ferry.load(f"{tmp_path}/x{end}")["x"].tolist() == [0, 0, 0]
    assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed], ids=["stored", "compressed"])
def test_archives_of_numpy_are_read(tmp_path: Path, write: Any) -> None:
    arrays = {"c": np.arange(6.0).reshape(2, 3), "f": np.asfortranarray(np.arange(6).reshape(2, 3)), "s": np.array(3)}
    write(tmp_path / "x.npz", **arrays)
    found = ferry.load(tmp_path / "x.npz")
    assert {name: array.tolist() for name, array in found.items()} == {n: a.tolist() for n, a in arrays.items()}
    assert {name: array.dtype for name, array in found.items()} == {n: a.dtype for n, a in arrays.items()}
    assert ferry.verify(tmp_path / "x.npz").archive_checked


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.ones((2, 3))), np.arange(3, dtype=">i4"), np.array(5)]
)
@pytest.mark.parametrize("mmap", [True, False])
def test_arrays_of_numpy_are_read(tmp_path: Path, array: np.ndarray, mmap: bool) -> None:
    np.save(tmp_path / "x.npy", array)
    found = ferry.load(tmp_path / "x.npy", mmap=mmap)
    assert found.dtype == array.dtype
    assert found.tolist() == array.tolist()
    assert found.flags.f_contiguous == array.flags.f_contiguous


def test_files_of_the_safetensors_library_are_read(tmp_path: Path) -> None:
    safetensors.torch.save_file({n: t.contiguous() for n, t in tree().items()}, tmp_path / "x.safetensors")
    assert same_bits(ferry.load(tmp_path / "x.safetensors", to="torch"), tree())
    assert ferry.verify(tmp_path / "x.safetensors").checked == 0


@pytest.mark.parametrize("side", ["numpy", "torch"])
def test_empty_tensors_and_scalars_come_back(tmp_path: Path, side: Any) -> None:
    given = {"none": torch.empty(3, 0, 2), "one": torch.tensor(2.5), "empty": torch.empty(0, dtype=torch.bfloat16)}
    ferry.save(given, tmp_path / "x.safetensors")
    assert same_bits(ferry.load(tmp_path / "x.safetensors", to=side), given)


def test_dtypes_that_torch_lacks_are_named(tmp_path: Path) -> None:
    ferry.save({"when": np.array(["2024-01-01"], "datetime64[D]")}, tmp_path / "x.npz")
    with pytest.raises(ferry.DTypeError, match="tensor 'when'"):
        ferry.load(tmp_path / "x.npz", to="torch")


@pytest.mark.parametrize("end", [".npy", ".npz"])
def test_pickles_are_never_loaded(tmp_path: Path, end: str) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return pytest.fail, ("code from the file was run",)

    objects = np.array([Trap()], object)
    save: Any = np.save if end == ".npy" else np.savez
    save(tmp_path / f"x{end}", objects, allow_pickle=True)
    for look in (ferry.load, ferry.inspect, ferry.verify):
        with pytest.raises(ferry.ExportError, match="run code from the file"):
            look(tmp_path / f"x{end}")
    (tmp_path / f"y{end}").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ferry.ExportError):
        ferry.load(tmp_path / f"y{end}")


@pytest.mark.parametrize("end", [".safetensors", ".npz", ".npy", "/"])
def test_a_file_cut_anywhere_is_refused(tmp_path: Path, end: str) -> None:
    path = f"{tmp_path}/x{end}"
    x = {"x": torch.arange(50.0)}
    ferry.save(x["x"] if end == ".npy" else x, path)
    file = Path(path) / "x.npy" if end == "/" else Path(path)
    whole = file.read_bytes()
    for length in [*range(0, len(whole), 13), len(whole) - 1]:
        file.write_bytes(whole[:length])
        with pytest.raises(ferry.ExportError):
            ferry.load(path)


@pytest.mark.parametrize(
    ("header", "data", "why"),
    [
        (b"", b"", "damaged"),
        (b"[1]", b"", "damaged"),
        (b"{", b"", "damaged"),
        (b"\xff", b"", "damaged"),
        (b'{"x": 3}', b"", "damaged"),
        (b'{"__metadata__": 3}', b"", "damaged"),
        (b'{"x": {"dtype": "F32"}}', b"", "damaged"),
        (json.dumps({"x": {**ENTRY, "dtype": "F33"}}).encode(), b"\0" * 8, "F33"),
        (json.dumps({"x": {**ENTRY, "shape": [3]}}).encode(), b"\0" * 8, "does not fit"),
        (json.dumps({"x": {**ENTRY, "shape": [-2]}}).encode(), b"\0" * 8, "does not fit"),
        (json.dumps({"x": {**ENTRY, "shape": ["a"]}}).encode(), b"\0" * 8, "damaged"),
        (json.dumps({"x": ENTRY}).encode(), b"\0" * 7, "ends at byte 8 of 7"),
        (json.dumps({"x": ENTRY}).encode(), b"\0" * 9, "take 8 bytes, and 9 are there"),
        (json.dumps({"x": {**ENTRY, "data_offsets": [4, 12]}}).encode(), b"\0" * 12, "does not begin where"),
        (json.dumps({"x": ENTRY, "y": ENTRY}).encode(), b"\0" * 8, "does not begin where"),
        (json.dumps({"x": {**ENTRY, "data_offsets": [-8, 0]}}).encode(), b"", "ends at byte"),
        (json.dumps({"__metadata__": {"tensorferry": "{"}}).encode(), b"", "damaged"),
        (json.dumps({"__metadata__": {"tensorferry": '{"aliases": {"a": "b"}}'}}).encode(), b"", "alias"),
        (
            json.dumps({"__metadata__": {"tensorferry": '{"dtypes": {"x": "int4"}}'}, "x": ENTRY}).encode(),
            b"\0" * 8,
            "tagged 'int4'",
        ),
        (
            json.dumps({"__metadata__": {"tensorferry": '{"dtypes": {"x": "nonsense"}}'}, "x": ENTRY}).encode(),
            b"\0" * 8,
            "tagged 'nonsense'",
        ),
    ],
)
def test_a_header_that_does_not_fit_is_refused(tmp_path: Path, header: bytes, data: bytes, why: str) -> None:
    write_by_hand(f"{tmp_path}/x.safetensors", header, data)
    with pytest.raises(ferry.ExportError, match=why):
        ferry.load(tmp_path / "x.safetensors")


def test_a_header_longer_than_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes((1 << 62).to_bytes(8, "little") + b"{}")
    with pytest.raises(ferry.ExportError, match="cut off"):
        ferry.load(tmp_path / "x.safetensors")


def test_flipped_bytes_are_found_by_their_tensor(tmp_path: Path) -> None:
    x = {"good": torch.ones(1000), "bad": torch.zeros(1000)}
    for end in (*FORMATS.values(), ".npy"):
        path = f"{tmp_path}/x{end}"
        ferry.save(x["bad"] if end == ".npy" else x, path, checksum="crc32c")
        assert ferry.verify(path).checked == (1 if end == ".npy" else 2)
        file = Path(path) / "bad.npy" if end == "/" else Path(path)
        raw = file.read_bytes()
        place = raw.rindex(b"\0" * 1000) + 100
        file.write_bytes(raw[:place] + b"\1" + raw[place + 1 :])
        with pytest.raises(ferry.ExportError, match=r"sum that the archive|checksum that was written: '(bad)?'"):
            ferry.verify(path)


def test_an_index_of_a_folder_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "secret.npy", np.ones(3))
    ferry.save({"x": np.ones(3)}, f"{tmp_path}/x/")
    index = tmp_path / "x" / "index.json"
    facts = json.loads(index.read_text())
    for name in ("../secret.npy", str(tmp_path / "secret.npy"), "", "..", 3):
        facts["tensors"]["x"]["file"] = name
        index.write_text(json.dumps(facts))
        with pytest.raises(ferry.ExportError, match="outside of it"):
            ferry.load(tmp_path / "x")
    (tmp_path / "x" / "x.npy").unlink()
    (tmp_path / "x" / "x.npy").symlink_to(tmp_path / "secret.npy")
    facts["tensors"]["x"]["file"] = "x.npy"
    index.write_text(json.dumps(facts))
    with pytest.raises(ferry.ExportError, match="it is a link"):
        ferry.load(tmp_path / "x")


def test_an_index_of_a_folder_that_says_something_else_is_refused(tmp_path: Path) -> None:
    ferry.save({"x": np.ones(3)}, f"{tmp_path}/x/")
    np.save(tmp_path / "x" / "x.npy", np.ones(4))
    with pytest.raises(ferry.ExportError, match="the index says float64"):
        ferry.load(tmp_path / "x")
    (tmp_path / "x" / "index.json").write_text('{"format": "another"}')
    with pytest.raises(ferry.ExportError, match="not the index"):
        ferry.load(tmp_path / "x")


def test_a_record_that_only_looks_like_a_tag_stays_a_record(tmp_path: Path) -> None:
    for dtype in ([("bfloat16", "<u4")], [("bfloat16", "<f2")], [("other", "<u2")]):
        np.save(tmp_path / "x.npy", np.zeros(2, dtype))
        assert ferry.load(tmp_path / "x.npy").dtype == np.dtype(dtype)


@pytest.mark.parametrize("look", [ferry.load, ferry.verify, ferry.inspect])
def test_what_is_not_there_is_named(tmp_path: Path, look: Any) -> None:
    for end in (*FORMATS.values(), ".npy"):
        with pytest.raises(ferry.ExportError, match="No such file"):
            look(f"{tmp_path}/none{end}")


def test_inspect_tells_names_dtypes_bytes_and_sums(tmp_path: Path) -> None:
    w = torch.ones(4, 3)
    ferry.save({"w": w, "v": w, "h": torch.ones(5).half()}, tmp_path / "x.safetensors", metadata={"run": "7"})
    seen = ferry.inspect(tmp_path / "x.safetensors")
    assert [(t.name, t.dtype, t.shape, t.nbytes, t.alias_of) for t in seen.tensors] == [
        ("w", "float32", (4, 3), 48, None),
        ("h", "float16", (5,), 10, None),
        ("v", "float32", (4, 3), 0, "w"),
    ]
    assert {name: (s.tensors, s.elements, s.nbytes) for name, s in seen.by_dtype.items()} == {
        "float32": (1, 12, 48),
        "float16": (1, 5, 10),
    }
    assert seen.metadata["run"] == "7"
    assert "same as w" in str(seen)


@every_format
def test_metadata_comes_back(tmp_path: Path, end: str) -> None:
    ferry.save({"w": np.ones(2)}, f"{tmp_path}/x{end}", metadata={"ünï": "“text”", "empty": ""})
    seen = dict(ferry.inspect(f"{tmp_path}/x{end}").metadata)
    seen.pop("format", None)
    assert seen == {"ünï": "“text”", "empty": ""}


def test_an_encrypted_or_foreign_archive_does_not_crash(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("readme.txt", "no array")
    with pytest.raises(ferry.ExportError, match=r"no \.npy file"):
        ferry.load(tmp_path / "x.npz")
    raw = io.BytesIO()
    np.save(raw, np.ones(2))
    with zipfile.ZipFile(tmp_path / "y.npz", "w") as archive:
        archive.writestr("../up.npy", raw.getvalue())
    assert list(ferry.load(tmp_path / "y.npz")) == ["../up"]
