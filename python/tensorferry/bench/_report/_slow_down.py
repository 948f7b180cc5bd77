"""Draws what a loop loses to the copies beside it, over the rate of the copies."""

from __future__ import annotations

from collections.abc import Sequence

from tensorferry.bench._declare import ALONE
from tensorferry.bench._report._svg import COLOURS, LINES, figure, inline
from tensorferry.bench._result import Result

__all__ = ["slow_down_curves", "slow_down_lines"]

_WIDTH_IN, _HEIGHT_IN = 7.2, 2.6

Line = list[tuple[float, float]]


def slow_down_lines(results: Sequence[Result]) -> dict[str, Line]:
    """Return for each setting but the share the points (rate in GB/s, slow-down in percent), by rate.

    Nothing where no candidate is the loop alone.
    """
    lines: dict[str, Line] = {}
    for result in results:
        ratio = result.ratio(ALONE)
        nbytes = result.point.get("nbytes")
        if ratio is None or not isinstance(nbytes, int):
            continue
        blocks = result.point.get("blocks")
        name = "copies" if blocks is None else f"{blocks} {'block' if blocks == 1 else 'blocks'}"
        rate = nbytes / result.ours.median_s / 1e9
        lines.setdefault(name, []).append((rate, 100 * (ratio.median - 1)))
    return {name: sorted(points) for name, points in lines.items()}


def slow_down_curves(results: Sequence[Result], name: str) -> str:
    """Draw them in one panel; empty where there is nothing to draw."""
    lines = slow_down_lines(results)
    if not lines:
        return ""
    made, axes = figure(_WIDTH_IN, _HEIGHT_IN)
    ax = axes[0, 0]
    styles = ((COLOURS["ours"], "o", "-"), *LINES)
    for (label, points), (colour, marker, dash) in zip(lines.items(), styles * len(lines), strict=False):
        rates, losses = zip(*points, strict=True)
        ax.plot(rates, losses, label=label, color=colour, marker=marker, linestyle=dash)
    ax.axhline(0, color=COLOURS["ink"], linewidth=0.8)
    ax.set_xlim(left=0)
    ax.set_xlabel("GB/s of the copies")
    ax.set_ylabel("% that the loop takes longer")
    ax.grid()
    ax.legend(ncols=2, fontsize=7)
    said = "; ".join(
        f"{label}: " + ", ".join(f"{loss:.1f} % at {rate:.1f} GB/s" for rate, loss in points)
        for label, points in lines.items()
    )
    return inline(made, name, f"{results[0].title}: slow-down over the rate of the copies", said)
