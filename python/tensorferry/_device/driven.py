"""Whose memory the CUDA driver copies, and whether there is one."""

from __future__ import annotations

import sys

from tensorferry._errors import DeviceError
from tensorferry._native import core

__all__ = ["drives_torch", "require_driver"]


def drives_torch(device_type: str) -> bool:
    """Does the driver copy torch's tensors of this kind of device? Initialises nothing."""
    if device_type != "cuda":
        return False
    torch = sys.modules["torch"]
    return getattr(torch.version, "hip", None) is None and not core.driver_problem(initialise=False)


def require_driver(given: str, *, initialise: bool) -> None:
    """Raise unless the driver can be used; without `initialise` as far as opening it shows.

    Raises
    ------
    DeviceError
        With the driver's own reason.
    """
    problem = core.driver_problem(initialise=initialise)
    if problem:
        why = f"its memory cannot be read from the host, and the CUDA driver cannot be used ({problem})"
        raise DeviceError(given, why, "copy it to the host in its own library")
