"""The benchmark harness: compares ways of doing the same work, so that a sceptic can believe the figures.

Candidates take turns in every round, get fresh inputs, use equally many threads, and are checked on every value before
and after; the physical limit is timed beside them. Figures are ratios of the same round. A ratio whose 10 % and 90 %
points lie on both sides of 1 is "no difference".

>>> from tensorferry.bench import compare
>>> result = compare(
...     {"sorted(x)": "sorted(x)", "sort a copy": lambda inputs: (y := inputs["x"].copy(), y.sort())[0]},
...     setup=lambda rng: {"x": rng.permutation(1000).tolist()},
...     expected=lambda inputs: list(range(1000)),
...     rounds=5,
... )
>>> result.checked_values
4000
>>> result.ratio("sort a copy").verdict in ("faster", "slower", "no difference")
True

The cases that ship with the package are in ``tensorferry.bench.cases``; ``tensorferry bench`` runs them.
"""

from tensorferry.bench._compare import Interrupted, compare
from tensorferry.bench._declare import (
    ALONE,
    BEST_PEER,
    LIMIT,
    Candidate,
    Case,
    Code,
    Form,
    Goal,
    Inputs,
    Point,
    at_least,
    at_most,
    best,
    naive,
    ours,
    share_of_limit,
)
from tensorferry.bench._environment import environment
from tensorferry.bench._limits import LIMITS, Limit, make_limit
from tensorferry.bench._record import Run
from tensorferry.bench._regress import regression
from tensorferry.bench._result import GoalOutcome, Measurement, Ratio, Result, Verdict
from tensorferry.bench._run import load_cases, run, select
from tensorferry.bench._table import show
from tensorferry.bench._values import close, poison, same

__all__ = [
    "ALONE",
    "BEST_PEER",
    "LIMIT",
    "LIMITS",
    "Candidate",
    "Case",
    "Code",
    "Form",
    "Goal",
    "GoalOutcome",
    "Inputs",
    "Interrupted",
    "Limit",
    "Measurement",
    "Point",
    "Ratio",
    "Result",
    "Run",
    "Verdict",
    "at_least",
    "at_most",
    "best",
    "close",
    "compare",
    "environment",
    "load_cases",
    "make_limit",
    "naive",
    "ours",
    "poison",
    "regression",
    "run",
    "same",
    "select",
    "share_of_limit",
    "show",
]
