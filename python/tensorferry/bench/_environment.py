"""Where a run took place: what anyone needs to know who wants to repeat it or to doubt it."""

from __future__ import annotations

import importlib.util
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from tensorferry._native import core
from tensorferry.bench._clock import bind
from tensorferry.bench._record import Fact
from tensorferry.bench._threads import available_cores

__all__ = ["environment"]

_PACKAGES = ("ml_dtypes", "torch", "safetensors", "opencv-python", "opencv-python-headless", "cupy", "scipy")


def environment(folder: str | os.PathLike[str]) -> dict[str, Fact]:
    """Return versions, processor, caches, memory, load, kernel, build, the file system of a folder.

    "timing loop ns" is what the loop around a timed expression costs by itself; no figure is corrected for it. None
    stands for what is not there or cannot be told. No device is initialised by asking.

    Parameters
    ----------
    folder : path
        Where the benchmark writes files.
    """
    return {
        **_versions(),
        **_machine(),
        **_memory(),
        **_device(),
        "file system": _file_system(Path(folder)),
        "timing loop ns": _loop_ns(),
    }


def _versions() -> dict[str, Fact]:
    import tensorferry

    found: dict[str, Fact] = {
        "tensorferry": tensorferry.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    built = core.build_info()
    return {**found, "compiler": built.get("compiler"), "build type": built.get("build_type")}


def _machine() -> dict[str, Fact]:
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "cores usable": available_cores(),
        "L2 bytes": _cache_bytes(2),
        "L3 bytes": _cache_bytes(3),
        "system": platform.system(),
        "kernel": platform.release(),
        "load average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def _processor() -> Fact:
    lines = (_read("/proc/cpuinfo") or "").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Processor"))]
    return names[0] if names else platform.processor() or None


def _cache_bytes(level: int) -> int | None:
    """Return the size of one cache of that level; of those that cores share, one."""
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if _read(index / "level") == str(level):
            text = _read(index / "size") or ""
            scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
            digits = text.rstrip("KMG")
            return int(digits) * scale if digits.isdigit() else None
    return None


def _memory() -> dict[str, Fact]:
    lines = (_read("/proc/meminfo") or "").splitlines()
    sizes = {name: int(rest.split()[0]) << 10 for name, _, rest in (line.partition(":") for line in lines)}
    pages = _read("/sys/kernel/mm/transparent_hugepage/enabled") or ""
    return {
        "memory bytes": sizes.get("MemTotal"),
        "free memory bytes": sizes.get("MemAvailable"),
        "transparent huge pages": pages.partition("[")[2].partition("]")[0] or None,
        "defragmentation for huge pages": (_read("/sys/kernel/mm/transparent_hugepage/defrag") or "")
        .partition("[")[2]
        .partition("]")[0]
        or None,
    }


def _device() -> dict[str, Fact]:
    driver = _read("/sys/module/nvidia/version")
    found: dict[str, Fact] = {"GPU driver": driver, "GPU": None, "CUDA": None}
    if driver is None or importlib.util.find_spec("torch") is None:
        return found
    import torch

    if not torch.cuda.is_available():
        return found
    return found | {"GPU": str(torch.cuda.get_device_name()), "CUDA": torch.version.cuda}


def _file_system(folder: Path) -> Fact:
    """Return the type of the mount that a folder lies on: the last one of the longest path above it."""
    where = str(folder.resolve())
    mounts = [line.split()[1:3] for line in (_read("/proc/self/mounts") or "").splitlines()]
    above = [(point, kind) for point, kind in mounts if where == point or where.startswith(point.rstrip("/") + "/")]
    longest = max((len(point) for point, _ in above), default=0)
    return next((kind for point, kind in reversed(above) if len(point) == longest), None)


def _loop_ns() -> float:
    loop = bind("None", {}).loop
    return round(min(loop(100_000) for _ in range(5)) / 100_000 * 1e9, 1)


def _read(path: Any) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None
