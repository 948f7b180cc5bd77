"""What a file holds, without its values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensorferry._io.atomic import absolute
from tensorferry._io.destinations import from_anywhere
from tensorferry._io.format import Stored
from tensorferry._io.load import contents_of
from tensorferry._io.steady import of_one_version
from tensorferry._units import counted, human_bytes

__all__ = ["DTypeSum", "Inspection", "StoredTensor", "inspect"]


@dataclass(frozen=True)
class StoredTensor:
    """One tensor of a file.

    Attributes
    ----------
    name : str
        As ``load`` gives it; empty for a .npy file.
    dtype : str
        Such as "bfloat16".
    shape : tuple of int
        Shape.
    nbytes : int
        Bytes of its values; 0 for an alias.
    checksum : str or None
        Its crc32c, as eight hexadecimal digits, where the file says it.
    alias_of : str or None
        The tensor that it is the same as.
    file : str
        Name of the file that holds it.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    checksum: str | None
    alias_of: str | None
    file: str


@dataclass(frozen=True)
class DTypeSum:
    """How many tensors of one dtype a file holds, and how many elements and bytes they have; ties are not counted."""

    tensors: int
    elements: int
    nbytes: int


@dataclass(frozen=True)
class Inspection:
    """What a file or folder holds.

    Attributes
    ----------
    path : str
        Absolute path.
    format : str
        Such as "safetensors".
    tensors : tuple of StoredTensor
        In the order of the file, ties last.
    metadata : mapping of str to str
        As given to ``save``.
    """

    path: str
    format: str
    tensors: tuple[StoredTensor, ...]
    metadata: Mapping[str, str]

    @property
    def nbytes(self) -> int:
        """Bytes of all values."""
        return sum(tensor.nbytes for tensor in self.tensors)

    @property
    def by_dtype(self) -> dict[str, DTypeSum]:
        """The sums for each dtype, the one with most bytes first."""
        sums: dict[str, DTypeSum] = {}
        for tensor in self.tensors:
            if tensor.alias_of is None:
                before = sums.get(tensor.dtype, DTypeSum(0, 0, 0))
                elements = before.elements + _count(tensor.shape)
                sums[tensor.dtype] = DTypeSum(before.tensors + 1, elements, before.nbytes + tensor.nbytes)
        return dict(sorted(sums.items(), key=lambda pair: -pair[1].nbytes))

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.format}, {counted(len(self.tensors), 'tensor', 'tensors')}"]
        for tensor in self.tensors:
            shape = "x".join(map(str, tensor.shape)) or "scalar"
            said = f"same as {tensor.alias_of}" if tensor.alias_of is not None else human_bytes(tensor.nbytes)
            lines.append(
                f"  {tensor.name or '(array)'}  {tensor.dtype} {shape}  {said}  {tensor.checksum or ''}".rstrip()
            )
        for dtype, total in self.by_dtype.items():
            many = counted(total.tensors, "tensor", "tensors")
            lines.append(f"{dtype}: {many}, {total.elements:,} elements, {human_bytes(total.nbytes)}")
        return "\n".join(lines)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


@from_anywhere
@of_one_version
def inspect(path: Any, /) -> Inspection:
    """See :func:`tensorferry.inspect`."""
    contents = contents_of(path)
    tensors = [_described(stored.name, stored, None) for stored in contents.tensors.values()]
    tensors += [_described(alias, contents.tensors[kept], kept) for alias, kept in contents.aliases.items()]
    return Inspection(absolute(path), contents.format, tuple(tensors), dict(contents.metadata))


def _described(name: str, stored: Stored, alias_of: str | None) -> StoredTensor:
    nbytes = stored.nbytes if alias_of is None else 0
    file = os.path.basename(stored.file)
    return StoredTensor(name, stored.dtype.name, stored.shape, nbytes, stored.checksum, alias_of, file)
