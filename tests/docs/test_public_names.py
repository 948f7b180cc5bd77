"""Every public name is in the table of names and has a docstring with an example; all examples are true."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import tensorferry as ferry
from helpers.documentation import ROOT
from tensorferry import types

API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
BLOCKING = (ROOT / "docs" / "blocking.md").read_text(encoding="utf-8")
IN_METRICS = {"metrics.watch": ferry.metrics.watch}
IN_IO = {f"io.{name}": getattr(ferry.io, name) for name in ferry.io.__all__ if name not in ferry.__all__}
CLASSES = {f"types.{name}": getattr(types, name) for name in types.__all__}
VALUES = {name: getattr(ferry, name) for name in ferry.__all__ if not name.startswith("__")}
VALUES |= CLASSES | IN_METRICS | IN_IO
NAMES = list(VALUES)
FUNCTIONS = [name for name, value in VALUES.items() if callable(value) and not inspect.isclass(value)]
MODULES = sorted(module.name for module in pkgutil.walk_packages(ferry.__path__, "tensorferry."))


def test_the_table_lists_exactly_the_public_names() -> None:
    listed = re.findall(r"^\| \[`([\w.]+)(?:\(\))?`\]\(([\w.-]+)\)", API, re.MULTILINE)
    assert sorted(name for name, _ in listed) == sorted(NAMES)
    for _, guide in listed:
        assert (ROOT / "docs" / guide).exists()


def test_nothing_public_is_missing_from_all() -> None:
    named = [name for name in dir(ferry) if not name.startswith("_")]
    ours = [name for name in named if str(getattr(getattr(ferry, name), "__module__", "")).startswith("tensorferry")]
    assert set(ours) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_has_a_docstring(name: str) -> None:
    documented = inspect.getdoc(VALUES[name]) or ""
    assert len(documented.split()) >= 4


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring_has_an_example_and_a_row_in_the_table_of_waits(name: str) -> None:
    documented = inspect.getdoc(VALUES[name]) or ""
    assert ">>> " in documented
    assert f"`{name}" in BLOCKING


@pytest.mark.parametrize("module", [name for name in MODULES if not name.endswith(("__main__", "._core"))])
def test_examples_in_docstrings_are_true(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module))
    assert result.failed == 0


@pytest.mark.parametrize("name", ["to_numpy", "from_numpy"])
def test_examples_of_native_functions_are_true(name: str) -> None:
    function = getattr(ferry, name)
    examples = doctest.DocTestParser().get_doctest(function.__doc__, {}, name, None, None)
    assert doctest.DocTestRunner().run(examples).failed == 0
    assert examples.examples
