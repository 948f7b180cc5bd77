"""The pages of the documentation, and the code in them."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGES", "ROOT", "Block", "as_program", "blocks", "use_tools"]

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "@@ line "


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes
    ----------
    language : str
        What stands behind the fence.
    text : str
        What it holds.
    line : int
        The line of the opening fence, counted from 1.
    printed : str or None
        Of a Python block: the ``text`` block that follows it with nothing but a blank line between, which holds what
        the Python block prints.
    """

    language: str
    text: str
    line: int
    printed: str | None = None


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = list(_FENCE.finditer(text))
    result = []
    for i, this in enumerate(found):
        following = found[i + 1] if i + 1 < len(found) else None
        line = text.count("\n", 0, this.start()) + 1
        adjacent = following is not None and text[this.end() : following.start()].strip() == ""
        printed = following[2] if following and adjacent and following[1] == "text" and this[1] == "python" else None
        result.append(Block(this[1], this[2], line, printed))
    return result


def as_program(page: Path) -> str:
    """Return the Python blocks of a page as one program whose line numbers are those of the page.

    In place of each opening fence it prints a mark with the line, so that output can be told apart.
    """
    lines = [""] * (page.read_text(encoding="utf-8").count("\n") + 1)
    for block in blocks(page):
        if block.language == "python":
            lines[block.line - 1] = f"print('{MARK}{block.line}')"
            code = block.text.splitlines()
            lines[block.line : block.line + len(code)] = code
    return "\n".join(lines)


def printed_by_block(output: str) -> dict[int, str]:
    """Return what each block of a program printed, by the line of its fence."""
    parts = re.split(rf"^{MARK}(\d+)\n", output, flags=re.MULTILINE)
    return {int(line): text for line, text in zip(parts[1::2], parts[2::2], strict=True)}


def use_tools() -> None:
    """Make the scripts in ``tools/`` importable."""
    tools = str(ROOT / "tools")
    if tools not in sys.path:
        sys.path.insert(0, tools)
