"""Numbers with the units that people read."""

from __future__ import annotations

__all__ = ["binary_size", "counted", "human_bytes", "human_seconds"]


def counted(number: int, one: str, many: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many}"


def human_bytes(count: float) -> str:
    """Return a number of bytes with three digits and a decimal unit, such as "1.31 MB"."""
    return f"{count:.0f} B" if count < 1000 else _scaled(count / 1000, ("kB", "MB", "GB", "TB"))


def human_seconds(seconds: float) -> str:
    """Return a time with three digits, such as "480 ns" or "1.31 ms"."""
    return _scaled(seconds * 1e9, ("ns", "us", "ms", "s"))


def binary_size(count: float) -> str:
    """Return a number of bytes with at most three digits and a binary unit, such as "64 MiB" or "1.5 KiB"."""
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    unit = 0
    while count >= 1023.5 and unit + 1 < len(units):
        count /= 1024
        unit += 1
    return f"{count:.0f} {units[unit]}" if count >= 999.5 else f"{count:.3g} {units[unit]}"


def _scaled(number: float, units: tuple[str, ...]) -> str:
    unit = 0
    while number >= 999.5 and unit + 1 < len(units):
        number /= 1000
        unit += 1
    digits = 0 if number >= 99.95 else 1 if number >= 9.995 else 2
    return f"{number:.{digits}f} {units[unit]}"
