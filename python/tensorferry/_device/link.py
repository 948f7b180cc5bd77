"""The link to a device: what it is, the figures in use, and those that a calibration left."""

from __future__ import annotations

import os
from typing import Any

from tensorferry._device.calibration import LinkKey, why_not_usable
from tensorferry._device.calibration_file import calibration_file
from tensorferry._device.link_figures import LinkFigures
from tensorferry._errors import FerryError
from tensorferry._native import core

__all__ = ["figures_in_use", "is_simulated", "key_of", "link_text", "stored_figures"]

_KERNEL_MODULE = "/sys/module/nvidia/version"

_calibrated: dict[int, LinkFigures] = {}  # by device, once it was used


def stored_figures(device: int) -> tuple[float, int, int, int, int, int] | None:
    """Return the figures of a calibration that still holds, else None; asked by the native layer, once per device."""
    file = calibration_file(simulated=False)
    if file is None or not os.path.exists(file.path):  # which is False, too, where nobody may look
        return None
    try:
        key, nbytes_per_s = key_of(device)
    except FerryError:
        return None  # the copy that asks meets the same error
    if is_simulated(key):
        file = calibration_file(simulated=True)
    found = file.read()[0].get(key.uuid) if file is not None else None
    if found is None or why_not_usable(found, key, nbytes_per_s):
        return None
    made = _calibrated.setdefault(device, found.figures)
    return (
        made.to_host_nbytes_per_s,
        made.stores_when_waiting_nbytes,
        made.stores_when_not_nbytes,
        made.stores_of_blocks_nbytes,
        made.rows_from_nbytes,
        made.gathers_below_nbytes,
    )


def figures_in_use(device: int) -> LinkFigures:
    """Return the figures that this process chooses paths of a device by; the defaults before its first use.

    They stay the same for as long as the process lives.
    """
    told: dict[str, Any] = core.link_figures(device)
    return _calibrated[device] if told["source"] == "calibrated" else LinkFigures(**told)


def key_of(device: int) -> tuple[LinkKey, float]:
    """Return what calibrations of a device hold for, and its link's bytes per second by the system; 0 if unknown."""
    import tensorferry

    told = core.link_identity(device)
    gigatransfers_per_s, lanes, node = core.link_at(told["bus_id"])
    key = LinkKey(
        device=told["device"],
        uuid=told["uuid"],
        bus_id=told["bus_id"],
        driver=_driver(told["driver"]),
        version=tensorferry.__version__,
        link=link_text(gigatransfers_per_s, lanes),
        node=node,
    )
    return key, core.rate_of_link(gigatransfers_per_s, lanes)


def link_text(gigatransfers_per_s: float, lanes: int) -> str:
    """Return what a link is called."""
    return f"PCIe {gigatransfers_per_s:g} GT/s x{lanes}" if lanes else "unknown"


def is_simulated(key: LinkKey) -> bool:
    """Return whether the device is one of the double of the driver."""
    return key.device.startswith("Simulated device")


def _driver(version: int) -> str:
    text = f"CUDA {version // 1000}.{version % 1000 // 10}"
    try:
        with open(_KERNEL_MODULE) as file:
            return f"{text}, {file.read(64).strip()}"
    except (OSError, ValueError):
        return text
