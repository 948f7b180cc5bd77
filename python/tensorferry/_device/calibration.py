"""A calibration of the link to a device: what was measured, what follows, and when it still holds. All pure."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from tensorferry._device.link_figures import LinkFigures

__all__ = ["Calibration", "LinkKey", "dump", "figures_from", "parse", "why_not_usable"]

_FORMAT = 1
_MOST_MOVED = 0.1
_ENOUGH_OF_A_BLOCK = 0.95
_DATE_LENGTH = len("2026-01-31")

# What a figure may be at all: whatever is outside was not written by us.
_BOUNDS = {
    "to_host_nbytes_per_s": (1e6, 1e13),
    "stores_when_waiting_nbytes": (0, 64 << 20),
    "stores_when_not_nbytes": (0, 64 << 20),
    "stores_of_blocks_nbytes": (0, 64 << 20),
    "rows_from_nbytes": (512, 1 << 20),
    "gathers_below_nbytes": (0, 64 << 20),
}


@dataclass(frozen=True)
class LinkKey:
    """What a calibration holds for; another value of any of these, and it does not.

    Attributes
    ----------
    device, uuid, bus_id : str
        Name, UUID and PCI address of the device.
    driver : str
        Version of the driver.
    version : str
        Version of tensorferry.
    link : str
        Generation and width of the link: its GT/s and lanes.
    node : int
        Memory node that the device is at; -1 where the system does not tell.
    """

    device: str
    uuid: str
    bus_id: str
    driver: str
    version: str
    link: str
    node: int


@dataclass(frozen=True)
class Calibration:
    """One device's.

    Attributes
    ----------
    key : LinkKey
    date : str
        As "2026-01-31".
    link_nbytes_per_s : float
        What the system told of the link then; 0 where it told nothing.
    figures : LinkFigures
    measured : dict of str to Any
        As ``measure_link`` gave it.
    """

    key: LinkKey
    date: str
    link_nbytes_per_s: float
    figures: LinkFigures
    measured: dict[str, Any]


def figures_from(measured: dict[str, Any], in_proportion: dict[str, Any], date: str) -> LinkFigures:
    """Return the thresholds that follow.

    Parameters
    ----------
    measured : dict
        "small": (bytes, seconds by a kernel's stores, seconds by a copy) in rising order, 0 for what was not measured;
        "pitched": (width in bytes, part of a block's rate).
    in_proportion : dict
        The figures in proportion to the rate that was measured.
    date : str
    """
    figures = LinkFigures(**{**in_proportion, "source": f"calibrated on {date}"})
    stored = figures.stores_of_blocks_nbytes
    small = [one for one in measured["small"] if one[1] > 0 and one[2] > 0]
    if small:
        stored = 0
        for nbytes, by_store, by_copy in small:
            if by_store > by_copy:
                break
            stored = nbytes
    rows_from = figures.rows_from_nbytes
    for width, efficiency in sorted(measured["pitched"], reverse=True):
        if efficiency < _ENOUGH_OF_A_BLOCK:
            break
        rows_from = min(rows_from, width)
    return dataclasses.replace(
        figures,
        stores_of_blocks_nbytes=min(stored, figures.stores_when_waiting_nbytes),
        rows_from_nbytes=rows_from,
    )


def why_not_usable(found: Calibration, key: LinkKey, link_nbytes_per_s: float) -> str:
    """Return why a calibration does not hold for this device; "" when it does.

    Parameters
    ----------
    found : Calibration
    key : LinkKey
        What there is now.
    link_nbytes_per_s : float
        What the system tells of the link now; 0 where it tells nothing.
    """
    for name, then in dataclasses.asdict(found.key).items():
        now = getattr(key, name)
        if now != then:
            return f"it is for the {name.replace('_', ' ')} {then}, and now it is {now}"
    then_rate = found.link_nbytes_per_s
    if abs(link_nbytes_per_s - then_rate) > _MOST_MOVED * then_rate:
        return f"the link moved from {then_rate / 1e9:.1f} to {link_nbytes_per_s / 1e9:.1f} GB/s"
    return ""


def dump(found: dict[str, Calibration]) -> str:
    """Return the text of a file with these calibrations, by the UUIDs of their devices."""
    devices = {uuid: dataclasses.asdict(one) for uuid, one in sorted(found.items())}
    return json.dumps({"format": _FORMAT, "devices": devices}, indent=1) + "\n"


def parse(text: str) -> dict[str, Calibration]:
    """Return what a file holds; a calibration that is damaged or out of bounds is left out.

    Raises
    ------
    ValueError
        When nothing of the text can be relied on.
    """
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise ValueError(f"it is not of format {_FORMAT}")
    devices = document.get("devices")
    if not isinstance(devices, dict):
        raise ValueError("it lists no devices")
    found = {uuid: _calibration(one) for uuid, one in devices.items()}
    return {uuid: one for uuid, one in found.items() if one is not None and one.key.uuid == uuid}


def _calibration(one: Any) -> Calibration | None:
    try:
        key, figures = LinkKey(**one["key"]), LinkFigures(**one["figures"])
        made = Calibration(key, one["date"], one["link_nbytes_per_s"], figures, one["measured"])
    except (TypeError, KeyError):
        return None
    texts = [value for name, value in dataclasses.asdict(key).items() if name != "node"]
    texts += [made.date, figures.source]
    good = all(isinstance(value, str) for value in texts) and type(key.node) is int
    good = good and len(made.date) == _DATE_LENGTH and figures.source == f"calibrated on {made.date}"
    good = good and _is_number(made.link_nbytes_per_s, 0, 1e13) and isinstance(made.measured, dict)
    return made if good and all(_in_bounds(figures, name) for name in _BOUNDS) else None


def _in_bounds(figures: LinkFigures, name: str) -> bool:
    value = getattr(figures, name)
    whole = name == "to_host_nbytes_per_s" or type(value) is int
    return whole and _is_number(value, *_BOUNDS[name])


def _is_number(value: Any, low: float, high: float) -> bool:
    return type(value) in (int, float) and low <= value <= high  # a NaN is in no bounds
