"""Which path is chosen and what it costs, from the newest run in ``docs/measurements``.

Every figure is read from that file; nothing is measured here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from markdown_text import code, table

from tensorferry._units import human_seconds
from tensorferry.bench import BEST_PEER, Result, Run
from tensorferry.bench._environment_text import environment_line
from tensorferry.bench._words import limit_share, number_text, parameter_text, point_text, share_text

__all__ = ["MEASUREMENTS", "costs", "newest", "path_and_reason", "table_of"]

MEASUREMENTS = Path(__file__).resolve().parent.parent / "docs" / "measurements"

_PLAN = re.compile(r"(?P<path>[^:]+):.*?, (?:(?P<copies>\d+) cop(?:y|ies)\b|nothing moved)[^:]*: (?P<reason>.*)")
_SIZES = ("nbytes", "rows", "columns")


def costs() -> str:
    """Return the table for the newest run, or a sentence when there is none."""
    found = newest(MEASUREMENTS)
    if found is None:
        return "No run is stored in `docs/measurements` yet."
    return table_of(*found)


def newest(folder: Path) -> tuple[Path, Run] | None:
    """Return the run that started last, with its file; runs of cases without a plan, such as exports, do not count."""
    runs = [(path, Run.load(path)) for path in sorted(folder.glob("*.json"))]
    planned = [(path, run) for path, run in runs if not run.results or any(result.plan for result in run.results)]
    return max(planned, key=lambda pair: pair[1].started) if planned else None


def table_of(path: Path, run: Run) -> str:
    """Return one row for each call and path, and the caption."""
    groups: dict[tuple[str, str, str], list[Result]] = {}
    for result in run.results:
        if result.plan and result.ours.samples_s:
            groups.setdefault((result.ours.label, *path_and_reason(result.plan)), []).append(result)
    rows = [
        [code(call), f"{path_chosen}: {reason}", _times(group), _ratios(group), _shares(group)]
        for (call, path_chosen, reason), group in groups.items()
    ]
    head = [
        "what you write",
        "path chosen, and why",
        "time, for example",
        "ratio to the best peer",
        "share of the limit",
    ]
    return f"{table(head, rows)}\n\n{_caption(path, run)}"


def path_and_reason(plan: str) -> tuple[str, str]:
    """Return what a plan says apart from shape and size."""
    found = _PLAN.fullmatch(plan)
    if found is None:
        return plan, ""
    reason = re.sub(r"^\d+ distinct tensors, ", "", found["reason"])
    copies = int(found["copies"] or 0)
    return found["path"] + (f", {copies} copies" if copies > 1 else ""), reason


def _times(group: Iterable[Result]) -> str:
    """Return the times of the setting with the most sizes: its smallest, its middle and its largest one."""
    settings: dict[str, list[Result]] = {}
    for result in group:
        kept = {key: value for key, value in result.point.items() if key not in _SIZES}
        settings.setdefault(point_text(kept), []).append(result)
    setting, results = max(settings.items(), key=lambda pair: len(pair[1]))
    results = sorted(results, key=lambda result: int(result.point.get("nbytes", 0)))
    shown = dict.fromkeys((0, len(results) // 2, len(results) - 1))
    times = [_time(results[i]) for i in shown]
    return f"{setting + ': ' if setting else ''}{', '.join(times)}"


def _time(result: Result) -> str:
    time = human_seconds(result.ours.median_s)
    nbytes = result.point.get("nbytes")
    return time if nbytes is None else f"{parameter_text('nbytes', nbytes)} {time}"


def _ratios(group: Iterable[Result]) -> str:
    ratios = [ratio.median for result in group if (ratio := result.ratio(BEST_PEER)) is not None]
    return _range([number_text(ratio) for ratio in sorted(ratios)])


def _shares(group: Iterable[Result]) -> str:
    shares = [share for result in group if (share := limit_share(result, result.ours)) is not None]
    return _range([share_text(share) for share in sorted(shares)])


def _range(texts: list[str]) -> str:
    if not texts:
        return ""
    if texts[0] == texts[-1]:
        return texts[0]
    return f"{texts[0]} to {texts[-1]} ({len(texts)} points)"


def _caption(path: Path, run: Run) -> str:
    rounds = max((result.rounds for result in run.results), default=0)
    origins = " and ".join(sorted({result.origin for result in run.results})) or "empty"
    return f"{environment_line(run)} Up to {rounds} rounds, {origins}; from `docs/measurements/{path.name}`."
