"""The devices that torch or the system shows, and which way tensors go to and from each.

None is initialised: only what torch was built for, what registered itself and what the system shows is read. Questions
such as ``torch.cuda.is_available()`` are not asked, for they start the driver.
"""

from __future__ import annotations

import ctypes.util
import glob
import importlib.util
import os
import platform
import sys
from dataclasses import dataclass
from typing import Any

from tensorferry._device.driven import drives_torch
from tensorferry._torch import fallback

__all__ = ["Device", "devices"]

# Backends outside of torch that do not use its reserved name, and the package that each comes with.
_PACKAGES = {"hpu": "habana_frameworks", "xla": "torch_xla"}
_UNNAMED = "privateuseone"  # what torch calls its reserved backend until one registers


@dataclass(frozen=True)
class Device:
    """A kind of device.

    Attributes
    ----------
    name : str
        As torch calls it.
    built : str
        What torch was built for, or was given by a package; "" when it has no such device here.
    seen : str
        What of it the system shows; "" when nothing.
    path : {"host", "driver", "fallback", ""}
        Which way its tensors go: "fallback" is through torch, blocking; "" when torch has none.
    reason : str
        Why.
    """

    name: str
    built: str
    seen: str
    path: str = ""
    reason: str = ""


def devices(torch: Any) -> list[Device]:
    """Return the kinds of devices that torch or the system shows, without initialising any.

    Parameters
    ----------
    torch : module or None
        None when torch is not installed.
    """
    version = getattr(torch, "version", None)
    mps = getattr(getattr(torch, "backends", None), "mps", None)

    def built(name: str) -> str:
        number = getattr(version, name, None)
        return f"{name} {number}" if number else ""

    nvidia = [*sorted(glob.glob("/dev/nvidia[0-9]*")), *filter(None, [ctypes.util.find_library("cuda")])]
    host = "what lies in host memory is read there" if torch is not None else ""
    return [
        Device("cpu", "always" if host else "", f"{os.cpu_count()} cores", "host" if host else "", host),
        _other("cuda", built("cuda"), ", ".join(nvidia)),
        _other("cuda (ROCm)", built("hip"), "/dev/kfd" if os.path.exists("/dev/kfd") else ""),
        _other("mps", "mps" if mps is not None and mps.is_built() else "", "Apple" if _is_apple_silicon() else ""),
        _other("xpu", built("xpu"), ", ".join(sorted(glob.glob("/dev/dri/renderD*")))),
        *(_backends_from_outside(torch) if torch is not None else []),
    ]


def _other(name: str, built: str, seen: str) -> Device:
    if not built:
        return Device(name, built, seen)
    kind = name.partition(" ")[0]
    if drives_torch(kind):
        return Device(name, built, seen, "driver", "its driver opens; whether it starts shows at the first copy")
    return Device(name, built, seen, "fallback", fallback.reason(kind))


def _backends_from_outside(torch: Any) -> list[Device]:
    """Those that few builds have, listed only where there are any."""
    found = {}  # by name, where it comes from
    if _is_built(getattr(torch, "mtia", None)):
        found["mtia"] = "not asked"
    for name, package in _PACKAGES.items():
        if importlib.util.find_spec(package) is not None:
            found[name] = f"package {package}"
    registered = getattr(torch._C, "_get_privateuse1_backend_name", lambda: _UNNAMED)()
    if registered != _UNNAMED:
        found[registered] = "registered in this process"
    return [_other(name, name, seen) for name, seen in found.items()]


def _is_built(backend: Any) -> bool:
    asked = getattr(backend, "_is_compiled", None)
    return asked is not None and bool(asked())


def _is_apple_silicon() -> bool:
    return sys.platform == "darwin" and platform.machine() == "arm64"
