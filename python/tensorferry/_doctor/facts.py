"""What is installed, how the package was built, which devices there seem to be, and what every path does here.

No device is initialised on the way: only what torch was built for and what the system shows is read.
"""

from __future__ import annotations

import array
import importlib.util
import os
import platform
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._device.driven import drives_torch
from tensorferry._doctor.checks import Check, convert_both_ways
from tensorferry._doctor.devices import Device, devices
from tensorferry._doctor.kernels import Kernels, kernels
from tensorferry._doctor.links import Link, calibrate, links
from tensorferry._errors import FerryError, MissingDependencyError
from tensorferry._memory.pool import PoolStats, pool_stats
from tensorferry._native import core
from tensorferry._plan.plan import Plan
from tensorferry._plan.planning import plan

__all__ = ["Check", "Device", "Engine", "Facts", "Finding", "Kernels", "Link", "Path", "Remedy", "devices", "examine"]


@dataclass(frozen=True)
class Path:
    """What one kind of call does here; the fields are those of :class:`tensorferry.types.Plan`."""

    call: str
    path: str
    copies: int
    waits: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Finding:
    """Something that keeps the main job from working, in the three parts of an error message."""

    given: str
    why: str
    instead: str


@dataclass(frozen=True)
class Remedy:
    """Something to install, and what one gets from it."""

    command: str
    gives: str


@dataclass(frozen=True)
class Engine:
    """How host memory is copied here.

    Attributes
    ----------
    processor_level : str
        Which kernels this processor gets: "portable", "avx2" or "avx512".
    threads : int
        How many threads a large copy may use now.
    thread_owner : {"torch", "tensorferry"}
        Whose threads those are: of torch's OpenMP runtime, or of a pool of our own.
    stream_from_nbytes : int
        From which size on results are written past the caches.
    """

    processor_level: str
    threads: int
    thread_owner: str
    stream_from_nbytes: int


@dataclass(frozen=True)
class Facts:
    """All that ``tensorferry doctor`` tells.

    Attributes
    ----------
    versions : dict of str to str or None
        By package; None for what is not installed.
    numpy_bridge : bool or None
        Does torch's own ``Tensor.numpy()`` work? None without torch.
    native : dict of str to str
        How the native module was built.
    exchange_table : bool
        Are torch tensors read through the C exchange table (else through DLPack capsules)?
    exchange_reason : str
        Why.
    engine : Engine
    host_pool : PoolStats
        The pool that private copies get their memory from.
    kernels : Kernels
        What runs on CUDA devices itself; without it the tensor's library packs and the host casts.
    devices : list of Device
    links : list of Link
        How paths to and from CUDA devices are chosen.
    paths : list of Path
    checks : list of Check
    findings : list of Finding
        Empty when the main job works.
    remedies : list of Remedy
    """

    versions: dict[str, str | None]
    numpy_bridge: bool | None
    native: dict[str, str]
    exchange_table: bool
    exchange_reason: str
    engine: Engine
    host_pool: PoolStats
    kernels: Kernels
    devices: list[Device]
    links: list[Link]
    paths: list[Path]
    checks: list[Check]
    findings: list[Finding] = field(default_factory=list)
    remedies: list[Remedy] = field(default_factory=list)


def _engine() -> Engine:
    threads = core.threads_for(1 << 30)  # asks torch, and joins its threads
    owner = "torch" if core.works_with_openmp_team() else "tensorferry"
    return Engine(core.processor_level(), threads, owner, core.stream_threshold_nbytes())


def examine(*, calibrates: bool = False) -> Facts:
    """Collect all facts; imports torch where it is installed, and initialises no device unless it calibrates."""
    torch, torch_error = _import_torch()
    checks = convert_both_ways(torch)
    exchange_table, exchange_reason = _exchange(torch)
    measured, not_measured = _calibrated() if calibrates else ([], [])
    facts = Facts(
        versions=_versions(torch),
        numpy_bridge=None if torch is None else _bridge_works(torch),
        native=dict(core.build_info()),
        exchange_table=exchange_table,
        exchange_reason=exchange_reason,
        engine=_engine(),
        host_pool=pool_stats(),
        kernels=kernels(),
        devices=devices(torch),
        links=measured or links(),
        paths=_paths(torch),
        checks=checks,
        findings=[*torch_error, *_failed(checks), *not_measured],
    )
    facts.remedies.extend(_remedies(facts))
    return facts


def _calibrated() -> tuple[list[Link], list[Finding]]:
    try:
        return calibrate(), []
    except FerryError as error:
        return [], [Finding(error.given, error.why, error.instead)]


def _import_torch() -> tuple[Any, list[Finding]]:
    try:
        return _torch.require("converting between torch and NumPy"), []
    except MissingDependencyError as error:
        return None, [Finding(error.given, error.why, error.instead)]
    except OSError as error:  # a shared library of torch's own is missing
        return None, [Finding("import torch", str(error), "reinstall torch")]


def _versions(torch: Any) -> dict[str, str | None]:
    import tensorferry

    found: dict[str, str | None] = {
        "tensorferry": tensorferry.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "ml_dtypes": metadata.version("ml_dtypes"),
        "torch": None if torch is None else str(torch.__version__),
    }
    for package in ("scikit-learn", "pillow", "safetensors"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def _bridge_works(torch: Any) -> bool:
    try:
        return bool(torch.ones(1).numpy()[0] == 1)
    except RuntimeError:
        return False


def _exchange(torch: Any) -> tuple[bool, str]:
    if torch is None:
        return False, "torch is not installed"
    if core.reads_through_exchange_table(torch.Tensor):
        return True, "this torch carries a DLPack C exchange table"
    if not core.exchange_api_enabled():
        return False, f"TENSORFERRY_NO_EXCHANGE_API={os.environ.get('TENSORFERRY_NO_EXCHANGE_API', '')} is set"
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        return False, f"torch {torch.__version__} has no DLPack C exchange table; torch 2.10 and newer have one"
    return False, f"torch {torch.__version__} has an exchange table of a version that is not known here"


def _paths(torch: Any) -> list[Path]:
    """Ask ``plan`` about one example of each kind."""
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    if torch is None:
        return [_path("to_numpy(array)", plan(a)), _path("to_numpy(buffer)", plan(array.array("f", [1.0, 2.0])))]
    t = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    frozen = a.copy()
    frozen.flags.writeable = False
    found = [
        _path("to_numpy(host tensor)", plan(t)),
        _path("to_numpy(t, copy=True)", plan(t, copy=True)),
        _path('to_numpy(t, copy="lazy")', plan(t, copy="lazy")),
        _path("to_numpy(bfloat16 tensor)", plan(t.bfloat16())),
        _path('to_numpy(..., dtype="numpy")', plan(t.bfloat16(), dtype="numpy")),
        _path("from_numpy(array)", plan(a, to="torch")),
        _path("from_numpy(read-only array)", plan(frozen, to="torch")),
        _path("from_numpy(array[::-1])", plan(a[::-1], to="torch")),
    ]
    waits = ("the device",)
    through_torch = "through torch, blocking"
    if drives_torch("cuda"):
        found.append(Path("to_numpy(cuda tensor)", "dma", 1, waits, "by the driver, into pinned memory"))
        found.append(Path('from_numpy(a, device="cuda")', "ring", 2, (), "by the driver, through pinned memory"))
        found.append(Path("to_numpy(mps, xpu tensor)", "fallback", 1, waits, through_torch))
    else:
        found.append(Path("to_numpy(cuda, mps, xpu tensor)", "fallback", 1, waits, through_torch))
        found.append(Path('from_numpy(a, device="cuda")', "fallback", 1, waits, through_torch))
    return found


def _path(call: str, made: Plan) -> Path:
    return Path(call, made.path, made.copies, made.waits, made.reason)


def _failed(checks: list[Check]) -> list[Finding]:
    instead = "report it together with what `tensorferry doctor --json` prints"
    return [Finding(f"the check {check.name!r}", check.detail, instead) for check in checks if not check.ok]


def _remedies(facts: Facts) -> list[Remedy]:
    found = []
    if facts.versions["torch"] is None:
        found.append(Remedy("pip install 'tensorferry[torch]'", "conversion from and to torch tensors"))
    elif not facts.exchange_table and "TENSORFERRY" not in facts.exchange_reason:
        found.append(Remedy("pip install 'torch>=2.10'", "the exchange table: faster conversion of small tensors"))
    if facts.numpy_bridge is False:
        found.append(Remedy("pip install --upgrade torch numpy", "torch's own .numpy(); tensorferry works without it"))
    if importlib.util.find_spec("sklearn") is None or importlib.util.find_spec("PIL") is None:
        found.append(Remedy("pip install 'tensorferry[demo]'", "tensorferry demo"))
    if importlib.util.find_spec("safetensors") is None:
        found.append(Remedy("pip install safetensors", "tensorferry explain FILE.safetensors"))
    cuda = next(device for device in facts.devices if device.name == "cuda")
    if cuda.seen and not cuda.built and facts.versions["torch"] is not None:
        found.append(Remedy("a CUDA build of torch, see pytorch.org", f"use of the GPU seen here ({cuda.seen})"))
    return found
