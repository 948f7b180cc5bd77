"""The header of a .safetensors file: made, and read with every check."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry._errors import ExportError
from tensorferry._io.entries import Entry
from tensorferry._io.failures import refused
from tensorferry._io.format import Stored
from tensorferry._io.names import require_safetensors_name
from tensorferry._io.readable import as_dtype
from tensorferry._io.tags import IN_PAIRS, SAFETENSORS, safetensors_word

__all__ = ["LARGEST_NBYTES", "NO_SUM", "Header", "Row", "parsed_header", "rendered", "require_writable"]

LARGEST_NBYTES = 100_000_000  # what the safetensors library accepts
NO_SUM = "0" * 8
_OURS = "tensorferry"
_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


@dataclass(eq=False, slots=True)
class Row:
    """One tensor of a header: `begin` and `end` count from the end of the header."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int
    crc32c: str | None = None
    paired_shape: tuple[int, ...] | None = None  # as of a Readable


def require_writable(path: str, entry: Entry) -> None:
    """Refuse what the format cannot hold.

    Raises
    ------
    ExportError
        Names the tensor.
    """
    require_safetensors_name(path, entry.name)
    if safetensors_word(entry.tensor.dtype) is None:
        raise refused(
            path,
            f"tensor {entry.name!r}: a .safetensors file has no {entry.tensor.dtype}",
            "save to a folder (a path that ends with /), or convert it with dtype=",
        )


def rendered(
    rows: list[Row],
    aliases: Mapping[str, str],
    metadata: Mapping[str, str] | None,
    *,
    nbytes: int | None = None,
    alignment: int = 64,
) -> bytes | None:
    """Return length and header, padded with spaces.

    Parameters
    ----------
    rows : list of Row
        In the order of the file.
    aliases : mapping of str to str
        Names of the same tensor; written in the form of Hugging Face's ``save_model``, too.
    metadata : mapping, optional
        Of the caller; "format" is "pt" unless it says otherwise.
    nbytes : int, optional
        How long the result is to be; None is returned when that is too little.
    alignment : int
        What its length is to be a multiple of.
    """
    ours: dict[str, Any] = {}
    tags = {row.name: tag for row in rows if (tag := _word(row)[1]) is not None}
    sums = {row.name: row.crc32c for row in rows if row.crc32c is not None}
    for key, value in (("aliases", dict(aliases)), ("dtypes", tags), ("crc32c", sums)):
        if value:
            ours[key] = value
    said: dict[str, str] = {"format": "pt", **aliases, **(metadata or {})}
    if ours:
        said[_OURS] = json.dumps({"version": 1, **ours}, separators=(",", ":"))
    text = ",".join(['{"__metadata__":' + _json(said), *map(_rendered_row, rows)]).encode() + b"}"
    length = -(-(8 + len(text)) // alignment) * alignment if nbytes is None else nbytes
    if length < 8 + len(text):
        return None
    return (length - 8).to_bytes(8, "little") + text.ljust(length - 8)


def _rendered_row(row: Row) -> str:
    """Return what the header says of one tensor; put together by hand, as a dict for each costs twice the time."""
    shape = ",".join(map(str, row.shape if row.paired_shape is None else row.paired_shape))
    return f'{_json(row.name)}:{{"dtype":"{_word(row)[0]}","shape":[{shape}],"data_offsets":[{row.begin},{row.end}]}}'


def _word(row: Row) -> tuple[str, str | None]:
    if row.paired_shape is not None:
        return IN_PAIRS, None
    word = safetensors_word(row.dtype)
    assert word is not None  # refused before
    return word


@dataclass(frozen=True)
class Header:
    """What a file says of itself."""

    tensors: dict[str, Stored]
    aliases: dict[str, str]
    metadata: dict[str, str]


def parsed_header(path: str) -> Header:
    """Read and check the header of a file.

    Raises
    ------
    ExportError
        For anything that does not fit: lengths, dtypes, shapes, offsets, the size of the file.
    OSError
        When it cannot be read.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, LARGEST_NBYTES):
            raise _damaged(path, "its header is cut off, or it is no .safetensors file")
        text = file.read(length)
    try:
        whole = json.loads(text)
        said = whole.pop("__metadata__", {})
        ours = json.loads(said.pop(_OURS, "{}"))
        tags, sums, aliases = (dict(ours.get(key, {})) for key in ("dtypes", "crc32c", "aliases"))
        facts = [(name, _fact(path, name, fact, size - 8 - length)) for name, fact in whole.items()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, ExportError):
            raise
        raise _damaged(path, f"its header is damaged ({type(error).__name__}: {error})") from error
    tensors = {}
    end = 0
    for name, (word, shape, begin, stop) in sorted(facts, key=lambda pair: pair[1][2:]):
        if begin != end:
            raise _damaged(path, f"tensor {name!r} does not begin where the one before it ends")
        end = stop
        dtype = _tagged(path, name, as_dtype(SAFETENSORS[word]), tags)
        tensors[name] = Stored(
            name, dtype, shape, path, 8 + length + begin, checksum=sums.get(name), in_pairs=word == IN_PAIRS
        )
    if end != size - 8 - length:
        raise _damaged(path, f"its tensors take {end:,} bytes, and {size - 8 - length:,} are there")
    if not all(kept in tensors for kept in aliases.values()):
        raise _damaged(path, "it names an alias of a tensor that it does not hold")
    for alias in aliases:
        said.pop(alias, None)
    return Header(tensors, aliases, said)


def _fact(path: str, name: str, fact: Any, available: int) -> tuple[str, tuple[int, ...], int, int]:
    word = fact["dtype"]
    if word not in SAFETENSORS:
        raise _damaged(path, f"tensor {name!r} is of dtype {word}, which is not known here")
    shape = tuple(int(extent) for extent in fact["shape"])
    begin, end = (int(offset) for offset in fact["data_offsets"])
    if any(extent < 0 for extent in shape) or (end - begin) * 8 != math.prod(shape) * _bits(word):
        raise _damaged(path, f"the shape of tensor {name!r} does not fit its {end - begin:,} bytes")
    if not 0 <= begin <= end <= available:
        raise _damaged(path, f"tensor {name!r} ends at byte {end:,} of {available:,}")
    return word, shape, begin, end


def _bits(word: str) -> int:
    return 4 if word == IN_PAIRS else as_dtype(SAFETENSORS[word]).itemsize * 8


def _tagged(path: str, name: str, dtype: np.dtype[Any], tags: dict[str, str]) -> np.dtype[Any]:
    if name not in tags:
        return dtype
    try:
        tagged = as_dtype(tags[name])
    except (KeyError, ValueError, TypeError):
        tagged = None
    if tagged is None or tagged.itemsize != dtype.itemsize:
        raise _damaged(path, f"tensor {name!r} is tagged {tags[name]!r}, which does not fit {dtype}")
    return tagged


def _damaged(path: str, why: str) -> ExportError:
    return refused(path, why, "check that it is complete, or write it again")
