"""The links to CUDA devices: the figures that paths are chosen by, where they come from, and measuring them anew."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tensorferry._device.calibration import Calibration, LinkKey, figures_from, why_not_usable
from tensorferry._device.calibration_file import CalibrationFile, calibration_file, is_off
from tensorferry._device.link import figures_in_use, is_simulated, key_of, link_text
from tensorferry._device.link_figures import LinkFigures
from tensorferry._errors import DeviceError
from tensorferry._native import core

__all__ = ["Link", "calibrate", "links"]

_DEVICES = Path("/sys/bus/pci/devices")
_NVIDIA, _DISPLAY_CLASS = "0x10de", "0x03"


@dataclass(frozen=True)
class Link:
    """The link to one device.

    Attributes
    ----------
    device : str
        Its PCI address, behind its name where the driver was asked; "any CUDA device" where none is seen.
    link : str
        Generation and width, "unknown" where the system does not tell.
    figures : LinkFigures
        Those in use, with where they come from. Whether device and driver are those of a calibration shows only when
        the device is first used.
    simulated : bool
        Is it a device of the double of the driver? Then the times are those of a simulation.
    measured : dict of str to Any
        What was measured just now; empty otherwise.
    kept : str
        The file that the calibration was written to just now; "" otherwise.
    note : str
        Why a calibration is not used, or was not kept.
    """

    device: str
    link: str
    figures: LinkFigures
    simulated: bool = False
    measured: dict[str, Any] = field(default_factory=dict)
    kept: str = ""
    note: str = ""


def links() -> list[Link]:
    """Return the links as far as they show without the driver; initialises nothing."""
    file = calibration_file(simulated=False)
    known, problem = file.read() if file is not None else ({}, "")
    by_address = {_address(one.key.bus_id): one for one in known.values()}
    note = "TENSORFERRY_CALIBRATION=off is set" if is_off() else problem
    found = [_seen(bus_id, by_address.get(bus_id), note) for bus_id in _nvidia_devices()]
    return found or [Link("any CUDA device", "unknown", figures_in_use(0), note=note)]


def _seen(bus_id: str, stored: Calibration | None, note: str) -> Link:
    import tensorferry

    gigatransfers_per_s, lanes, node = core.link_at(bus_id)
    name, rate = link_text(gigatransfers_per_s, lanes), core.rate_of_link(gigatransfers_per_s, lanes)
    figures = LinkFigures(**core.link_figures(None))
    if rate:
        figures = LinkFigures(**{**core.figures_for_rate(rate), "source": "link"})
    if stored is None:
        return Link(bus_id, name, figures, note=note)
    # What only the driver tells is taken as it was.
    key = replace(stored.key, version=tensorferry.__version__, link=name, node=node)
    why = why_not_usable(stored, key, rate)
    return Link(
        bus_id, name, figures if why else stored.figures, note=f"the calibration is not used: {why}" if why else ""
    )


def _nvidia_devices() -> list[str]:
    found = []
    for device in sorted(_DEVICES.glob("*")):
        with contextlib.suppress(OSError):
            if (device / "vendor").read_text().strip() == _NVIDIA:
                kind = (device / "class").read_text()
                found += [device.name] if kind.startswith(_DISPLAY_CLASS) else []
    return found


def _address(bus_id: str) -> str:
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain[-4:]}:{rest}"  # the driver may write eight digits


def calibrate() -> list[Link]:
    """Measure the links to all CUDA devices, and keep what follows for later processes.

    Initialises the driver, and each device's primary context. Each device takes a fifth of a second, besides
    what its first use takes. The figures that this process uses already stay as they are.

    Raises
    ------
    DeviceError
        When there is no driver or device, when another process of the host is calibrating, when the result cannot
        be kept, and when calibrations are switched off.
    """
    if is_off():
        raise DeviceError("doctor --calibrate", "TENSORFERRY_CALIBRATION=off is set", "unset it")
    problem = core.driver_problem(initialise=True)
    if problem:
        raise DeviceError("doctor --calibrate", problem, "run it where the NVIDIA driver can be used")
    made = []
    for device in range(core.cuda_device_count()):
        key, rate = key_of(device)
        simulated = is_simulated(key)
        with _locked(calibration_file(simulated=simulated)) as file:
            made.append(_measure(device, key, rate, file, simulated=simulated))
    return made


@contextlib.contextmanager
def _locked(file: CalibrationFile | None) -> Iterator[CalibrationFile | None]:
    with file.locked() if file is not None else contextlib.nullcontext():
        yield file


def _measure(device: int, key: LinkKey, rate: float, file: CalibrationFile | None, *, simulated: bool) -> Link:
    name = f"{key.device} {_address(key.bus_id)}"
    measured = core.measure_link(device)
    if measured["to_host_nbytes_per_s"] <= 0:
        raise DeviceError(f"the link to {name}", "its memory was in other use all the time", "try again")
    date = datetime.date.today().isoformat()
    figures = figures_from(measured, core.figures_for_rate(measured["to_host_nbytes_per_s"]), date)
    made = Link(name, key.link, figures, simulated, measured)
    if file is None:
        why = "a simulation tells nothing of a link" if simulated else "there is no folder for it"
        return replace(made, note=f"not kept: {why}; TENSORFERRY_CALIBRATION may name a folder")
    file.write(Calibration(key, date, rate, figures, measured))
    return replace(made, kept=str(file.path))
