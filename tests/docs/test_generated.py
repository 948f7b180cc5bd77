"""Generated tables are current, and complete by a judge other than the tables they are made from."""

from __future__ import annotations

import builtins
import re
from pathlib import Path

import numpy as np
import pytest

import tensorferry as ferry
from helpers.documentation import PAGES, ROOT, use_tools
from helpers.torch_dtypes import ALL, name_of

use_tools()
import error_table  # noqa: E402
import generate_docs  # noqa: E402

WITH_TABLES = [page for page in PAGES if generate_docs.tables_in(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", WITH_TABLES, ids=lambda page: page.name)
def test_tables_are_what_the_code_gives_now(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert generate_docs.regenerated(text) == text, "run python tools/generate_docs.py"


def test_every_table_that_can_be_generated_stands_in_some_page() -> None:
    found = [name for page in WITH_TABLES for name in generate_docs.tables_in(page.read_text(encoding="utf-8"))]
    assert sorted(found) == sorted(generate_docs.TABLES)


def test_check_names_the_page_that_is_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / "stale.md"
    stale.write_text("<!-- generated: casting -->\nold\n<!-- end -->\n")
    monkeypatch.setattr(generate_docs, "ROOT", tmp_path)
    monkeypatch.setattr(generate_docs, "pages", lambda: [stale])
    assert generate_docs.main(["--check"]) == 1
    assert capsys.readouterr().out == "stale.md: out of date\n"
    assert generate_docs.main([]) == 0
    assert generate_docs.main(["--check"]) == 0


def _first_cells(name: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", generate_docs.TABLES[name](), re.MULTILINE)


def test_the_table_of_dtypes_lists_every_dtype_that_torch_has() -> None:
    assert sorted(_first_cells("torch-dtypes")) == sorted(map(name_of, ALL))


def test_native_pairs_of_the_casting_table_are_numpys() -> None:
    rows = [line for line in generate_docs.TABLES["casting"]().splitlines() if re.match(r"^ ?\d+ [a-z]", line)]
    names = [row.split()[1] for row in rows]
    native = [i for i, name in enumerate(names) if hasattr(np, name.replace("bool", "bool_"))]
    assert len(native) == 14
    for i in native:
        cells = rows[i].split()[2:]
        for j in native:
            rule = {"=": "no", "s": "safe", "k": "same_kind", ".": "unsafe"}[cells[j]]
            strictest = next(r for r in ("no", "safe", "same_kind", "unsafe") if np.can_cast(names[i], names[j], r))
            assert rule == strictest, f"{names[i]} to {names[j]}"


def test_every_error_class_has_an_example_that_raises_it() -> None:
    named = [getattr(ferry, name) for name in ferry.__all__ if name.endswith(("Error", "Timeout"))]
    public = [kind for kind in named if kind is not ferry.FerryError]
    assert set(error_table.EXAMPLES) == set(public)
    for kind in public:
        assert issubclass(kind, ferry.FerryError)
        assert error_table.message_of(kind).count(": ") >= 1


def test_the_builtin_bases_shown_are_the_ones_an_except_clause_can_name() -> None:
    for row in generate_docs.TABLES["errors"]().splitlines()[2:]:
        name, bases = (cell.strip() for cell in row.split(" | ")[:2])
        kind = getattr(ferry, name.strip("|` "))
        for base in re.findall(r"`(\w+)`", bases):
            assert issubclass(kind, getattr(builtins, base))


def test_pages_are_found() -> None:
    assert generate_docs.pages()[0] == ROOT / "README.md"
