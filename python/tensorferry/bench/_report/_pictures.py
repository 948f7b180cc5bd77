"""Draws one case: bars against the limit, and curves over size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorferry._units import binary_size, human_seconds
from tensorferry.bench._declare import Point
from tensorferry.bench._report._svg import COLOURS, LINES, figure, inline
from tensorferry.bench._result import Measurement, Result
from tensorferry.bench._words import name_of, number_text, point_text, speed_text, time_text

__all__ = ["bars", "curves"]

_WIDTH_IN = 7.2


def bars(results: Sequence[Result], name: str) -> str:
    """Draw one panel for each result, a bar for each candidate, and a line for the limit."""
    heights = [0.45 + 0.19 * len(_shown(result)) for result in results]
    made, axes = figure(_WIDTH_IN, sum(heights) + 0.3, len(results), height_ratios=heights, sharex=len(results) > 1)
    for ax, result in zip(axes[:, 0], results, strict=True):
        _bar_panel(ax, result)
    axes[-1, 0].set_xlim(0, 1.45 * max(_height(result, one) for result in results for one in _shown(result)))
    axes[-1, 0].set_xlabel("GB/s, longer is faster" if results[0].nbytes else "time of a call, shorter is faster")
    title = f"{results[0].title}: {'speed' if results[0].nbytes else 'time'} of every candidate"
    return inline(made, name, title, ". ".join(_said(result) for result in results))


def _bar_panel(ax: Any, result: Result) -> None:
    shown = _shown(result)
    values = [_height(result, one) for one in shown]
    positions = range(len(shown))
    bars = ax.barh(positions, values, color=[_bar_colour(result, one) for one in shown], height=0.72)
    ax.set_yticks(positions, [_short(name_of(one)) for one in shown])
    ax.invert_yaxis()
    for position, one, value in zip(positions, shown, values, strict=True):
        ax.annotate(_bar_text(result, one), (value, position), (3, 0), textcoords="offset points", va="center", size=7)
    if shown[-1] is result.limit:
        bars[-1].set(edgecolor=COLOURS["ink"], linewidth=0.8, linestyle=(0, (4, 2)))
        ax.axvline(values[-1], color=COLOURS["ink"], linewidth=0.8, linestyle=(0, (4, 2)))
    ax.xaxis.set_major_formatter(_formatter(result))
    ax.set_title(point_text(result.point), weight="bold")
    ax.grid(axis="x")


def _shown(result: Result) -> list[Measurement]:
    every = [*result.measurements, *([result.limit] if result.limit is not None else [])]
    return [one for one in every if one.samples_s]


def _bar_colour(result: Result, one: Measurement) -> str:
    return COLOURS["ours"] if one is result.ours else "none" if one is result.limit else COLOURS["even"]


def _height(result: Result, one: Measurement) -> float:
    return one.bytes_per_s(result.nbytes) / 1e9 if result.nbytes else one.median_s


def _formatter(result: Result) -> Any:
    return (
        (lambda value, _: f"{value:g}") if result.nbytes else (lambda value, _: human_seconds(value) if value else "0")
    )


def _bar_text(result: Result, one: Measurement) -> str:
    own = f"{speed_text(one, result.nbytes)} GB/s" if result.nbytes else time_text(one)
    ratio = None if one is result.ours or one is result.limit else result.ratio(one.label)
    return own if ratio is None else f"{own}; ours takes {number_text(ratio.median)}x as long"


def _short(label: str, most: int = 46) -> str:
    return label if len(label) <= most else f"{label[: most - 1]}…"


def _said(result: Result) -> str:
    parts = [f"{name_of(one)} {_bar_text(result, one)}" for one in _shown(result)]
    return f"{point_text(result.point) or result.case}: {'; '.join(parts)}"


def curves(panels: Sequence[Sequence[Result]], name: str) -> str:
    """Draw speed, or time where no data moves, over the number of bytes: one panel for each other setting."""
    columns = min(len(panels), 2)
    rows = math.ceil(len(panels) / columns)
    made, axes = figure(_WIDTH_IN, 1.75 * rows + 0.55, rows, columns, sharex=True, sharey=True)
    shared = _shared(panels)
    for ax, panel in zip(axes.flat, panels, strict=False):
        _curve_panel(ax, panel)
        ax.set_title(_panel_title(panel[0].point, shared), weight="bold")
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    handles, labels = axes.flat[0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=7)
    moved = bool(panels[0][0].nbytes)
    made.supylabel("GB/s" if moved else "time of a call", size=7, color=COLOURS["muted"])
    title = f"{panels[0][0].title}: {'speed' if moved else 'time'} over size"
    ends = [f"{point_text(r.point)}: ours {_bar_text(r, r.ours)}" for panel in panels for r in (panel[0], panel[-1])]
    return inline(made, name, title, "; ".join(ends))


def _curve_panel(ax: Any, panel: Sequence[Result]) -> None:
    first = panel[0]
    labels = [one.label for one in first.measurements]
    for number, label in enumerate(labels):
        points = [(r, one) for r in panel if (one := r.find(label)) is not None and one.samples_s]
        colour, marker, dash = (COLOURS["ours"], "o", "-") if number == 0 else LINES[(number - 1) % len(LINES)]
        _line(ax, points, _short(name_of(first.measurements[number])), color=colour, marker=marker, linestyle=dash,
              linewidth=2 if number == 0 else 1.2, zorder=4 if number == 0 else 3)  # fmt: skip
    limits = [(r, r.limit) for r in panel if r.limit is not None and r.limit.samples_s]
    if limits:
        _line(ax, limits, name_of(limits[0][1]), color=COLOURS["ink"], linestyle=(0, (4, 2)), linewidth=1)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    sizes = [int(r.point["nbytes"]) for r in panel]
    ax.set_xticks(sizes[:: max(1, math.ceil(len(sizes) / 5))])
    ax.xaxis.set_major_formatter(lambda value, _: binary_size(value))
    ax.yaxis.set_major_formatter(_formatter(first))
    ax.yaxis.set_minor_formatter(lambda value, _: "")
    ax.tick_params(labelsize=7)
    ax.grid()


def _line(ax: Any, points: Sequence[tuple[Result, Measurement]], label: str, **style: Any) -> None:
    heights = [_height(result, one) for result, one in points]
    ax.plot([int(result.point["nbytes"]) for result, _ in points], heights, label=label, **style)


def _shared(panels: Sequence[Sequence[Result]]) -> set[str]:
    points = [panel[0].point for panel in panels]
    return {key for key in points[0] if len({point.get(key) for point in points}) == 1}


def _panel_title(point: Point, shared: set[str]) -> str:
    skipped = {"nbytes", "rows", "columns", "height", "width"}
    kept = {key: value for key, value in point.items() if key not in skipped}
    return point_text({key: value for key, value in kept.items() if key not in shared} or kept)
