"""From a file back to arrays or tensors: mapped, with their dtypes, and never by running code from it."""

from __future__ import annotations

import mmap as _mmap
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert.options import choose
from tensorferry._errors import ArgumentError, ExportError, FerryError
from tensorferry._io.atomic import absolute
from tensorferry._io.destinations import from_anywhere
from tensorferry._io.failures import refused, unreadable
from tensorferry._io.format import Contents, Stored
from tensorferry._io.pairs import split
from tensorferry._io.registry import format_of_existing
from tensorferry._io.steady import of_one_version

__all__ = ["Reader", "contents_of", "load"]

_Array = np.ndarray[Any, Any]


def contents_of(path: Any) -> Contents:
    """Describe what lies at a path, whatever the format.

    Raises
    ------
    ExportError
        When nothing is there, or it is damaged.
    """
    return format_of_existing(path).contents(absolute(path))


@from_anywhere
@of_one_version
def load(path: Any, /, *, mmap: Any = True, to: Any = "numpy") -> Any:
    """See :func:`tensorferry.load`."""
    if not isinstance(mmap, bool):
        raise ArgumentError(f"mmap={mmap!r}", "that is no choice for this argument", "pass True or False")
    side = choose("to", to, ("numpy", "torch"))
    if side == "torch":
        _torch.require(f"load({os.fspath(path)!r}, to='torch')")
    contents = contents_of(path)
    reader = Reader(mmap=mmap, private=side == "torch")
    convert = _as_tensor if side == "torch" else _as_it_is
    made = {name: convert(reader, stored) for name, stored in contents.tensors.items()}
    made.update({alias: made[kept] for alias, kept in contents.aliases.items()})
    return made[""] if contents.is_single else made


def _as_it_is(reader: Reader, stored: Stored) -> _Array:
    return reader.array(stored)


def _as_tensor(reader: Reader, stored: Stored) -> Any:
    from tensorferry._native import core

    in_pairs = _torch.dtype_named("float4_e2m1fn_x2") if stored.in_pairs and stored.shape[-1] % 2 == 0 else None
    try:
        if in_pairs is not None:  # torch has them in pairs, too
            pairs = reader.flat(stored).reshape(*stored.shape[:-1], stored.shape[-1] // 2)
            return core.from_numpy(pairs).view(in_pairs)
        return core.from_numpy(reader.array(stored))
    except FerryError as error:
        error.given = f"tensor {stored.name!r}: {error.given}"
        raise


class Reader:
    """Gets the values of what was described; each file is opened once.

    Parameters
    ----------
    mmap : bool
        Map files, so that only what is looked at is read? Otherwise everything is read into memory.
    private : bool
        May the caller write to what it gets? The file never changes.
    """

    def __init__(self, *, mmap: bool, private: bool = False) -> None:
        self._fill: Callable[[Stored], _Array] = self._mapped if mmap else self._read
        self._access = _mmap.ACCESS_COPY if private else _mmap.ACCESS_READ
        self._maps: dict[str, Any] = {}

    def array(self, stored: Stored) -> _Array:
        """Return the values.

        Raises
        ------
        ExportError
            When the file cannot be read, or has become shorter.
        """
        if stored.read is not None:
            return stored.read()
        flat = split(self.flat(stored)) if stored.in_pairs else self.flat(stored)
        return flat.view(stored.dtype).reshape(stored.shape, order="F" if stored.fortran_order else "C")

    def flat(self, stored: Stored) -> _Array:
        """Return the bytes as the file has them; raises as :meth:`array` does."""
        if stored.nbytes == 0:
            return np.empty(0, np.uint8)
        try:
            return self._fill(stored)
        except ExportError:
            raise
        except (OSError, ValueError) as error:
            as_os_error = error if isinstance(error, OSError) else OSError(None, str(error))
            raise unreadable(stored.file, as_os_error) from error

    def _mapped(self, stored: Stored) -> _Array:
        if stored.file not in self._maps:
            with open(stored.file, "rb") as file:
                self._maps[stored.file] = _mmap.mmap(file.fileno(), 0, access=self._access)
        return np.frombuffer(self._maps[stored.file], np.uint8, stored.nbytes, stored.offset or 0)

    def _read(self, stored: Stored) -> _Array:
        flat = np.empty(stored.nbytes, np.uint8)
        view, done = flat.data, 0
        with open(stored.file, "rb", buffering=0) as file:
            file.seek(stored.offset or 0)
            while done < stored.nbytes:
                count = file.readinto(view[done:])
                if not count:
                    raise refused(stored.file, "it became shorter while it was read", "load it again")
                done += count
        return flat
