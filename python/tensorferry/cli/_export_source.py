"""What a file or folder holds that is to be exported: named tensors, mapped rather than read."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensorferry._convert.take import is_array_like
from tensorferry._io.atomic import absolute
from tensorferry._io.entries import entries_of, named_leaves
from tensorferry._io.inspect import Inspection, StoredTensor, inspect
from tensorferry._io.load import Reader, contents_of
from tensorferry.cli._files import read_pt

__all__ = ["Source", "inspected", "open_source"]

_PT = (".pt", ".pth")


@dataclass(frozen=True)
class Source:
    """Named tensors of a file.

    Attributes
    ----------
    path : str
        Absolute path.
    format : str
        Such as "safetensors"; "torch" for a file of ``torch.save``.
    names : tuple of str
        In the order of the file, ties last.
    get : callable
        Returns the tensor of a name. The same memory comes back for tied ones.
    is_mapped : bool
        Are tensors mapped, so that all of them can be held at once?
    metadata : mapping of str to str
        What the file says besides.
    left_out : tuple of str
        Names of values that are no tensors.
    """

    path: str
    format: str
    names: tuple[str, ...]
    get: Callable[[str], Any]
    is_mapped: bool = True
    metadata: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def matching(self, include: Sequence[str], exclude: Sequence[str]) -> tuple[str, ...]:
        """Return the names that some pattern of `include` matches (all, when it is empty), and none of `exclude`."""
        return tuple(
            name
            for name in self.names
            if (not include or _matches(name, include)) and not _matches(name, exclude)
        )  # fmt: skip

    def pairs(self, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Yield names and tensors."""
        for name in names:
            yield name, self.get(name)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def open_source(path: str) -> Source:
    """Open a file or folder; no code from it is run.

    Raises
    ------
    FerryError
        When it is missing, damaged, or can only be read by running code from it.
    ArgumentError
        When its name means no format.
    """
    return _of_pt(path) if path.lower().endswith(_PT) else _of_contents(path)


def inspected(path: str) -> Inspection:
    """Describe a file as ``tensorferry.inspect`` does; one of ``torch.save``, too.

    Raises
    ------
    FerryError
        As for :func:`open_source`, and for tensors that no array can hold.
    """
    if not path.lower().endswith(_PT):
        return inspect(path)
    source = _of_pt(path)
    file = Path(path).name
    tensors = []
    for entry in entries_of(list(source.pairs(source.names))).stream:
        tensor, tie = entry.tensor, entry.alias_of
        nbytes = 0 if tie is not None else tensor.nbytes
        tensors.append(StoredTensor(entry.name, tensor.dtype.name, tensor.shape, nbytes, None, tie, file))
    return Inspection(source.path, source.format, tuple(tensors), {})


def _of_pt(path: str) -> Source:
    loaded = read_pt(Path(path))
    tensors: dict[str, Any] = {}
    left_out: list[str] = []
    for name, leaf in named_leaves(loaded):
        if is_array_like(leaf):
            tensors[name or Path(path).stem] = leaf
        else:
            left_out.append(name)
    return Source(absolute(path), "torch", tuple(tensors), tensors.__getitem__, left_out=tuple(left_out))


def _of_contents(path: str) -> Source:
    contents = contents_of(path)
    reader = Reader(mmap=True)
    stem = Path(path).stem
    stored = {(stem if contents.is_single else name): each for name, each in contents.tensors.items()}
    aliases = dict(contents.aliases)
    kept: dict[str, Any] = {}

    def get(name: str) -> Any:
        if name in aliases:
            return get(aliases[name])
        if stored[name].read is not None:  # it is not mapped: hold one at a time
            return reader.array(stored[name])
        return kept.setdefault(name, reader.array(stored[name]))

    return Source(
        absolute(os.fspath(path)),
        contents.format,
        (*stored, *aliases),
        get,
        is_mapped=all(each.read is None for each in stored.values()),
        metadata=contents.metadata,
    )
