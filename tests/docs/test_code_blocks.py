"""Every Python block of the documentation runs as it stands, and prints what the page says it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.documentation import PAGES, as_program, blocks, printed_by_block
from helpers.subprocess import stdout_of

WITH_CODE = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_code_runs_in_order_in_a_fresh_interpreter_and_prints_what_is_shown(page: Path) -> None:
    printed = printed_by_block(stdout_of(as_program(page), timeout_s=120) + "\n")
    python = [block for block in blocks(page) if block.language == "python"]
    assert sorted(printed) == [block.line for block in python]
    for block in python:
        shown = (block.printed or "").strip()
        assert printed[block.line].strip() == shown, f"{page.name}, line {block.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_fences_name_a_language_that_the_page_means(page: Path) -> None:
    languages = {block.language for block in blocks(page)}
    allowed = {"python", "text"} | ({"bash"} if page.name in ("README.md", "benchmarks.md") else set())
    assert languages <= allowed


def test_the_first_two_shell_blocks_of_the_readme_are_the_demo_and_the_tests() -> None:
    readme = next(page for page in PAGES if page.name == "README.md")
    commands = [block.text.strip() for block in blocks(readme) if block.language == "bash"]
    assert commands == ["pip install '.[demo]' && tensorferry demo", "pip install '.[test]' && pytest"]


@pytest.mark.parametrize("page", sorted(p for p in PAGES if p.parent.name == "docs"), ids=lambda page: page.name)
def test_a_guide_begins_with_code_to_paste(page: Path) -> None:
    if page.name == "README.md":
        return
    first = blocks(page)[0]
    assert first.language == ("bash" if page.name == "benchmarks.md" else "python")
    assert first.line < 12
