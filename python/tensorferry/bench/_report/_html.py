"""Small pieces of HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["case_link", "cell", "code", "row_head", "table"]


def code(text: str) -> str:
    """Return text in code type."""
    return f"<code>{escape(text)}</code>"


def case_link(name: str) -> str:
    """Return a link to the section of a case."""
    return f'<a href="#{escape(name)}">{code(name)}</a>'


def cell(text: str, kind: str = "") -> str:
    """Return a table cell; `text` is escaped, `kind` is its class."""
    return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"


def row_head(inner: str, kind: str = "") -> str:
    """Return the heading of a row; `inner` is HTML already."""
    return f'<th scope="row" class="{kind}">{inner}</th>' if kind else f'<th scope="row">{inner}</th>'


def table(caption: str, head: Sequence[str], bodies: Iterable[str], kind: str = "") -> str:
    """Return a table in a box of its own that scrolls when it is too wide; each body holds its rows."""
    columns = "".join(f'<th scope="col"{_aligned(name)}>{escape(name.lstrip(">"))}</th>' for name in head)
    inner = "".join(f"<tbody>{body}</tbody>" for body in bodies)
    opening = f'<table class="{kind}">' if kind else "<table>"
    titled = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'<div class="scroll">{opening}{titled}<thead><tr>{columns}</tr></thead>{inner}</table></div>'


def _aligned(name: str) -> str:
    return ' class="r"' if name.startswith(">") else ""
