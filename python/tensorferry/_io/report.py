"""What a save did."""

from __future__ import annotations

from dataclasses import dataclass

from tensorferry._units import counted, human_bytes, human_seconds

__all__ = ["SaveReport"]


@dataclass(frozen=True)
class SaveReport:
    """What ``save`` wrote, and how.

    Attributes
    ----------
    path : str
        Absolute path, as it is passed to ``load``.
    paths : tuple of str
        Every file or folder that was made; several for a model in shards.
    format : str
        Such as "safetensors".
    tensors : int
        How many have a name in it, ties included.
    aliases : int
        How many of those are the same as another, and were not written again.
    nbytes : int
        Bytes of the tensors that were written.
    file_nbytes : int
        Bytes of all files, headers included.
    seconds : float
        From the call to the last rename.
    durable : bool
        Were files and names flushed to the disk?
    io : str
        "buffered", through the page cache, or "direct", past it.
    io_reason : str
        Why.
    checksum : str or None
        "crc32c" where each tensor has one.
    """

    path: str
    paths: tuple[str, ...]
    format: str
    tensors: int
    aliases: int
    nbytes: int
    file_nbytes: int
    seconds: float
    durable: bool
    io: str
    io_reason: str
    checksum: str | None

    @property
    def nbytes_per_second(self) -> float:
        """The rate."""
        return self.file_nbytes / self.seconds if self.seconds > 0 else 0.0

    def __str__(self) -> str:
        what = counted(self.tensors, "tensor", "tensors")
        rate = f"{human_bytes(self.nbytes_per_second)}/s"
        return (
            f"{self.path}: {what}, {human_bytes(self.file_nbytes)} in {human_seconds(self.seconds)}, {rate}, {self.io}"
        )
