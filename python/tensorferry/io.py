"""Tensors to files and back: whole or absent, in bounded memory, at the speed of the disk.

The main names are at the top level, too: ``ferry.save`` is ``ferry.io.save``.
"""

from tensorferry._api.io import inspect, load, save, verify
from tensorferry._api.io_capture import capture
from tensorferry._api.io_checkpoint import CheckpointStager, CheckpointWriter
from tensorferry._api.io_writer import Writer, save_async

__all__ = [
    "CheckpointStager",
    "CheckpointWriter",
    "Writer",
    "capture",
    "inspect",
    "load",
    "save",
    "save_async",
    "verify",
]
