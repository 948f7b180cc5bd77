"""Chooses what of a case is drawn: points for the bars, panels for the curves, rows and columns for the heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorferry.bench._declare import BEST_PEER, Point
from tensorferry.bench._result import Result
from tensorferry.bench._summary import Cell

__all__ = ["Grid", "curve_panels", "grid_of", "largest", "least_favourable"]

Value = int | float | str

_SIZES = ("nbytes", "rows", "columns", "height", "width")
_PREFERRED = (("layout", "dtype"), ("from", "to"), ("layout", "nbytes"), ("dtype", "nbytes"))
_FEWEST_SIZES = 3


@dataclass(frozen=True)
class Grid:
    """The cells of a heat map.

    Attributes
    ----------
    row, column : str
        The parameters that change along the rows and columns.
    rows, columns : list
        Their values: sizes in order, others as they were measured.
    cells : dict of (value, value) to Cell
        For each place the cell with the largest ratio, where several points fall on it.
    folded : bool
        Did several points fall on some place?
    """

    row: str
    column: str
    rows: list[Value]
    columns: list[Value]
    cells: dict[tuple[Value, Value], Cell]
    folded: bool


def _rest(point: Point) -> tuple[tuple[str, int | float | str], ...]:
    return tuple((key, value) for key, value in point.items() if key not in _SIZES)


def _nbytes(result: Result) -> int:
    return int(result.point.get("nbytes", 0))


def largest(results: Sequence[Result]) -> list[Result]:
    """Return the result with the most bytes for each setting of the other parameters."""
    found: dict[object, Result] = {}
    for result in results:
        key = _rest(result.point)
        if key not in found or _nbytes(result) > _nbytes(found[key]):
            found[key] = result
    return list(found.values())


def least_favourable(panels: Sequence[list[Result]], most: int) -> list[list[Result]]:
    """Return the panels with the largest ratios against the best peer, at most so many, in their own order."""
    chosen = sorted(range(len(panels)), key=lambda i: -max(map(_ratio, panels[i])))[:most]
    return [panels[i] for i in sorted(chosen)]


def _ratio(result: Result) -> float:
    found = result.ratio(BEST_PEER)
    return found.median if found is not None else 0.0


def curve_panels(results: Sequence[Result]) -> list[list[Result]]:
    """Return, for each setting of the other parameters with at least three sizes, its results by size."""
    panels: dict[object, dict[int, Result]] = {}
    for result in results:
        if "nbytes" in result.point:
            panels.setdefault(_rest(result.point), {})[_nbytes(result)] = result
    return [[panel[size] for size in sorted(panel)] for panel in panels.values() if len(panel) >= _FEWEST_SIZES]


def grid_of(results: Sequence[Result], cells: Sequence[Cell]) -> Grid | None:
    """Return the heat map of a case, or None where fewer than two parameters change."""
    points = [_parameters(result.point) for result in results]
    values = {key: _values(points, key) for key in dict.fromkeys(key for point in points for key in point)}
    changing = [key for key, found in values.items() if len(found) > 1]
    if len(changing) < 2:
        return None
    preferred = [pair for pair in _PREFERRED if set(pair) <= set(changing)]
    row, column = preferred[0] if preferred else (changing[0], changing[1])
    found: dict[tuple[Value, Value], Cell] = {}
    folded = False
    for cell in sorted(cells, key=lambda cell: cell.ratio.median):
        point = _parameters(cell.result.point)
        if row in point and column in point:
            folded = folded or (point[row], point[column]) in found
            found[point[row], point[column]] = cell
    return Grid(row, column, values[row], values[column], found, folded)


def _parameters(point: Point) -> dict[str, Value]:
    """Return what can stand on an axis: bytes rather than extents, and both ends of a cast in place of its name."""
    dropped = {"rows", "columns", "height", "width"} if "nbytes" in point else set()
    kept = {key: value for key, value in point.items() if key not in dropped}
    dtype = kept.get("dtype")
    if isinstance(dtype, str) and " to " in dtype and "layout" not in kept:
        del kept["dtype"]
        kept["from"], _, kept["to"] = dtype.partition(" to ")
    return kept


def _values(points: Sequence[dict[str, Value]], key: str) -> list[Value]:
    found = list(dict.fromkeys(point[key] for point in points if key in point))
    numbers = [value for value in found if not isinstance(value, str)]
    return [*sorted(numbers)] if len(numbers) == len(found) else found
