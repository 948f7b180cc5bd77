"""Draws the whole run at one glance: every ratio against the best peer, case by case."""

from __future__ import annotations

from collections.abc import Sequence

from tensorferry.bench._report._svg import COLOURS, figure, inline
from tensorferry.bench._summary import Cell
from tensorferry.bench._words import ratio_text

__all__ = ["overview"]

_SHAPES = {
    "faster": ("o", COLOURS["faster"]),
    "no difference": ("|", COLOURS["ink"]),
    "slower": ("^", COLOURS["slower"]),
}
_TICKS = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def overview(cases: Sequence[str], cells: Sequence[Cell], name: str) -> str:
    """Draw a row for each of `cases` and a mark for each point, on a logarithmic axis with 1 in it."""
    from matplotlib.ticker import NullLocator

    cases = [case for case in cases if any(cell.result.case == case for cell in cells)]
    made, axes = figure(7.2, 0.8 + 0.2 * len(cases))
    ax = axes[0, 0]
    for verdict, (marker, colour) in _SHAPES.items():
        chosen = [cell for cell in cells if cell.ratio.verdict == verdict]
        ax.plot(
            [cell.ratio.median for cell in chosen],
            [cases.index(cell.result.case) for cell in chosen],
            linestyle="", marker=marker, color=colour, label=f"{verdict} ({len(chosen)})",
            markersize=7 if marker == "|" else 4, alpha=0.6,
        )  # fmt: skip
    ratios = [cell.ratio.median for cell in cells]
    low, high = min([*ratios, 0.5]) / 1.3, max([*ratios, 1.5]) * 1.3
    ax.axvline(1, color=COLOURS["ink"], linewidth=1)
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    ax.xaxis.set_minor_locator(NullLocator())
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    ax.set_xticks(ticks, [f"{tick:g}x" for tick in ticks])
    ax.set_yticks(range(len(cases)), cases)
    ax.set_ylim(len(cases) - 0.5, -0.5)
    ax.set_xlabel("our time over the best peer's; left of 1x ours is faster")
    ax.grid(axis="x")
    made.legend(loc="outside upper left", ncols=3)
    return inline(made, name, "Our time over the best peer's, at every point of every case", _said(cases, cells))


def _said(cases: Sequence[str], cells: Sequence[Cell]) -> str:
    parts = []
    for case in cases:
        own = sorted((cell for cell in cells if cell.result.case == case), key=lambda cell: cell.ratio.median)
        parts.append(f"{case}: {len(own)} points, from {ratio_text(own[0].ratio)} to {ratio_text(own[-1].ratio)}")
    return "; ".join(parts)
