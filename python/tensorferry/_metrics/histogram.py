"""A histogram that was counted where its values were."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Histogram"]


class Histogram(NamedTuple):
    """How many values of a tensor lie between which edges, as sinks get it for ``log_histogram``.

    Attributes
    ----------
    counts : list of int
        Of finite values, bin by bin. A value on an edge belongs to the bin above it, the largest one to the last bin.
    edges : list of float
        One more than there are bins, from the smallest finite value to the largest.
    nan, infinite : int
        How many values are NaN, or infinite; no bin has them.

    Examples
    --------
    >>> from tensorferry.metrics import Histogram
    >>> Histogram([2, 1], [0.0, 0.5, 1.0], nan=0, infinite=0).counts
    [2, 1]
    """

    counts: list[int]
    edges: list[float]
    nan: int
    infinite: int
