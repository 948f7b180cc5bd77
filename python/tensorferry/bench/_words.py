"""Words for what was measured. The table, the page and the documentation use the same ones."""

from __future__ import annotations

import math

from tensorferry._units import binary_size, human_seconds
from tensorferry.bench._declare import LIMIT, Point
from tensorferry.bench._result import GoalOutcome, Measurement, Ratio, Result

__all__ = [
    "goal_bound",
    "goal_state",
    "goals_against",
    "limit_share",
    "name_of",
    "number_text",
    "parameter_text",
    "place_text",
    "point_text",
    "ratio_text",
    "share_text",
    "speed_text",
    "time_text",
]

_PAIRS = {"rows": "columns", "height": "width"}


def point_text(point: Point) -> str:
    """Return a point as people say it.

    >>> point_text({"nbytes": 64 << 20, "dtype": "float32"})
    '64 MiB, float32'
    >>> point_text({"rows": 4096, "columns": 2048, "items": 256})
    '4096 x 2048, 256 items'
    """
    return ", ".join(text for key, value in point.items() if (text := _parameter(key, value, point)))


def _parameter(key: str, value: int | float | str, point: Point) -> str:
    if key in _PAIRS and _PAIRS[key] in point:
        return f"{value} x {point[_PAIRS[key]]}"
    if any(key == second and first in point for first, second in _PAIRS.items()):
        return ""
    return parameter_text(key, value)


def parameter_text(key: str, value: int | float | str) -> str:
    """Return one parameter as people say it: 4096 as "4 KiB" for ``nbytes``, 256 as "256 items" for ``items``."""
    if isinstance(value, bool):
        return key if value else f"no {key}"
    if isinstance(value, str):
        return value
    if key == "nbytes":
        return binary_size(value)
    if key == "side":
        return f"{value} x {value}"
    if isinstance(value, float):
        return f"{key} {value:g}"
    return f"{value:,} {key}" if key.endswith("s") else f"{key} {value:,}"


def place_text(result: Result) -> str:
    """Return the case and the point, such as "transpose.square (64 MiB, float32)"."""
    point = point_text(result.point)
    return f"{result.case} ({point})" if point else result.case


def number_text(number: float) -> str:
    """Return a ratio with about three digits: "0.004", "0.31", "12.5", "128"."""
    if math.isnan(number):
        return "-"
    digits = 0 if number >= 99.95 else 1 if number >= 9.995 else 2 if number >= 0.0995 else 3
    return f"{number:,.{digits}f}" if number >= 0.0005 else f"{number:.0e}"


def ratio_text(ratio: Ratio) -> str:
    """Return the median and the interval, such as "0.31 (0.29, 0.34)"."""
    return f"{number_text(ratio.median)} ({number_text(ratio.low)}, {number_text(ratio.high)})"


def time_text(measurement: Measurement) -> str:
    """Return the median time of a call, or nothing without samples."""
    return human_seconds(measurement.median_s) if measurement.samples_s else ""


def speed_text(measurement: Measurement, nbytes: int) -> str:
    """Return the speed in GB/s with three digits, or nothing where no data moves."""
    if not nbytes or not measurement.samples_s:
        return ""
    speed = measurement.bytes_per_s(nbytes) / 1e9
    digits = 0 if speed >= 99.95 else 1 if speed >= 9.995 else 2 if speed >= 0.9995 else 3
    return f"{speed:.{digits}f}"


def limit_share(result: Result, measurement: Measurement) -> float | None:
    """Return the limit's time over the measurement's, from paired rounds; None where one of them is missing."""
    if result.limit is None or measurement is result.limit or not measurement.samples_s or not result.limit.samples_s:
        return None
    return Ratio.of(result.limit, measurement).median


def share_text(share: float | None) -> str:
    """Return a share as a percentage, or nothing."""
    return "" if share is None else f"{share:.0%}" if share >= 0.0995 else f"{share:.1%}"


def name_of(measurement: Measurement) -> str:
    """Return the label, saying what is the limit and which peers are written as most people write them."""
    if measurement.form == "limit":
        return f"limit: {measurement.label}"
    return f"{measurement.label} (naive)" if measurement.form == "naive" else measurement.label


def goal_bound(goal: GoalOutcome) -> str:
    """Return the bound on our ratio: "<=0.45"; against the limit the bound on our share of it: ">=50%"."""
    return f">={1 / goal.ratio:.0%}" if goal.against == LIMIT else f"<={number_text(goal.ratio)}"


def goal_state(goal: GoalOutcome) -> str:
    """Return "met", "NOT MET" or "not measured"."""
    return {True: "met", False: "NOT MET", None: "not measured"}[goal.met]


def goals_against(result: Result, measurement: Measurement) -> list[GoalOutcome]:
    """Return the goals that compare ours with this candidate, or with this limit."""
    return [goal for goal in result.goals if result.find(goal.against) is measurement]
