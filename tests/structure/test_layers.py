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
    "cuda": {"core"},
    "pinned": {"core", "cuda", "host"},
    "transfer": {"core", "cuda", "dlpack", "host", "pinned"},
    "bind": {"core", "cuda", "dlpack", "host", "pinned", "transfer"},
}
SOURCES = sorted(path for pattern in ("*.hpp", "*.cpp") for path in CSRC.rglob(pattern))
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


@pytest.mark.parametrize("path", SOURCES + PYTHON + TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_longer_than_300_lines(path):
    assert len(path.read_text().splitlines()) <= 300


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
