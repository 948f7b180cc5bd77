"""The records of a zip archive of stored members, as APPNOTE.TXT of PKWARE says; sizes always in 64 bits."""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["Member", "central_directory", "local_header"]

_VERSION = 45  # the first with 64-bit sizes
_UTF8 = 1 << 11
_STORED = 0
_DATE = (1 << 5) | 1  # 1 January 1980: the same tensors give the same file
_MAX32 = 0xFFFFFFFF
_UNIX = 3 << 8


@dataclass(frozen=True)
class Member:
    """One member: `offset` is where its local header begins."""

    name: bytes
    nbytes: int
    crc32: int
    offset: int


def local_header(member: Member) -> bytes:
    """Return what stands before the data. Its length does not depend on sizes and sum."""
    extra = struct.pack("<HHQQ", 1, 16, member.nbytes, member.nbytes)
    fixed = struct.pack(
        "<4s5H3L2H",
        b"PK\x03\x04",
        *(_VERSION, _UTF8, _STORED, 0, _DATE),
        *(member.crc32, _MAX32, _MAX32),
        *(len(member.name), len(extra)),
    )
    return fixed + member.name + extra


def central_directory(members: list[Member], offset: int) -> bytes:
    """Return what ends an archive whose members end at `offset`."""
    entries = b"".join(_central_header(member) for member in members)
    count = len(members)
    end64 = struct.pack(
        "<4sQ2H2L4Q",
        b"PK\x06\x06",
        *(44, _VERSION | _UNIX, _VERSION, 0, 0),
        *(count, count, len(entries), offset),
    )
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, offset + len(entries), 1)
    few = min(count, 0xFFFF)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, few, few, min(len(entries), _MAX32), min(offset, _MAX32), 0)
    return entries + end64 + locator + end


def _central_header(member: Member) -> bytes:
    extra = struct.pack("<HHQQQ", 1, 24, member.nbytes, member.nbytes, member.offset)
    fixed = struct.pack(
        "<4s6H3L5H2L",
        b"PK\x01\x02",
        *(_VERSION | _UNIX, _VERSION, _UTF8, _STORED, 0, _DATE),
        *(member.crc32, _MAX32, _MAX32),
        *(len(member.name), len(extra), 0, 0, 0),
        *(0o600 << 16, _MAX32),
    )
    return fixed + member.name + extra
