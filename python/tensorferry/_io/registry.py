"""Which format a path means."""

from __future__ import annotations

import os

from tensorferry._errors import ArgumentError
from tensorferry._io.folder import FOLDER
from tensorferry._io.format import Format
from tensorferry._io.npy import NPY
from tensorferry._io.npz import NPZ
from tensorferry._io.safetensors import SAFETENSORS_FORMAT
from tensorferry._io.table_format import ARROW, PARQUET
from tensorferry._io.zarr_format import ZARR

__all__ = ["FORMATS", "format_for", "format_of_existing"]

FORMATS: dict[str, Format] = {made.name: made for made in (SAFETENSORS_FORMAT, NPY, NPZ, ZARR, PARQUET, ARROW, FOLDER)}


def format_for(path: str | os.PathLike[str], wanted: object = None) -> Format:
    """Return the format that is asked for, or that the path's end means.

    Raises
    ------
    ArgumentError
        When neither says which.
    """
    if wanted is not None:
        if isinstance(wanted, str) and wanted in FORMATS:
            return FORMATS[wanted]
        words = ", ".join(f'"{name}"' for name in FORMATS)
        raise ArgumentError(f"format={wanted!r}", "there is no such format", f"pass one of {words}")
    text = os.fsdecode(os.fspath(path))
    for made in FORMATS.values():
        if text.lower().endswith(made.suffixes):
            return made
    ends = ", ".join(suffix for made in FORMATS.values() for suffix in made.suffixes)
    raise ArgumentError(f"the path {text!r}", "its end means no format", f"end it with one of {ends}, or pass format=")


def format_of_existing(path: str | os.PathLike[str]) -> Format:
    """Return the format of what lies at a path; a folder needs no slash, an index of shards is one of safetensors."""
    text = os.fsdecode(os.fspath(path))
    if text.endswith(".safetensors.index.json"):
        return SAFETENSORS_FORMAT
    known = [made for made in FORMATS.values() if text.lower().endswith(made.suffixes)]
    if not known and os.path.isdir(text):
        return FOLDER
    return format_for(text)
