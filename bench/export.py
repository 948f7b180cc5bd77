"""Many tensors to files: through the page cache, and until they are on the disk.

What a candidate left is emptied before the next one begins, off the clock. So no more than one set of files waits for
the disk: past a share of memory the system would make writers wait for the bytes of others. The empty files stay until
the end, as ext4 looks for minutes whether a number of a removed file may be used again, at every file that is made.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorferry.bench import Candidate, Case, Inputs, Point, at_least, best, naive, ours
from tensorferry.bench.cases._inputs import named, random_tensor
from tensorferry.bench.cases._points import MIB

if TYPE_CHECKING:
    import torch

__all__ = ["CASES"]

GIB = 1024 * MIB

State = Mapping[str, Any]
Array = np.ndarray[Any, Any]


class _Folder:
    """A folder for files, a new one on request; all go when this object dies."""

    def __init__(self) -> None:
        self._root = tempfile.mkdtemp(prefix="tensorferry-bench-")
        self._count = 0
        os.mkdir(self._path)

    @property
    def _path(self) -> str:
        return os.path.join(self._root, str(self._count))

    def __truediv__(self, name: str) -> str:
        return os.path.join(self._path, name)

    def empty(self) -> None:
        """Free the memory and the disk that its files take, and begin with an empty one."""
        for folder, _, names in os.walk(self._path):
            for name in names:
                os.truncate(os.path.join(folder, name), 0)
        self._count += 1
        os.mkdir(self._path)

    def __del__(self) -> None:
        shutil.rmtree(self._root, ignore_errors=True)


def _state(rng: np.random.Generator, nbytes: int, count: int) -> Inputs:
    shape = (nbytes // count // 4 // 64, 64)
    state = {f"layers.{i}.weight": random_tensor(rng, shape, "float32") for i in range(count)}
    return named(state=state, arrays=[t.numpy() for t in state.values()], folder=_Folder())


def _ours(name: str, durable: bool) -> Callable[[Inputs], object]:
    def save(inputs: Inputs) -> str:
        path: str = inputs["folder"] / name
        inputs["ferry"].save(inputs["state"], path, durable=durable)
        return path

    return save


def _torch_save(durable: bool, *, checksums: bool = True) -> Callable[[Inputs], object]:
    def save(inputs: Inputs) -> str:
        path: str = inputs["folder"] / "model.pt"
        options = inputs["torch"].serialization
        before = options.get_crc32_options()
        options.set_crc32_options(checksums)
        try:
            inputs["torch"].save(inputs["state"], path)
        finally:
            options.set_crc32_options(before)
        _flush(path, durable)
        return path

    return save


def _save_file(durable: bool) -> Callable[[Inputs], object]:
    def save(inputs: Inputs) -> str:
        from safetensors.torch import save_file

        path: str = inputs["folder"] / "model.safetensors"
        save_file(inputs["state"], path)
        _flush(path, durable)
        return path

    return save


def _np_save(durable: bool) -> Callable[[Inputs], object]:
    def save(inputs: Inputs) -> str:
        path: str = inputs["folder"] / "arrays"
        os.mkdir(path)
        for name, array in zip(inputs["state"], inputs["arrays"], strict=True):
            np.save(f"{path}/{name}.npy", array)
            _flush(f"{path}/{name}.npy", durable)
        return path

    return save


def _plain(durable: bool, *, reserved: bool = False) -> Callable[[Inputs], object]:
    def write(inputs: Inputs) -> str:
        path: str = inputs["folder"] / "plain"
        _write(path, inputs["arrays"], durable, reserved=reserved)
        return path

    return write


def _plain_files(durable: bool) -> Callable[[Inputs], object]:
    def write(inputs: Inputs) -> str:
        path: str = inputs["folder"] / "plain"
        os.mkdir(path)
        for name, array in zip(inputs["state"], inputs["arrays"], strict=True):
            _write(f"{path}/{name}", [array], durable)
        return path

    return write


def _write(path: str, arrays: list[Array], durable: bool, *, reserved: bool = False) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        if reserved:
            os.posix_fallocate(file, 0, sum(array.nbytes for array in arrays))
        for array in arrays:
            view = array.data.cast("B")
            while len(view):
                view = view[os.write(file, view) :]
        if durable:
            os.fsync(file)
    finally:
        os.close(file)


def _flush(path: str, durable: bool) -> None:
    if durable:
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _check(path: str, state: dict[str, torch.Tensor]) -> int:
    """Read a result with the library whose format it is, and compare every value."""
    if path.endswith("plain"):
        files = [f"{path}/{name}" for name in state] if os.path.isdir(path) else [path]
        written = np.concatenate([np.fromfile(file, np.uint8) for file in files])
        assert np.array_equal(written, np.concatenate([t.numpy().reshape(-1).view(np.uint8) for t in state.values()]))
        return written.size
    found = _read(path, state)
    assert set(found) == set(state)
    for name, tensor in state.items():
        assert np.array_equal(found[name], tensor.numpy()), name
    return sum(tensor.numel() for tensor in state.values())


def _read(path: str, state: State) -> dict[str, Array]:
    import torch

    if path.endswith(".pt"):
        loaded = torch.load(path, weights_only=True, mmap=True)
        return {name: tensor.numpy() for name, tensor in loaded.items()}
    if path.endswith(".safetensors"):
        from safetensors.numpy import load_file

        found: dict[str, Array] = load_file(path)
        return found
    return {name: np.load(f"{path}/{name}.npy", mmap_mode="r") for name in state}


_POINTS = ({"nbytes": 2 * GIB, "count": 512}, {"nbytes": 256 * MIB, "count": 4096})
_PLAIN = "os.write, one file"
_PLAIN_FILES = "os.write, a file each"
_TORCH = "torch.save(state, path)"
_SAFETENSORS = "safetensors.torch.save_file(state, path)"


def _is_large(point: Point) -> bool:
    return int(point["nbytes"]) >= GIB


def _peers(durable: bool) -> tuple[Candidate, ...]:
    end = ", fsync" if durable else ""
    return (
        best(_PLAIN + end, _plain(durable)),
        best(f"os.write, one file with its space reserved{end}", _plain(durable, reserved=True)),
        best(_PLAIN_FILES + end, _plain_files(durable)),
        naive(_TORCH + end, _torch_save(durable)),
        best(f"{_TORCH} without CRC32{end}", _torch_save(durable, checksums=False)),
        best(_SAFETENSORS + end, _save_file(durable), needs=("safetensors",)),
        best(f"np.save, a file each{end}", _np_save(durable)),
    )


def _case(name: str, title: str, file: str, durable: bool) -> Case:
    end = ", fsync" if durable else ""
    arguments = ", durable=True" if durable else ""
    libraries = (at_least(3, _TORCH, _is_large), at_least(2, _SAFETENSORS, _is_large))
    small = _PLAIN_FILES if file.endswith("/") else _PLAIN
    return Case(
        name=f"export.{name}{'_durable' if durable else ''}",
        title=f"{title}, {'until they are on the disk' if durable else 'through the page cache'}",
        setup=_state,
        candidates=(ours(f'ferry.save(state, "{file}"{arguments})', _ours(file, durable)), *_peers(durable)),
        expected=lambda inputs: inputs["state"],
        check=_check,
        before=lambda inputs: inputs["folder"].empty(),
        goals=(
            at_least(0.9, _PLAIN + end, _is_large),
            *(() if durable else (*libraries, at_least(0.9, small, lambda point: not _is_large(point)))),
        ),
        points=_POINTS[: 1 if durable else 2],
        quick=({"nbytes": 4 * MIB, "count": 16},),
    )


CASES = tuple(
    _case(name, title, file, durable)
    for name, title, file in (
        ("safetensors", "Many float32 tensors to a .safetensors file", "model.safetensors"),
        ("npy_folder", "Many float32 tensors to a folder of .npy files", "arrays/"),
    )
    for durable in (False, True)
)
