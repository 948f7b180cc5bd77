"""Opens files of tensors without running code from them, and without reading values where they can be mapped."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert.take import is_array_like
from tensorferry._errors import FerryError, MissingDependencyError
from tensorferry._nest import labelled_leaves

__all__ = ["SUFFIXES", "Content", "UnreadableFileError", "open_file", "read_pt"]


class UnreadableFileError(FerryError, OSError):
    """A file cannot be read as what its name says."""


@dataclass(frozen=True)
class Content:
    """What a file holds.

    Attributes
    ----------
    opened_as : str
        The call that opened it.
    side : str
        "numpy" or "torch": what its tensors are once read.
    tensors : iterator of (str, object)
        Name and tensor, one at a time; in place of a tensor stands the error that reading it raised.
    """

    opened_as: str
    side: str
    tensors: Iterator[tuple[str, Any]]


def open_file(path: Path) -> Content:
    """Open a file by its suffix.

    Raises
    ------
    UnreadableFileError
        When it is missing, damaged, or can only be read by running code from it.
    MissingDependencyError
        When the package that reads it is not installed.
    """
    try:
        return SUFFIXES[path.suffix.lower()](path)
    except FerryError:
        raise
    except Exception as error:  # the readers raise whatever a damaged file leads them to
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception, member: str | None = None) -> UnreadableFileError:
    given = str(path) if member is None else f"{path}[{member!r}]"
    blocked = re.search(r"GLOBAL (\S+) was not an allowed global", str(error))
    if blocked:
        return UnreadableFileError(
            given,
            f"it holds a {blocked[1]}, and loading that would run code from the file",
            "save tensors only, for example torch.save(model.state_dict(), path)",
        )
    if isinstance(error, OSError) and error.strerror:
        return UnreadableFileError(given, error.strerror, "check the path and your rights to it")
    if "allow_pickle" in str(error) or "Python objects in dtype" in str(error):
        return UnreadableFileError(
            given, "it holds Python objects, and loading them would run code from the file", "save numbers only"
        )
    first_sentence = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
    return UnreadableFileError(
        given,
        f"it cannot be read as a {path.suffix} file ({type(error).__name__}: {first_sentence})",
        "check that it is complete and has the right suffix",
    )


def _open_npy(path: Path) -> Content:
    with path.open("rb") as file:  # numpy.load takes anything else for a pickle
        np.lib.format.read_magic(file)
    array = np.load(path, mmap_mode="c", allow_pickle=False)
    return Content('numpy.load(path, mmap_mode="c")', "numpy", iter([(path.stem, array)]))


def _open_npz(path: Path) -> Content:
    if path.is_file() and not zipfile.is_zipfile(path):
        raise ValueError("it is no zip archive")
    archive = np.load(path, allow_pickle=False)

    def members() -> Iterator[tuple[str, Any]]:
        with archive:
            for name in archive.files:
                yield name, _member(path, name, archive)

    return Content("numpy.load(path)", "numpy", members())


def _member(path: Path, name: str, archive: Any) -> Any:
    try:
        return archive[name]
    except Exception as error:  # one damaged member leaves the others readable
        return _unreadable(path, error, name)


def read_pt(path: Path) -> Any:
    """Return what a file of ``torch.save`` holds; its tensors are mapped where that is possible.

    Raises
    ------
    UnreadableFileError
        When it is missing, damaged, or can only be read by running code from it.
    MissingDependencyError
        When torch is not installed.
    """
    try:
        return _load_pt(path)[0]
    except FerryError:
        raise
    except Exception as error:  # torch raises whatever a damaged file leads it to
        raise _unreadable(path, error) from error


def _load_pt(path: Path) -> tuple[Any, bool]:
    torch = _torch.require(f"reading {path.name}")
    mapped = zipfile.is_zipfile(path)  # files of torch 1.5 and older are no archives and cannot be mapped
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of its own retired classes while it reads older files
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped), mapped


def _open_pt(path: Path) -> Content:
    loaded, mapped = _load_pt(path)
    call = f'torch.load(path, map_location="cpu", weights_only=True, mmap={mapped})'
    return Content(call, "torch", iter(_named(path, loaded)))


def _named(path: Path, loaded: Any) -> list[tuple[str, Any]]:
    """Name leaves by their place; in a plain state_dict, and for a lone tensor, by what everybody calls them."""
    leaves = [(label, leaf) for label, leaf in labelled_leaves(loaded) if is_array_like(leaf)]
    flat = isinstance(loaded, dict) and all(isinstance(key, str) for key in loaded)
    if flat and all(label.count("[") == 1 for label, _ in leaves):
        return [(key, leaf) for key, leaf in loaded.items() if is_array_like(leaf)]
    return [(label or path.stem, leaf) for label, leaf in leaves]


def _open_safetensors(path: Path) -> Content:
    try:
        import safetensors
    except ImportError as error:
        raise MissingDependencyError(
            f"reading {path.name}", "the package safetensors is not installed", "run pip install safetensors"
        ) from error
    try:
        _torch.require("safetensors")
        framework, side = "pt", "torch"
    except MissingDependencyError:
        framework, side = "numpy", "numpy"
    opened = safetensors.safe_open(str(path), framework=framework)

    def members() -> Iterator[tuple[str, Any]]:
        with opened as file:
            for name in file.keys():  # noqa: SIM118 (it is no mapping)
                try:
                    yield name, file.get_tensor(name)
                except Exception as error:  # a dtype that this framework does not have
                    yield name, _unreadable(path, error, name)

    return Content(f'safetensors.safe_open(path, framework="{framework}")', side, members())


SUFFIXES = {
    ".npy": _open_npy,
    ".npz": _open_npz,
    ".pt": _open_pt,
    ".pth": _open_pt,
    ".safetensors": _open_safetensors,
}
