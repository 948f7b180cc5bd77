"""Files of a few bytes that are replaced as a whole."""

from __future__ import annotations

import os
from dataclasses import replace

from tensorferry._io.atomic import NewFile, sync_folder
from tensorferry._io.options import SaveOptions
from tensorferry._io.pipeline import write_fully

__all__ = ["replace_file"]


def replace_file(options: SaveOptions, path: str, text: bytes) -> None:
    """Write a file, or replace it in one step; on the disk when this returns, if the save is durable."""
    with NewFile(path, replace(options, overwrite=True)) as file:
        write_fully(options, file.fd, [text], 0)
        if options.durable:
            options.system.fsync(file.fd)
        file.rename(overwrite=True)
    if options.durable:
        sync_folder(options.system, os.path.dirname(path))
