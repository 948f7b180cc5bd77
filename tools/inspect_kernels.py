"""Looks into the machine code of the device kernels: nothing in local memory, and 16 bytes at a time where it counts.

    pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm
    python tools/inspect_kernels.py              # the image in the installed native module
    python tools/inspect_kernels.py FILE         # a fat binary, or a library that holds one
    python tools/inspect_kernels.py --self-test  # does it find planted faults? Needs nvcc

Local memory (spilled registers, arrays with computed indices) is forbidden to every kernel: the driver allocates it at
a launch, and may wait for the device then. Exits with 1 and a table of offenders when a rule is broken, with 2 when
there is nothing to look into.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAGIC = struct.pack("<I", 0xBA55ED50)
HEAD_NBYTES = 16

PLANTED = r"""
extern "C" __global__ void ferry_local_array(int* to, const int* from, int index) {
  int values[256];
  for (int i = 0; i < index; ++i) values[from[i] & 255] = i;
  to[threadIdx.x] = values[index & 255] + values[from[index] & 255];
}
extern "C" __global__ void ferry_narrow(int* to, const int* from) { to[threadIdx.x] = from[threadIdx.x]; }
struct alignas(16) Bits128 { unsigned word[4]; };
extern "C" __global__ void ferry_good(Bits128* to, const Bits128* from) { to[threadIdx.x] = from[threadIdx.x]; }
"""


@dataclass(frozen=True)
class Finding:
    """A kernel that breaks a rule on an architecture."""

    kernel: str
    architecture: str
    fault: str


def image_in(data: bytes) -> bytes:
    """Return the first fat binary in these bytes, empty when there is none."""
    at = data.find(MAGIC)
    while at >= 0:
        _, version, head, body = struct.unpack_from("<IHHQ", data.ljust(at + HEAD_NBYTES, b"\0"), at)
        if version == 1 and head == HEAD_NBYTES and at + head + body <= len(data):
            return data[at : at + head + body]
        at = data.find(MAGIC, at + 1)
    return b""


def resource_findings(usage: str, kernels: Collection[str]) -> Iterator[Finding]:
    """Yield what ``cuobjdump -res-usage`` shows: local memory, and kernels that are missing."""
    found: dict[str, set[str]] = {}
    architecture = kernel = ""
    for line in usage.splitlines():
        if match := re.search(r"arch = (sm_\w+)", line):
            architecture = match[1]
            found.setdefault(architecture, set())
        elif match := re.match(r"\s*Function (\w+):", line):
            kernel = match[1]
            found[architecture].add(kernel)
        elif match := re.search(r"STACK:(\d+).*LOCAL:(\d+)", line):
            stack, local = int(match[1]), int(match[2])
            if stack or local:
                yield Finding(kernel, architecture, f"{stack} bytes of stack, {local} bytes of local memory")
    for architecture, there in found.items():
        yield from (Finding(name, architecture, "is missing") for name in kernels if name not in there)


def access_findings(code: str, kernels: Collection[str]) -> Iterator[Finding]:
    """Yield what the code that ``cuobjdump -sass`` shows lacks: a load and a store of 16 bytes each."""
    accesses: dict[tuple[str, str], set[str]] = {}
    architecture, kernel = "", ""
    for line in code.splitlines():
        if match := re.search(r"arch = (sm_\w+)", line):
            architecture = match[1]
        elif match := re.search(r"Function : (\w+)", line):
            kernel = match[1]
            accesses.setdefault((architecture, kernel), set())
        elif match := re.search(r"\b(LD|ST)G?\.\S*\b128\b", line):
            accesses[architecture, kernel].add(match[1])
    for (architecture, kernel), kinds in accesses.items():
        if kernel not in kernels:
            continue
        for kind, word in (("LD", "loads"), ("ST", "stores")):
            if kind not in kinds:
                yield Finding(kernel, architecture, f"never {word} 16 bytes at once")


def kernels_of(listing: str) -> list[str]:
    """Return the functions that kernel_list.hpp names, in its order."""
    return [f"ferry_{name}" for name in re.findall(r"^  X\((\w+),", listing, re.M)]


def wide_kernels(kernels: Collection[str]) -> list[str]:
    """Return those that must move 16 bytes at a time: rows, tiles and the widest strided copy."""
    by_elements = {"ferry_rows_cast"}
    return [
        name
        for name in kernels
        if name.startswith(("ferry_rows", "ferry_transpose", "ferry_strided_16")) and name not in by_elements
    ]


def tool(name: str) -> str:
    """Return where this tool is, on the path or in a package of NVIDIA's; empty when nowhere."""
    if on_path := shutil.which(name):
        return on_path
    package = importlib.util.find_spec("nvidia")
    roots = list(package.submodule_search_locations or []) if package else []
    return next((str(found) for root in roots for found in sorted(Path(root).glob(f"*/bin/{name}"))), "")


def inspect(image: bytes, kernels: Collection[str], wide: Collection[str]) -> list[Finding]:
    """Return all findings about an image. Raises OSError where the tools are missing."""
    cuobjdump, nvdisasm = tool("cuobjdump"), tool("nvdisasm")
    if not cuobjdump or not nvdisasm:
        raise FileNotFoundError("install nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm")
    environment = {**os.environ, "PATH": f"{Path(nvdisasm).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "kernels.fatbin"
        file.write_bytes(image)

        def says(*arguments: str) -> str:
            command = [cuobjdump, *arguments, str(file)]
            return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

        usage = says("-res-usage")
        if "arch = sm_" not in usage:
            raise ValueError("there is no machine code in the image")
        return [
            *resource_findings(usage, kernels),
            *access_findings(says("-sass", "-fun", ",".join(wide)), wide),
        ]


def self_test() -> int:
    """Compile planted faults and say whether all of them, and nothing else, are found."""
    nvcc = tool("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if not nvcc:
        print("no nvcc", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as directory:
        source, made = Path(directory) / "planted.cu", Path(directory) / "planted.fatbin"
        source.write_text(PLANTED)
        subprocess.run([nvcc, "-fatbin", "-arch=sm_80", "-o", str(made), str(source)], check=True)
        names = ["ferry_local_array", "ferry_narrow", "ferry_good"]
        findings = inspect(made.read_bytes(), [*names, "ferry_absent"], names[1:])
    found = sorted({finding.kernel for finding in findings})
    right = found == ["ferry_absent", "ferry_local_array", "ferry_narrow"]
    print(f"self-test: {'right' if right else 'WRONG'}, found faults in {', '.join(found) or 'nothing'}")
    return 0 if right else 1


def installed_module() -> Path:
    """Return the file of the native module."""
    package = importlib.util.find_spec("tensorferry")
    roots = list(package.submodule_search_locations or []) if package else []
    spec = importlib.util.find_spec("tensorferry._core") if roots else None
    if spec is None or spec.origin is None:
        raise FileNotFoundError("tensorferry is not installed")
    return Path(spec.origin)


def main() -> int:
    """Inspect, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, help="a fat binary, or a library that holds one")
    parser.add_argument("--self-test", action="store_true", help="does it find planted faults?")
    arguments = parser.parse_args()
    try:
        if arguments.self_test:
            return self_test()
        file = arguments.file or installed_module()
        image = image_in(file.read_bytes())
        if not image:
            raise ValueError(f"there are no kernels in {file}")
        kernels = kernels_of((ROOT / "csrc/kernels/kernel_list.hpp").read_text())
        wide = wide_kernels(kernels)
        findings = inspect(image, kernels, wide)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 2
    for finding in findings:
        print(f"{finding.kernel:<40} {finding.architecture:<8} {finding.fault}")
    print(f"{len(kernels)} kernels, {len(image) / 1e6:.1f} MB, {len(wide)} must move 16 bytes at a time: "
          f"{len(findings)} findings")  # fmt: skip
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
