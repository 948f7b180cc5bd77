"""Builds the driver double of ``tests/fake_cuda`` once per state of its sources."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

__all__ = ["build_once", "compiler", "fake_cuda_library", "fake_cuda_old_library", "run_all"]

SOURCES = Path(__file__).resolve().parents[1] / "fake_cuda"
CSRC = SOURCES.parents[1] / "csrc"
FLAGS = ("-std=c++20", "-O1", "-g1", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-pthread")
KERNEL_FLAGS = ("-fsanitize=thread", "-fno-exceptions", "-fno-strict-aliasing", "-ffp-contract=off")
TIMEOUT_S = 300

_SUFFIXES = (".cpp", ".cu", ".cuh", ".hpp", ".txt")


def compiler() -> str:
    """The C++ compiler: $CXX, or the first that is found."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            return name
    raise RuntimeError("the fake driver needs a C++20 compiler: none of $CXX, c++, g++, clang++ was found")


def _cache() -> Path:
    given = os.environ.get("TENSORFERRY_TEST_CACHE")
    return Path(given) if given else Path(tempfile.gettempdir()) / f"tensorferry-tests-{os.getuid()}"


def _key() -> str:
    digest = hashlib.sha256(repr((compiler(), FLAGS, KERNEL_FLAGS)).encode())
    for directory in (SOURCES, CSRC / "kernels"):
        for path in sorted(path for path in directory.iterdir() if path.suffix in _SUFFIXES):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def run_all(commands: list[list[str]], cwd: Path) -> None:
    """Run all at once; raise with what the first one that failed has printed."""
    running = [subprocess.Popen(command, cwd=cwd, stderr=subprocess.PIPE, text=True) for command in commands]
    for command, process in zip(commands, running, strict=True):
        _, errors = process.communicate(timeout=TIMEOUT_S)
        if process.returncode != 0:
            raise RuntimeError(f"building for the tests failed: {' '.join(command)}\n{errors}")


def _build(into: Path) -> None:
    """Compile in two halves at once, each as one file: the headers of the standard library cost more than our code."""
    listed = re.search(r"add_library\(fake_cuda_objects OBJECT(.*?)\)", (SOURCES / "CMakeLists.txt").read_text(), re.S)
    assert listed is not None
    names = listed.group(1).split()
    compile_ = [compiler(), *FLAGS, f"-I{SOURCES}", f"-I{CSRC}"]
    for half in (0, 1):
        text = "".join(f'#include "{SOURCES / name}"\n' for name in names[half::2])
        (into / f"half{half}.cpp").write_text(text)
    entry = str(SOURCES / "entry.cpp")
    kernels = [*compile_, *KERNEL_FLAGS, "-c", str(SOURCES / "kernels.cpp"), "-o", "kernels.o"]
    run_all([[*compile_, "-c", f"half{half}.cpp", "-o", f"half{half}.o"] for half in (0, 1)] + [kernels], into)
    link = [*compile_, "-shared", "half0.o", "half1.o", "kernels.o", entry]
    run_all([[*link, "-o", "libfake_cuda.so"], [*link, "-DFAKE_CUDA_OLD", "-o", "libfake_cuda_old.so"]], into)
    for path in [*into.glob("*.o"), *into.glob("*.cpp")]:
        path.unlink()


def build_once(name: str, build: Callable[[Path], None]) -> Path:
    """Return the directory `name` of the cache; if there is none, `build` fills it, undisturbed by other processes."""
    ready = _cache() / name
    if not ready.is_dir():
        _cache().mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=_cache()))
        try:
            build(unfinished)
            unfinished.rename(ready)  # another process may have been faster
        except OSError:
            if not ready.is_dir():
                raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return ready


def _library(name: str) -> Path:
    return build_once(f"fake-cuda-{_key()}", _build) / name


def fake_cuda_library() -> Path:
    """The library for ``TENSORFERRY_LIBCUDA``; built at the first call, some seconds."""
    given = os.environ.get("TENSORFERRY_FAKE_CUDA")
    return Path(given) if given else _library("libfake_cuda.so")


def fake_cuda_old_library() -> Path:
    """The same as a library of a driver before 12.0 looks: ``cuGetProcAddress`` with four arguments only."""
    return _library("libfake_cuda_old.so")
