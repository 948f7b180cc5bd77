"""Results of benchmarks written by hand: no clock has any part in them."""

from __future__ import annotations

from collections.abc import Sequence

from tensorferry.bench import GoalOutcome, Measurement, Result, Run

__all__ = ["ENVIRONMENT", "against", "failed", "made_up_run", "ours", "private_copy", "run_of"]

ENVIRONMENT = {
    "tensorferry": "0.1.0",
    "torch": "2.13.0",
    "numpy": "2.4.6",
    "processor": "a made-up one",
    "L2 bytes": 1 << 20,
    "GPU": None,
}


def ours(seconds: float, label: str = "ferry.to_numpy(t, copy=True)") -> Measurement:
    """Return a candidate of ours that always takes as long."""
    return Measurement(label, label, "ours", (seconds,) * 11, 10)


def against(
    ours_s: float, label: str, ratio: float, low: float | None = None, high: float | None = None, form: str = "best"
) -> Measurement:
    """Return another, beside which `ours_s` has that ratio, with that 10 % and 90 % point.

    Of eleven sorted ratios these points are the second and the tenth.
    """
    low, high = ratio if low is None else low, ratio if high is None else high
    ratios = (low, low, *(ratio,) * 7, high, high)
    return Measurement(label, label, form, tuple(ours_s / one for one in ratios), 10)  # type: ignore[arg-type]


def failed(label: str, error: str, form: str = "best") -> Measurement:
    """Return a candidate without samples."""
    return Measurement(label, label, form, error=error)  # type: ignore[arg-type]


def private_copy(nbytes: int, layout: str, ours_s: float, ratio: float = 0.5) -> Result:
    """Return one point of a case whose figures are easy to check by head: the best peer takes ours / `ratio`."""
    return Result(
        case="copy.private",
        title="A private copy",
        point={"nbytes": nbytes, "layout": layout},
        measurements=(
            ours(ours_s),
            against(ours_s, "t.clone().numpy()", ratio / 2, ratio / 2 * 0.88, ratio / 2 * 1.12),
            against(ours_s, "t.numpy().copy()", ratio, ratio * 0.88, ratio * 1.12),
            against(ours_s, "np.array(t)", ratio * 0.96, ratio * 0.8, 1.1, form="naive"),
        ),
        limit=against(ours_s, "non-temporal copy", 1.25, 1.12, 1.38, form="limit"),
        nbytes=2 * nbytes,
        goals=(
            GoalOutcome("at least 3x as fast as t.clone().numpy()", "t.clone().numpy()", 1 / 3, ratio / 2, True),
            GoalOutcome("at most 1x the best peer", "the best peer", 1.0, ratio, ratio <= 1),
            GoalOutcome("at least 0.8x the limit", "the limit", 1.25, 1.25, True),
        ),
        rounds=11,
        threads=2,
        checked_values=1000,
        plan="copy: float32 (4096, 4096), 1 copy, 67,108,864 bytes moved: a private copy was asked for",
    )


def run_of(results: Sequence[Result], complete: bool = True, **environment: str) -> Run:
    """Return a full run."""
    return Run({**ENVIRONMENT, **environment}, "2026-01-02T03:04:05+00:00", False, "cpu", tuple(results), complete, 7)


def made_up_run() -> Run:
    """Return a run with sizes and layouts, a call without data, a failure, a missing package, goals met and not."""
    copies = [
        private_copy(size << 20, layout, size * 1e-4 * factor, ratio=0.5 if factor == 1 else 1.5)
        for layout, factor in (("contiguous", 1), ("transposed", 3))
        for size in (1, 16, 64)
    ]
    view = Result(
        "view.tensor",
        "A view",
        {},
        (ours(2.4e-7, "ferry.to_numpy(t)"), against(2.4e-7, "t.numpy()", 0.48, 0.47, 0.49)),
        goals=(
            GoalOutcome("at most 0.45x t.numpy()", "t.numpy()", 0.45, 0.48, False),
            GoalOutcome("at most 0.5x cupy.asarray(t)", "cupy.asarray(t)", 0.5, 0.0, None),
        ),
        rounds=11,
        checked_values=64,
        plan="view: float32 (8, 8), nothing moved: nothing about it has to change",
    )
    wrong = Result(
        "cast.bad",
        "A cast <that> fails & is shown",
        {"dtype": "float64 to float32"},
        (
            failed("ferry.to_numpy(t, dtype='float32')", "wrong before timing: 3 of 64 values differ", "ours"),
            Measurement("t.float().numpy()", "t.float().numpy()", "best", (1e-5,) * 11),
            failed("cupy.asarray(t)", "not installed: cupy"),
        ),
        rounds=11,
        threads=2,
        complete=False,
    )
    return run_of([*copies, view, wrong], complete=False)
