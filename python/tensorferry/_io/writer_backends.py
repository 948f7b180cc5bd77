"""Which way a path is written tensor by tensor, or row by row."""

from __future__ import annotations

import os
from typing import Any

from tensorferry._io.failures import refused
from tensorferry._io.format import Target
from tensorferry._io.growing import Backend, SessionBackend
from tensorferry._io.registry import format_for

__all__ = ["begin"]


def begin(path: Any, format: Any, target: Target, *, resume: bool) -> Backend:
    """Begin to write.

    Parameters
    ----------
    path : path
        As the caller gave it; its end says the format.
    format : str or None
        Or this does.
    target : Target
        Where and how.
    resume : bool
        Go on with what is there, if anything is?

    Raises
    ------
    ExportError
        For what may not be replaced, or cannot be gone on with.
    """
    chosen = format_for(path, format)
    if chosen.name == "npy":
        from tensorferry._io.growing_npy import GrowingNpy

        return GrowingNpy(target, resume=resume)
    if chosen.name == "folder":
        from tensorferry._io.growing_folder import GrowingFolder

        return GrowingFolder(target, resume=resume)
    if chosen.name == "zarr":
        from tensorferry._io.growing_zarr import GrowingZarr

        return GrowingZarr(target, resume=resume)
    if resume and os.path.lexists(target.path):
        raise refused(
            target.path,
            f"something is there, and a {chosen.name} file that is finished cannot be continued",
            "append to .npy, .zarr or a folder (a path that ends with /), or write another file",
        )
    if chosen.name in ("parquet", "arrow"):
        from tensorferry._io.growing_table import GrowingTable

        return GrowingTable(target, chosen)
    return SessionBackend(chosen.name, target.path, chosen.begin(target))
