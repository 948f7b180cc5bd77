"""Finds cases, picks some, and runs them."""

from __future__ import annotations

import difflib
import fnmatch
import importlib
import os
import pkgutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from tensorferry._errors import ArgumentError
from tensorferry.bench._check import raised
from tensorferry.bench._compare import LEAST_ROUNDS, Interrupted, compare
from tensorferry.bench._declare import Case, Point
from tensorferry.bench._environment import environment
from tensorferry.bench._race import Entry
from tensorferry.bench._record import Run
from tensorferry.bench._result import Result
from tensorferry.bench._threads import available_cores

__all__ = ["QUICK_ROUNDS", "load_cases", "run", "select"]

QUICK_ROUNDS = 5


def load_cases() -> list[Case]:
    """Return all cases that ship with the package, module by module: what each names ``CASES``.

    Raises
    ------
    ArgumentError
        When two cases have the same name.
    """
    from tensorferry.bench import cases

    found: list[Case] = []
    for module in sorted(pkgutil.iter_modules(cases.__path__), key=lambda module: module.name):
        if not module.name.startswith("_"):
            found += importlib.import_module(f"{cases.__name__}.{module.name}").CASES
    names = [case.name for case in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ArgumentError(f"two cases named {twice[0]!r}", "results are found by name", "rename one of them")
    return found


def select(cases: Sequence[Case], names: Iterable[str]) -> list[Case]:
    """Return the cases that any of `names` means, in their own order; all of them, for no names.

    Parameters
    ----------
    cases : sequence of Case
    names : iterable of str
        Full names such as "view.tensor", their first words such as "view", or patterns such as "*.small".

    Raises
    ------
    ArgumentError
        When a name means no case.
    """
    wanted = list(names)
    for name in wanted:
        if not any(_means(name, case) for case in cases):
            raise _unknown(name, cases)
    return [case for case in cases if not wanted or any(_means(name, case) for name in wanted)]


def _means(name: str, case: Case) -> bool:
    return name in (case.name, case.name.partition(".")[0]) or fnmatch.fnmatchcase(case.name, name)


def _unknown(name: str, cases: Sequence[Case]) -> ArgumentError:
    full = [case.name for case in cases]
    known = sorted({*full, *(each.partition(".")[0] for each in full)})
    close = difflib.get_close_matches(name, known, cutoff=0.5)
    guess = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    return ArgumentError(
        f"case {name!r}",
        "there is none of that name",
        f"{guess}name one of {', '.join(full)}, a first word or a pattern",
    )


def run(
    cases: Sequence[Case],
    *,
    quick: bool = False,
    device: str = "cpu",
    threads: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    rounds: int | None = None,
    on_progress: Callable[[int, int, str], object] | None = None,
    save_to: str | os.PathLike[str] | None = None,
) -> Run:
    """Run cases at all of their points.

    Parameters
    ----------
    cases : sequence of Case
        Those that cannot run on `device` are left out.
    quick : bool
        Each case's quick points, and 5 rounds.
    device : str
        "cpu" or "cuda". Any but the first is handed to setups as the keyword ``device``, and stands in the points.
    threads, seed : int, optional
        As :func:`tensorferry.bench.compare` takes them.
    folder : path, optional
        Where files are written; by default the system's folder for temporary files.
    rounds : int, optional
        30, or 5 when quick, if left out.
    on_progress : callable, optional
        ``on_progress(done, total, name)``: points done, points in all, and the case that begins, or "" at the end.
    save_to : path, optional
        Results so far are written there after each point.

    Returns
    -------
    Run
        A case that cannot be set up is in it, with the reason as its candidates' error.

    Raises
    ------
    Interrupted
        A KeyboardInterrupt that carries the ``run`` so far; `save_to` holds it too.
    """
    sown = int.from_bytes(os.urandom(4), "little") if seed is None else seed
    where = folder or tempfile.gettempdir()
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    told = Run(environment(where), started, quick, device, (), complete=False, seed=sown)
    work = [(case, point) for case in cases if device in case.devices for point in case.points_for(quick)]
    results: list[Result] = []

    def so_far(complete: bool) -> Run:
        made = replace(told, results=tuple(results), complete=complete)
        if save_to is not None:
            made.save(save_to)
        return made

    def measure(case: Case, point: Point) -> Result:
        return compare(
            case.candidates,
            setup=case.setup,
            check=case.check,
            expected=case.expected,
            before=case.before,
            nbytes=case.nbytes,
            limit=case.limit,
            rounds=rounds or (QUICK_ROUNDS if quick else LEAST_ROUNDS),
            warmup=1 if quick else 2,
            destinations=case.destinations,
            threads=threads,
            seed=sown,
            goals=case.goals,
            point=point,
            plan=case.plan,
            case=case.name,
            title=case.title,
            folder=where,
            device=device,
        )

    try:
        for done, (case, given) in enumerate(work):
            if on_progress:
                on_progress(done, len(work), case.name)
            point = dict(given) if device == "cpu" else {**given, "device": device}
            try:
                results.append(measure(case, point))
            except Exception as error:
                results.append(_not_set_up(case, point, error, threads or available_cores(), sown))
            if done + 1 < len(work):
                so_far(complete=False)
        finished = so_far(complete=True)
        if on_progress:
            on_progress(len(work), len(work), "")
        return finished
    except KeyboardInterrupt as stop:
        if isinstance(stop, Interrupted) and stop.result is not None:
            results.append(stop.result)
        raise Interrupted(run=so_far(complete=False)) from stop


def _not_set_up(case: Case, point: Point, error: Exception, threads: int, seed: int) -> Result:
    reason = f"not run: {raised(error)}"
    return Result(
        case=case.name,
        title=case.title,
        point=dict(point),
        measurements=tuple(replace(Entry(each, each.form).measured(0), error=reason) for each in case.candidates),
        threads=threads,
        seed=seed,
    )
