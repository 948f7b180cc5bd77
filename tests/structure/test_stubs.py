"""pybind11 functions have no signature that stubtest could compare: their doc lines are compared with the stub."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import tensorferry
from tensorferry import _native

STUB = ast.parse((Path(tensorferry.__file__).parent / "_core.pyi").read_text())


def stub_functions():
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and not any(
                    isinstance(d, ast.Name) and d.id == "property" for d in item.decorator_list
                ):
                    yield f"{node.name}.{item.name}", item


def parameters(node: ast.FunctionDef) -> list[str]:
    names = [argument.arg for argument in node.args.args if argument.arg != "self"]
    return names + [argument.arg for argument in node.args.kwonlyargs]


def documented_parameters(doc: str) -> list[str]:
    line = doc.splitlines()[0]
    inside = line[line.index("(") + 1 : line.rindex(") ->")]
    return [name for name in re.findall(r"(?:^|, )(\w+)(?=:)", inside) if name != "self"]


@pytest.mark.parametrize(
    ("name", "node"), list(stub_functions()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_stub_names_the_parameters_that_pybind11_documents(name, node):
    function = _native.core
    for part in name.split("."):
        function = getattr(function, part)
    assert parameters(node) == documented_parameters(function.__doc__)


@pytest.mark.parametrize("name", ["to_numpy", "from_numpy"])
def test_fast_functions_have_a_signature_that_stubtest_can_read(name):
    signature = inspect.signature(getattr(_native.core, name))
    overloads = [node for node in STUB.body if isinstance(node, ast.FunctionDef) and node.name == name]
    assert overloads
    for node in overloads:
        positional = [argument.arg for argument in node.args.posonlyargs]
        assert list(signature.parameters) == positional + parameters(node)
