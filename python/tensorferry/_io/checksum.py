"""Running sums over what is written: crc32c for our own checks, crc32 for archives."""

from __future__ import annotations

import zlib
from typing import Any, Protocol

import numpy as np

from tensorferry._errors import MissingDependencyError

__all__ = ["Crc32", "Crc32c", "RunningSum", "crc32c_of"]

_Array = np.ndarray[Any, Any]
_AT_ONCE_NBYTES = 8 << 20


class RunningSum(Protocol):
    """A sum that is told the bytes of a tensor from front to back."""

    value: int

    def update(self, data: _Array) -> None:
        """Add flat, contiguous bytes."""


class Crc32c:
    """CRC-32C (Castagnoli), by the package google-crc32c.

    Raises
    ------
    MissingDependencyError
        When that is not installed.
    """

    def __init__(self) -> None:
        try:
            import google_crc32c
        except ImportError as error:
            raise MissingDependencyError(
                "a crc32c checksum",
                f"the package google-crc32c cannot be imported ({error})",
                "run pip install 'tensorferry[checksum]'",
            ) from error
        self._extend: Any = google_crc32c.extend
        self.value = 0

    def update(self, data: _Array) -> None:
        """Add flat, contiguous bytes."""
        self.value = self._extend(self.value, data)

    @property
    def text(self) -> str:
        """The sum as eight hexadecimal digits."""
        return f"{self.value:08x}"


class Crc32:
    """CRC-32 as in zip archives."""

    def __init__(self) -> None:
        self.value = 0

    def update(self, data: _Array) -> None:
        """Add flat, contiguous bytes."""
        self.value = zlib.crc32(data.data, self.value)


def crc32c_of(data: _Array) -> str:
    """Return the sum of flat bytes, read piece by piece."""
    running = Crc32c()
    for start in range(0, data.size, _AT_ONCE_NBYTES):
        running.update(data[start : start + _AT_ONCE_NBYTES])
    return running.text
