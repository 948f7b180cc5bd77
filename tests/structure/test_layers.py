"""The layers of ARCHITECTURE.md, read from the sources."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"

# What each layer may include, besides itself.
ALLOWED = {
    "core": set(),
    "dlpack": {"core"},
    "host": {"core"},
    "kernels": set(),
    "cuda": {"core", "kernels"},
    "pinned": {"core", "cuda", "host"},
    "transfer": {"core", "cuda", "dlpack", "host", "kernels", "pinned"},
    "bind": {"core", "cuda", "dlpack", "host", "kernels", "pinned", "transfer"},
}
SOURCES = sorted(path for pattern in ("*.hpp", "*.cpp") for path in CSRC.rglob(pattern))
# Compiled for devices as C++17, and for the host by the double of the driver.
KERNELS = sorted(path for pattern in ("*.cu", "*.cuh") for path in (CSRC / "kernels").rglob(pattern))
PYTHON = sorted((ROOT / "python").rglob("*.py"))
TESTS = sorted(path for pattern in ("*.py", "*.cpp", "*.hpp") for path in (ROOT / "tests").rglob(pattern))


def includes(path: Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.M)


def test_every_source_belongs_to_a_known_layer():
    assert {path.relative_to(CSRC).parts[0] for path in SOURCES} == set(ALLOWED)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(CSRC)))
def test_layer_includes_only_what_it_stands_on(path):
    layer = path.relative_to(CSRC).parts[0]
    ours = {name.split("/")[0] for name in includes(path)} & set(ALLOWED)
    # "dlpack/dlpack.h" is the DLPack package's header, which only abi.hpp may name.
    if path.name == "abi.hpp":
        ours -= {"dlpack"}
    assert ours - {layer} <= ALLOWED[layer]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(CSRC)))
def test_python_appears_only_in_bind_and_torch_headers_nowhere(path):
    names = includes(path)
    foreign = [name for name in names if re.match(r"(Python\.h|pybind11/|numpy/)", name)]
    if path.relative_to(CSRC).parts[0] != "bind":
        assert foreign == []
    torch = [name for name in names if re.match(r"(torch|ATen|c10)/", name)]
    assert torch == (["ATen/dlpack.h"] if path.name == "abi.hpp" else [])


@pytest.mark.parametrize("path", SOURCES + KERNELS + PYTHON + TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_longer_than_300_lines(path):
    assert len(path.read_text().splitlines()) <= 300


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: str(path.relative_to(CSRC)))
def test_kernels_include_only_kernels_and_headers_that_devices_know(path):
    others = [name for name in includes(path) if not name.startswith("kernels/")]
    shim = {"kernel_shim.hpp"} if path.name == "platform.cuh" else set()
    assert set(others) <= {"cstdint", "cstring"} | shim


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: str(path.relative_to(CSRC)))
def test_only_platform_names_what_devices_have_and_hosts_do_not(path):
    code = re.sub(r"//.*", "", path.read_text())
    found = re.findall(r"\b(?:__\w+|threadIdx|blockIdx|blockDim|gridDim|atomic[A-Z]\w*)\b", code)
    allowed = {"platform.cuh": None, "memory.cuh": {"__CUDACC__"}}.get(path.name, set())
    assert allowed is None or set(found) <= allowed


def test_one_unit_includes_every_kernel():
    together = includes(CSRC / "kernels" / "kernels.cu")
    assert together == [f"kernels/{path.name}" for path in KERNELS if path.suffix == ".cu" and path.stem != "kernels"]


def test_every_listed_kernel_is_defined_once():
    listed = re.findall(r"^  X\((\w+),", (CSRC / "kernels" / "kernel_list.hpp").read_text(), re.M)
    code = "".join(path.read_text() for path in KERNELS)
    by_macro = [f"{family}_{name}" for family, name in re.findall(r"^FERRY_([A-Z]+)\w*\((\w+)", code, re.M)]
    plain = re.findall(r"\) ferry_(\w+)\(", code)
    names = [name.lower() for name in by_macro if not name.startswith(("KERNEL", "SHARED"))] + plain
    assert sorted(names) == sorted(listed)


def test_cmake_lists_every_source_file():
    lists = [ROOT / "cmake" / "FerryEngine.cmake", CSRC / "bind" / "CMakeLists.txt"]
    listed = "".join(path.read_text() for path in lists)
    missing = [str(path.relative_to(CSRC)) for path in CSRC.rglob("*.cpp") if path.name not in listed]
    assert missing == []


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_torch_is_never_imported_at_module_level(path):
    at_module_level = re.findall(r"^(?:import torch|from torch)\b.*", path.read_text(), re.M)
    assert at_module_level == []


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_native_module_has_one_importer(path):
    direct = re.findall(
        r"^\s*(?:from tensorferry import _core|from tensorferry\._core import|import tensorferry\._core).*",
        path.read_text(),
        re.M,
    )
    assert bool(direct) == (path.name == "_native.py")
