"""The arguments of ``save``, checked once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tensorferry._errors import ArgumentError
from tensorferry._io.checksum import Crc32c
from tensorferry._io.system import REAL, System

__all__ = ["DEFAULT_STAGING_NBYTES", "Progress", "SaveOptions", "nbytes_from"]

Progress = Callable[[int, "int | None"], object]

DEFAULT_STAGING_NBYTES = 64 << 20
_LEAST_STAGING_NBYTES = 64 << 10
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS.update({"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40})


@dataclass(frozen=True)
class SaveOptions:
    """How tensors are written; the names are those of :func:`tensorferry.save`."""

    durable: bool = False
    overwrite: bool = False
    checksum: str | None = None
    metadata: Mapping[str, str] | None = None
    max_shard_nbytes: int | None = None
    max_staging_nbytes: int = DEFAULT_STAGING_NBYTES
    progress: Progress | None = None
    system: System = REAL

    @classmethod
    def parse(
        cls,
        *,
        durable: object = False,
        overwrite: object = False,
        checksum: object = None,
        metadata: object = None,
        max_shard_size: object = None,
        max_staging_bytes: object = DEFAULT_STAGING_NBYTES,
        progress: object = None,
        system: System = REAL,
    ) -> SaveOptions:
        """Check every argument before anything is touched.

        Raises
        ------
        ArgumentError
            Names the argument.
        MissingDependencyError
            When a checksum needs a package that is not there.
        """
        for name, value in (("durable", durable), ("overwrite", overwrite)):
            if not isinstance(value, bool):
                raise _no_choice(name, value, "pass True or False")
        if checksum not in (None, "crc32c"):
            raise _no_choice("checksum", checksum, 'pass "crc32c" or None')
        if checksum is not None:
            Crc32c()
        if progress is not None and not callable(progress):
            raise _no_choice("progress", progress, "pass a function of bytes done and bytes in total")
        shard = None if max_shard_size is None else nbytes_from("max_shard_size", max_shard_size)
        staging = nbytes_from("max_staging_bytes", max_staging_bytes)
        if staging < _LEAST_STAGING_NBYTES:
            raise _no_choice("max_staging_bytes", max_staging_bytes, f"pass {_LEAST_STAGING_NBYTES} or more")
        return cls(
            durable=bool(durable),
            overwrite=bool(overwrite),
            checksum=None if checksum is None else "crc32c",
            metadata=_checked_metadata(metadata),
            max_shard_nbytes=shard,
            max_staging_nbytes=staging,
            progress=progress,
            system=system,
        )

    def sums(self) -> list[Crc32c]:
        """Return what a tensor's bytes are to be summed by: one new sum, or none."""
        return [] if self.checksum is None else [Crc32c()]


def nbytes_from(name: str, value: object) -> int:
    """Return a number of bytes, given as one or as text such as "5GB" or "512 MiB".

    Raises
    ------
    ArgumentError
        For anything else.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", value.strip()) if isinstance(value, str) else None
    unit = _UNITS.get(found[2].upper()) if found else None
    if found is None or unit is None or float(found[1]) * unit < 1:
        raise _no_choice(name, value, 'pass a number of bytes, or text such as "5GB" or "512MiB"')
    return int(float(found[1]) * unit)


def _checked_metadata(metadata: Any) -> dict[str, str] | None:
    if metadata is None:
        return None
    whole = isinstance(metadata, Mapping) and all(isinstance(t, str) for pair in metadata.items() for t in pair)
    if not whole or "tensorferry" in metadata:
        why = "pass a mapping from text to text, without the key 'tensorferry'"
        raise _no_choice("metadata", metadata, why)
    return dict(metadata)


def _no_choice(name: str, value: object, instead: str) -> ArgumentError:
    return ArgumentError(f"{name}={value!r}", "that is no choice for this argument", instead)
