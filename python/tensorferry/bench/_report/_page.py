"""Puts the page together."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from tensorferry._units import counted
from tensorferry.bench._environment_text import environment_line
from tensorferry.bench._report._html import code
from tensorferry.bench._report._overview import overview
from tensorferry.bench._report._pictures import bars, curves
from tensorferry.bench._report._select import curve_panels, largest, least_favourable
from tensorferry.bench._report._slow_down import slow_down_curves
from tensorferry.bench._report._svg import drawing
from tensorferry.bench._report._tables import (
    environment_table,
    goals_table,
    heat_key,
    heat_map,
    results_table,
    worst_table,
)
from tensorferry.bench._result import Result
from tensorferry.bench._summary import Summary, cases_of, summarise
from tensorferry.bench._words import place_text

if TYPE_CHECKING:
    from tensorferry.bench._record import Run

__all__ = ["page"]

MOST_BAR_PANELS = 4
MOST_CURVE_PANELS = 6
_WORST_SHOWN = 12


def page(run: Run) -> str:
    """Return the whole page."""
    summary = summarise(run.results)
    cases = cases_of(run.results)
    kind = "quick" if run.quick else "full"
    with drawing():
        sections = [_case(number, found, summary) for number, found in enumerate(cases.values())]
        glance = overview(list(cases), summary.cells, "all") if summary.cells else ""
    css = _part("page.css")
    title = f"tensorferry benchmark, {kind} run of {run.started[:10]}"
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>\n<style>\n{css}</style>\n</head>\n<body>\n<main>",
            f'<h1>{escape(title)}</h1>\n<p class="lead">{escape(_lead(run, summary))}<br>',
            f"{escape(environment_line(run))}</p>",
            _cards(run, summary),
            "<h2>At a glance</h2>",
            f"<figure>{glance}<figcaption>One mark for each point of each case.</figcaption></figure>"
            if glance
            else "",
            goals_table(summary) if summary.goals else "<p>No goal is set for these cases.</p>",
            worst_table(summary.cells, _WORST_SHOWN) if summary.cells else "",
            f'<h2 id="how-to-read">How to read this</h2>{_part("how_to_read.html")}{heat_key()}',
            f"<h2>Cases</h2>{_contents(cases)}",
            *sections,
            f"<h2>What was left out, and why</h2>{_left_out(run, summary)}",
            f"<h2>Environment</h2>{environment_table(run)}",
            "</main>\n</body>\n</html>\n",
        ]
    )


def _part(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _lead(run: Run, summary: Summary) -> str:
    simulated = f"; {summary.simulated} of them simulated" if summary.simulated else ", all measured"
    cut = "" if run.complete else " The run was interrupted: this is what it had by then."
    return f"{counted(len(run.results), 'result', 'results')} on {run.device}{simulated}.{cut}"


def _cards(run: Run, summary: Summary) -> str:
    met, unmet, unknown = summary.goal_counts
    cells = len(summary.cells)
    open_goals = f", {unknown} could not be judged" if unknown else ""
    wrong = len(summary.failed)
    verdicts = f"{summary.count('no difference')} no difference, {summary.count('slower')} slower"
    return "".join(
        [
            '<div class="cards">',
            _card(f"{met} of {met + unmet}", f"goals met, counted point by point{open_goals}"),
            _card(f"{summary.count('faster')} of {cells}", f"points faster than the best peer; {verdicts}"),
            _card(f"{summary.checked_values:,}", "values compared with NumPy's or torch's"),
            _card(str(wrong), "of our candidates failed: raised or gave a wrong value", wrong > 0),
            "</div>",
            *(_failures(summary) if wrong else []),
        ]
    )


def _card(figure: str, text: str, bad: bool = False) -> str:
    return f'<div class="card{" bad" if bad else ""}"><b>{escape(figure)}</b>{escape(text)}</div>'


def _failures(summary: Summary) -> list[str]:
    items = [
        f"<li>{escape(place_text(r))}: {code(one.label)}: {escape(one.error or '')}</li>" for r, one in summary.failed
    ]
    return ['<ul class="error">', *items, "</ul>"]


def _contents(cases: dict[str, list[Result]]) -> str:
    items = "".join(f'<li><a href="#{escape(name)}">{escape(name)}</a></li>' for name in cases)
    return f'<ul class="contents">{items}</ul>'


def _case(number: int, results: Sequence[Result], summary: Summary) -> str:
    first = results[0]
    cells = [cell for cell in summary.cells if cell.result.case == first.case]
    ran = [result for result in results if any(one.samples_s for one in result.measurements)]
    shown = largest(ran)
    panels = curve_panels([result for result in ran if result.ours.samples_s])
    parts = [f'<h3 id="{escape(first.case)}">{code(first.case)}: {escape(first.title)}</h3>']
    if shown:
        kept = least_favourable([[result] for result in shown], MOST_BAR_PANELS)
        parts.append(
            _figure(bars([panel[0] for panel in kept], f"b{number}"), _bars_caption(len(kept), shown, results))
        )
    if panels:
        kept = least_favourable(panels, MOST_CURVE_PANELS)
        caption = f"Over size; both axes are logarithmic.{_selection(len(kept), len(panels))}"
        parts.append(_figure(curves(kept, f"c{number}"), caption))
    if beside := slow_down_curves(ran, f"s{number}"):
        parts.append(
            _figure(beside, "What the loop loses while copies go on beside it, over the rate that they reach.")
        )
    parts.append(heat_map(results, cells))
    total = counted(len(results), "point", "points")
    parts.append(f"<details><summary>Every figure of {total}</summary>{results_table(results)}</details>")
    return "\n".join(part for part in parts if part)


def _selection(kept: int, of: int) -> str:
    return f" Of {of} settings, the {kept} where ours does worst against the best peer." if kept < of else ""


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _bars_caption(kept: int, shown: Sequence[Result], results: Sequence[Result]) -> str:
    limit = "; the dashed line is the physical limit" if any(result.limit for result in shown) else ""
    what = "The largest size of each setting" if len(results) > len(shown) else "Every point"
    return f"{what}{limit}.{_selection(kept, len(shown))}"


def _left_out(run: Run, summary: Summary) -> str:
    items = [f"{reason} ({counted(number, 'result', 'results')})" for reason, number in summary.absent.items()]
    items += [f"{place_text(result)}: {one.label}: {one.error}" for result, one in summary.peers_failed]
    items += [
        f"{place_text(result)}: interrupted after {counted(result.rounds, 'round', 'rounds')}"
        for result in run.results
        if not result.complete
    ]
    if not run.complete:
        items.append("The run was interrupted: the cases and points that follow the last one here were not measured.")
    if run.quick:
        items.append("This is a quick run: fewer points and rounds than a full one.")
    if run.device == "cpu":
        items.append("Tensors on a device: this run is about host memory.")
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"
