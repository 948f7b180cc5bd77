"""A page of HTML, taken apart by the standard library's parser."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

__all__ = ["Page", "parse"]

_VOID = {"meta", "br", "link", "img", "hr", "input"}


@dataclass
class Page(HTMLParser):
    """What a page holds.

    Attributes
    ----------
    tags : list of (str, dict)
        Every opening tag with its attributes.
    text : list of str
        Text outside of style sheets, piece by piece.
    style : str
    rows : list of list of str
        The text of the cells of every table row.
    open : list of str
        Tags that are still open; empty after a well-formed page.
    """

    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    style: str = ""
    rows: list[list[str]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the tag."""
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the tag; it needs no closing one."""
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Close the tag that is open."""
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another tag"

    def handle_data(self, data: str) -> None:
        """Note the text."""
        if "style" in self.open:
            self.style += data
            return
        self.text.append(data)
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data

    def having(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of every tag of that name."""
        return [attributes for name, attributes in self.tags if name == tag]


def parse(text: str) -> Page:
    """Return the page."""
    page = Page()
    page.feed(text)
    page.close()
    return page
