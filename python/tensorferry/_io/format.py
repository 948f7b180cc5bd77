"""What a format of files has to do, and how what lies in a file is described."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tensorferry._io.entries import Entry
from tensorferry._io.options import SaveOptions
from tensorferry._io.pipeline import Pipeline

__all__ = ["Contents", "Format", "Session", "Stored", "Target"]


@dataclass(frozen=True)
class Target:
    """Where and how to write.

    Attributes
    ----------
    path : str
        Absolute.
    options : SaveOptions
        As the caller gave them.
    pipeline : Pipeline
        Blocks and thread for every file of this save.
    known : list of Entry or None
        Everything that will be put, in the order of :attr:`Session.order`; None when that shows as it comes.
    """

    path: str
    options: SaveOptions
    pipeline: Pipeline
    known: list[Entry] | None


class Session(Protocol):
    """A save that has begun.

    Attributes
    ----------
    is_direct : bool
        Did bytes go past the page cache?
    reason : str
        Why they go the way they go.
    order : list of Entry or None
        What was known at the beginning, in the order in which it has to be put.
    """

    is_direct: bool
    reason: str
    order: list[Entry] | None

    def put(self, entry: Entry) -> None:
        """Write one tensor. Its memory may change when this returns, unless everything was known from the start."""

    def finish(self) -> list[str]:
        """Make everything appear under its name; return the paths, what a reader opens first."""

    def abort(self) -> None:
        """Remove everything; again, or after :meth:`finish`, it does nothing."""


class Format(Protocol):
    """A format of files.

    Attributes
    ----------
    name : str
        Such as "safetensors": what ``format=`` takes.
    suffixes : tuple of str
        Such as (".safetensors",).
    """

    name: str
    suffixes: tuple[str, ...]

    def begin(self, target: Target) -> Session:
        """Begin to write; refuse a target that may not be replaced, and known tensors that the format cannot hold."""

    def contents(self, path: str) -> Contents:
        """Describe what a file or folder holds, without reading values; ``ExportError`` for a damaged one."""


@dataclass(frozen=True)
class Stored:
    """One tensor in a file.

    Attributes
    ----------
    name : str
        As the caller of ``save`` said it.
    dtype : numpy.dtype
        Of the values, restored from tags.
    shape : tuple of int
        Shape.
    file : str
        Where the bytes are.
    offset : int or None
        Where they begin; None when they cannot be mapped, and `read` is to be called.
    fortran_order : bool
        Does the first axis run fastest?
    checksum : str or None
        The crc32c of the bytes, as eight hexadecimal digits, where the file says it.
    read : callable or None
        Returns the values as an array, for what cannot be mapped.
    in_pairs : bool
        Does a byte of the file hold two values, the first one in its low half?
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    file: str
    offset: int | None
    fortran_order: bool = False
    checksum: str | None = None
    read: Callable[[], np.ndarray[Any, Any]] | None = None
    in_pairs: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes that the values take in the file."""
        count = self.dtype.itemsize
        for extent in self.shape:
            count *= extent
        return count // 2 if self.in_pairs else count


@dataclass(frozen=True)
class Contents:
    """What a file or folder holds.

    Attributes
    ----------
    format : str
        Its name.
    tensors : dict of str to Stored
        In the order of the file.
    aliases : mapping of str to str
        Names of tensors that are the same as another.
    metadata : mapping of str to str
        What the caller of ``save`` passed.
    is_single : bool
        Is it one array without a name?
    check : callable or None
        Raises ``ExportError`` where the file's own sums (those of an archive) do not fit.
    """

    format: str
    tensors: dict[str, Stored]
    aliases: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    is_single: bool = False
    check: Callable[[], None] | None = None
