"""Does a file hold what it says it holds?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry._io.atomic import absolute
from tensorferry._io.checksum import crc32c_of
from tensorferry._io.destinations import from_anywhere
from tensorferry._io.failures import refused
from tensorferry._io.format import Stored
from tensorferry._io.load import Reader, contents_of
from tensorferry._io.steady import of_one_version
from tensorferry._units import counted, human_bytes

__all__ = ["Verification", "verify"]

_NAMED = 5


@dataclass(frozen=True)
class Verification:
    """What ``verify`` found in order.

    Attributes
    ----------
    path : str
        Absolute path.
    format : str
        Such as "safetensors".
    tensors : int
        How many are there, ties not counted.
    nbytes : int
        Bytes of their values.
    checked : int
        How many have a crc32c, which fits.
    archive_checked : bool
        Were the sums of an archive compared, too?
    """

    path: str
    format: str
    tensors: int
    nbytes: int
    checked: int
    archive_checked: bool

    def __str__(self) -> str:
        sums = "without checksums" if not self.checked else f"{self.checked:,} checked by crc32c"
        if self.archive_checked:
            sums += ", the archive's sums fit"
        whole = counted(self.tensors, "tensor", "tensors")
        return f"{self.path}: whole, {whole}, {human_bytes(self.nbytes)}, {sums}"


@from_anywhere
@of_one_version
def verify(path: Any, /) -> Verification:
    """See :func:`tensorferry.verify`."""
    contents = contents_of(path)
    if contents.check is not None:
        contents.check()
    reader = Reader(mmap=True)
    tensors = list(contents.tensors.values())
    summed = [stored for stored in tensors if stored.checksum is not None]
    damaged = [stored.name for stored in summed if _sum(reader, stored) != stored.checksum]
    if damaged:
        named = ", ".join(map(repr, damaged[:_NAMED])) + (", ..." if len(damaged) > _NAMED else "")
        what = counted(len(damaged), "tensor does", "tensors do")
        raise refused(absolute(path), f"{what} not have the checksum that was written: {named}", "write it again")
    nbytes = sum(stored.nbytes for stored in tensors)
    return Verification(absolute(path), contents.format, len(tensors), nbytes, len(summed), contents.check is not None)


def _sum(reader: Reader, stored: Stored) -> str:
    if stored.read is None:
        return crc32c_of(reader.flat(stored))
    return crc32c_of(reader.array(stored).reshape(-1).view(np.uint8) if stored.nbytes else np.empty(0, np.uint8))
