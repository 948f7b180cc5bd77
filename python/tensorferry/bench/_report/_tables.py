"""The tables of the page: every result, the goals, the heat map, what was left out, the environment."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from tensorferry.bench._declare import LIMIT
from tensorferry.bench._environment_text import environment_rows
from tensorferry.bench._report._html import case_link, cell, code, row_head, table
from tensorferry.bench._report._select import grid_of
from tensorferry.bench._result import GoalOutcome, Measurement, Ratio, Result
from tensorferry.bench._summary import Cell, Summary, is_absent
from tensorferry.bench._words import (
    goal_bound,
    goal_state,
    goals_against,
    limit_share,
    name_of,
    number_text,
    parameter_text,
    point_text,
    ratio_text,
    share_text,
    speed_text,
    time_text,
)

if TYPE_CHECKING:
    from tensorferry.bench._record import Run

__all__ = ["environment_table", "goals_table", "heat_key", "heat_map", "results_table", "worst_table"]

_HEAD = ("candidate", ">time", ">GB/s", ">of the limit", ">ours / it", "ours is", "goal")
_VERDICT_CLASS = {"faster": "fast", "slower": "slow"}
_STATE_CLASS = {"met": "met", "NOT MET": "unmet", "not measured": "open"}
_HEAT = (
    ("f4", "up to 0.25"),
    ("f3", "0.25 to 0.5"),
    ("f2", "0.5 to 0.8"),
    ("f1", "0.8 to 1"),
    ("n", "no difference"),
    ("s1", "1 to 1.25"),
    ("s2", "1.25 to 2"),
    ("s3", "above 2"),
)


def results_table(results: Sequence[Result]) -> str:
    """Return every candidate of every point, with intervals."""
    return table("", _HEAD, map(_block, results), "figures")


def _block(result: Result) -> str:
    rows = [_row(result, one) for one in (*result.measurements, *([result.limit] if result.limit else []))]
    missing = [goal for goal in result.goals if result.find(goal.against) is None]
    rows += [f"<tr>{row_head(escape(goal.text))}{'<td></td>' * 5}{_goals([goal])}</tr>" for goal in missing]
    return f'<tr><th scope="rowgroup" class="point" colspan="7">{escape(_point_title(result))}</th></tr>{"".join(rows)}'


def _point_title(result: Result) -> str:
    notes = [f"{result.rounds} rounds", f"{result.threads} thread{'s' if result.threads != 1 else ''}", result.origin]
    notes += [] if result.complete else ["interrupted"]
    plan = f"; plan: {result.plan}" if result.plan else ""
    return f"{point_text(result.point) or result.case} ({', '.join(notes)}{plan})"


def _row(result: Result, one: Measurement) -> str:
    star = "* " if one is result.best_peer else ""
    head = row_head(f"{star}{code(name_of(one))}")
    opening = '<tr class="own">' if one is result.ours else "<tr>"
    goals = _goals(goals_against(result, one))
    if one.error is not None:
        kind = "note" if is_absent(one) else "error"
        return f'{opening}{head}<td colspan="5" class="{kind}">{escape(one.error)}</td>{goals}</tr>'
    figures = (time_text(one), speed_text(one, result.nbytes), share_text(limit_share(result, one)))
    return f"{opening}{head}{''.join(map(cell, figures))}{_ratio(result, one)}{goals}</tr>"


def _ratio(result: Result, one: Measurement) -> str:
    ratio = None if one is result.ours else result.ratio(LIMIT if one.form == "limit" else one.label)
    if ratio is None:
        return "<td></td><td></td>"
    verdict = "" if one.form == "limit" else ratio.verdict
    return cell(ratio_text(ratio)) + cell(verdict, _VERDICT_CLASS.get(verdict, ""))


def _goals(goals: Sequence[GoalOutcome]) -> str:
    said = [f'<span class="{_STATE_CLASS[goal_state(goal)]}">{_bound(goal)}</span>' for goal in goals]
    return f"<td>{'<br>'.join(said)}</td>"


def _bound(goal: GoalOutcome) -> str:
    return escape(goal_state(goal) if goal.met is None else f"{goal_bound(goal)} {goal_state(goal)}")


def goals_table(summary: Summary) -> str:
    """Return every goal with the number of points that meet it and the farthest one."""
    rows = []
    for goal in sorted(summary.goals, key=lambda goal: not goal.unmet):
        judged = len(goal.met) + len(goal.unmet)
        kind, state = ("unmet", "NOT MET") if goal.unmet else ("met", "met") if judged else ("", "not measured")
        worst = "" if goal.worst is None else goal.worst_text
        met = f"{len(goal.met)} of {judged}"
        figures = f"{cell(goal.text)}{cell(met, 'r')}{cell(worst)}{cell(state, kind)}"
        rows.append(f"<tr>{row_head(case_link(goal.case))}{figures}</tr>")
    head = ("case", "goal for our time", ">points that meet it", "farthest point", "")
    return table("Goals, those that are not met first", head, ["".join(rows)])


def worst_table(cells: Sequence[Cell], most: int) -> str:
    """Return the points with the largest ratios against the best peer."""
    rows = [
        f"<tr>{row_head(case_link(one.result.case))}"
        f"{cell(point_text(one.result.point))}<td>{code(one.peer.label)}</td>{cell(ratio_text(one.ratio), 'r')}"
        f"{cell(one.ratio.verdict, _VERDICT_CLASS.get(one.ratio.verdict, ''))}</tr>"
        for one in cells[:most]
    ]
    head = ("case", "point", "best peer", ">ours / it", "ours is")
    return table("The largest ratios against the best peer", head, ["".join(rows)])


def heat_map(results: Sequence[Result], cells: Sequence[Cell]) -> str:
    """Return a table with a coloured ratio against the best peer in each place, or nothing for a case with one axis."""
    grid = grid_of(results, cells)
    if grid is None:
        return ""
    rows = "".join(
        f"<tr>{row_head(escape(parameter_text(grid.row, row)))}"
        f"{''.join(_heat_cell(grid.cells.get((row, column))) for column in grid.columns)}</tr>"
        for row in grid.rows
    )
    axes = [name.replace("nbytes", "size") for name in (grid.row, grid.column)]
    folded = "; the largest ratio where several points fall on one place" if grid.folded else ""
    caption = f"Our time over the best peer's{folded}"
    head = (" / ".join(axes), *(parameter_text(grid.column, column) for column in grid.columns))
    return table(caption, head, [rows], "heat")


def _heat_cell(one: Cell | None) -> str:
    if one is None:
        return cell("")
    title = f"{point_text(one.result.point)}: {ratio_text(one.ratio)} against {one.peer.label}"
    return f'<td class="{_heat_class(one.ratio)}" title="{escape(title)}">{number_text(one.ratio.median)}</td>'


def _heat_class(ratio: Ratio) -> str:
    if ratio.verdict == "no difference":
        return "n"
    edges = ((0.25, "f4"), (0.5, "f3"), (0.8, "f2"), (1, "f1"), (1.25, "s1"), (2, "s2"))
    return next((name for edge, name in edges if ratio.median <= edge), "s3")


def heat_key() -> str:
    """Return the key to the colours of the heat maps."""
    cells = "".join(cell(text, name) for name, text in _HEAT)
    row = f"<tr>{row_head('ours / best peer')}{cells}</tr>"
    return f'<div class="scroll"><table class="heat key"><tbody>{row}</tbody></table></div>'


def environment_table(run: Run) -> str:
    """Return everything that was recorded about the machine."""
    facts = [("started", run.started), ("device", run.device), ("seed of the inputs", str(run.seed))]
    facts += environment_rows(run.environment)
    rows = "".join(f"<tr>{row_head(escape(name))}{cell(text)}</tr>" for name, text in facts)
    return table("", ("fact", "value"), [rows])
