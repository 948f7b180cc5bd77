"""Turns a matplotlib figure into a small SVG to stand inside a page: text as text, colours from the page's style."""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "LINES", "drawing", "figure", "inline"]

# What is drawn in these colours takes the colour of the variable instead, so that both themes have their own.
COLOURS = {
    "ink": "#010101",
    "muted": "#020202",
    "rule": "#030303",
    "ours": "#040404",
    "peer1": "#050505",
    "peer2": "#060606",
    "peer3": "#070707",
    "peer4": "#080808",
    "peer5": "#090909",
    "faster": "#0a0a0a",
    "slower": "#0b0b0b",
    "even": "#0c0c0c",
}

# Colour, marker and dash of each peer in turn: no two differ by colour alone.
LINES: tuple[tuple[str, str, Any], ...] = (
    (COLOURS["peer1"], "s", "-"),
    (COLOURS["peer2"], "^", (0, (5, 1.5))),
    (COLOURS["peer3"], "D", (0, (3, 1, 1, 1))),
    (COLOURS["peer4"], "v", (0, (2, 1))),
    (COLOURS["peer5"], "P", (0, (1, 1))),
)

_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tensorferry",
    "font.size": 8,
    "text.parse_math": False,
    "text.color": COLOURS["ink"],
    "axes.labelcolor": COLOURS["muted"],
    "axes.edgecolor": COLOURS["rule"],
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": COLOURS["rule"],
    "grid.linewidth": 0.5,
    "xtick.color": COLOURS["rule"],
    "ytick.color": COLOURS["rule"],
    "xtick.labelcolor": COLOURS["muted"],
    "ytick.labelcolor": COLOURS["ink"],
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3,
}


def drawing() -> AbstractContextManager[None]:
    """Return the context in which pictures must be drawn and written out: settings of the user have no part in them."""
    import matplotlib as mpl

    settings: Any = {**mpl.rcParamsDefault, **_SETTINGS}
    return mpl.rc_context(settings)


def figure(width_in: float, height_in: float, rows: int = 1, columns: int = 1, **subplots: Any) -> tuple[Figure, Any]:
    """Return a figure without any window system behind it, and its axes as a two-dimensional array."""
    from matplotlib.figure import Figure as NewFigure

    made = NewFigure(figsize=(width_in, height_in), layout="constrained")
    axes = made.subplots(rows, columns, squeeze=False, **subplots)
    for one in axes.flat:
        one.tick_params(which="both", bottom=False, left=False)
        one.patch.set_visible(False)
    made.patch.set_visible(False)
    return made, axes


def inline(made: Figure, name: str, title: str, description: str) -> str:
    """Return the figure as an ``svg`` element with a title and a description for those who cannot see it.

    Parameters
    ----------
    made : Figure
    name : str
        Unique in the page; every id inside begins with it.
    title, description : str
    """
    buffer = io.StringIO()
    made.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    box = re.search(r'viewBox="([^"]+)"', text)
    body = _compact(text[text.index(">") + 1 : text.rindex("</svg>")], name)
    return (
        f'<svg viewBox="{box[1] if box else ""}" role="img" aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{escape(title)}</title><desc id="{name}-d">{escape(description)}</desc>{body}</svg>'
    )


def _compact(body: str, name: str) -> str:
    # matplotlib's style element would style the whole page; the page has its own rule for this. Nothing that is drawn
    # leaves its axes, so nothing has to be clipped.
    removed = r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>|<clipPath.*?</clipPath>"
    body = re.sub(removed, "", body, flags=re.DOTALL)
    body = re.sub(r"<[^>]*>", lambda tag: _compact_tag(tag[0], name), body)
    body = re.sub(r">\s+<", "><", body)
    body = re.sub(r'(?<=-)m[0-9a-f]{10}(?=")', _Numbers(), body)
    return _without_bare_groups(body.replace("<defs></defs>", ""))


class _Numbers:
    """Gives each distinct name a number."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    def __call__(self, found: re.Match[str]) -> str:
        return self.known.setdefault(found[0], str(len(self.known)))


def _compact_tag(tag: str, name: str) -> str:
    tag = re.sub(r"\s+", " ", tag)
    tag = re.sub(r"-?\d+\.\d{2,}", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), tag)
    tag = re.sub(
        r" font-family: [^;]*;|; font-family: [^;\"]*| transform=\"rotate\(-0 [^\"]*\"| clip-path=\"[^\"]*\"", "", tag
    )
    tag = re.sub(r' id="(?!m[0-9a-f]{10})[^"]*"', "", tag)  # only markers are referred to
    tag = re.sub(r'( id="|href="#)', rf"\g<1>{name}-", tag)
    tag = (
        tag.replace("xlink:href", "href").replace("; stroke-linecap: square", "").replace("stroke-dashoffset: 0; ", "")
    )
    tag = re.sub(r"(?<=[MLCQz\d]) (?=[MLCQz])|(?<=[MLCQ]) (?=-?\d)", "", tag)
    for variable, colour in COLOURS.items():
        tag = tag.replace(colour, f"var(--{variable})")
    return tag.replace(": ", ":").replace("; ", ";").replace(' "', '"')


def _without_bare_groups(body: str) -> str:
    kept: list[bool] = []

    def replace(found: re.Match[str]) -> str:
        if found[0].endswith("/>"):
            return ""
        if found[0] != "</g>":
            kept.append(found[0] != "<g>")
            return found[0] if kept[-1] else ""
        return "</g>" if kept.pop() else ""

    return re.sub(r"<g\b[^>]*>|</g>", replace, body)
