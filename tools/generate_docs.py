"""Writes the generated tables into the documentation, or checks that they are current.

Each table stands between the lines ``<!-- generated: name -->`` and ``<!-- end -->`` of a Markdown file and is made
from the tables that the code itself uses. Run ``python tools/generate_docs.py`` after changing one of those, and
``python tools/generate_docs.py --check`` to see whether that was forgotten.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

import api_table
import cast_tables
import cost_table
import dtype_tables
import error_table

ROOT = Path(__file__).resolve().parent.parent

TABLES: dict[str, Callable[[], str]] = {
    "torch-dtypes": dtype_tables.torch_dtypes,
    "array-dtypes": dtype_tables.array_dtypes,
    "casting": cast_tables.casting_matrix,
    "cast-values": cast_tables.cast_values,
    "errors": error_table.errors,
    "api": api_table.api,
    "costs": cost_table.costs,
}

_MARKED = re.compile(r"(<!-- generated: (?P<name>[\w-]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """Return every page that may hold a generated table."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def regenerated(text: str) -> str:
    """Return the page with every generated table as the code now gives it.

    Raises
    ------
    KeyError
        For a marker that names no table.
    """
    return _MARKED.sub(lambda found: f"{found[1]}\n{TABLES[found['name']]()}\n\n", text)


def tables_in(text: str) -> list[str]:
    """Return the names of the generated tables of a page."""
    return [found["name"] for found in _MARKED.finditer(text)]


def main(arguments: list[str] | None = None) -> int:
    """Write the tables, or with ``--check`` name the pages that are out of date and return 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail when a table is out of date")
    check = parser.parse_args(arguments).check
    outdated = []
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = regenerated(before)
        if after != before:
            outdated.append(page.relative_to(ROOT))
            if not check:
                page.write_text(after, encoding="utf-8")
    for page in outdated:
        print(f"{page}: {'out of date' if check else 'written'}")
    return int(check and bool(outdated))


if __name__ == "__main__":
    sys.exit(main())
