"""Chooses cases, measures them with a bar on stderr, keeps what there is when it is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tensorferry import _torch
from tensorferry._errors import ArgumentError, DeviceError
from tensorferry.bench import Case, Interrupted, Run, load_cases, select
from tensorferry.bench import _run as runner
from tensorferry.bench._report import require_matplotlib, write
from tensorferry.bench._summary import summarise
from tensorferry.bench._table import show
from tensorferry.cli._output import counted, emit_json, grid, progress, stdout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

__all__ = ["INTERRUPTED", "Options", "choose", "listing", "load", "measure", "show_listing"]

INTERRUPTED = 130
RESULTS, REPORT = "results.json", "report.html"


@dataclass(frozen=True)
class Options:
    """How to measure; as the options of the command."""

    quick: bool
    device: str
    threads: int | None
    rounds: int | None
    seed: int | None
    out: Path | None


def choose(names: Sequence[str], device: str, *, anywhere: bool = False) -> list[Case]:
    """Return the cases that are meant; a name or a device that does not exist is a usage error.

    `anywhere` those that cannot run on the device are meant, too.
    """
    if device not in ("cpu", "cuda"):
        raise typer.BadParameter(f"{device!r} is neither cpu nor cuda", param_hint="--device")
    if "compare" in names:
        raise typer.BadParameter("put compare right after bench", param_hint="CASE")
    try:
        chosen = select(load_cases(), names)
    except ArgumentError as error:
        raise typer.BadParameter(str(error), param_hint="CASE") from error
    here = [case for case in chosen if anywhere or device in case.devices]
    if not here:
        asked = ", ".join(names) or "the cases"
        others = " or ".join(sorted({other for case in chosen for other in case.devices}))
        raise typer.BadParameter(f"none of {asked} can run on {device}, only on {others}", param_hint="--device")
    return here


def load(path: Path) -> Run:
    """Read a results file; one that is none is an error of ours."""
    try:
        return Run.load(path)
    except OSError as error:
        raise ArgumentError(str(path), error.strerror or str(error), "check the path and your rights to it") from error


def measure(cases: Sequence[Case], options: Options, *, json: bool) -> int:
    """Measure, print, write the files; return the exit code.

    Whatever is missing is said before anything is measured.
    """
    _torch.require("tensorferry bench")
    _require_device(options.device)
    if options.out is not None:
        require_matplotlib(f"--out {options.out}")
        _make_folder(options.out)
    saved = options.out / RESULTS if options.out is not None else None
    try:
        with _bar() as advance:
            run = runner.run(
                cases,
                quick=options.quick,
                device=options.device,
                threads=options.threads,
                rounds=options.rounds,
                seed=options.seed,
                on_progress=advance,
                save_to=saved,
            )
    except Interrupted as stop:
        if stop.run is None:
            raise
        run = stop.run
    _tell(run, options.out, json)
    if not run.complete:
        return INTERRUPTED
    return 0 if summarise(run.results).ok else 1


def _require_device(device: str) -> None:
    if device == "cpu":
        return
    torch = _torch.require("--device cuda")
    if not torch.cuda.is_available():
        built = torch.version.cuda
        why = (
            "torch finds no GPU on this machine" if built else f"this torch ({torch.__version__}) is built without CUDA"
        )
        raise DeviceError(
            "--device cuda", why, "leave it out, or run where python -c 'import torch; torch.zeros(1).cuda()' works"
        )


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(
            f"--out {out}", error.strerror or str(error), "name a folder that can be written to"
        ) from error


def _tell(run: Run, out: Path | None, json: bool) -> None:
    if json:
        emit_json(run.to_json())
    elif run.results:
        show(run, stdout())
    if out is not None and run.results:
        write(run, out / REPORT)
        progress(f"Written: {out / RESULTS} and {out / REPORT}")
    if not run.complete:
        kept = f"they are in {out / RESULTS}" if out is not None else "none are saved, for want of --out"
        progress(f"Interrupted after {counted(len(run.results), 'result', 'results')}; {kept}.")


@contextmanager
def _bar() -> Iterator[Callable[[int, int, str], None]]:
    """Give a function that shows how far it is: a bar in a terminal, else a line for each case.

    The bar is redrawn between measurements only: a thread that redraws it would take part in them.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    last = ""

    def advance(done: int, total: int, name: str) -> None:
        nonlocal last
        if console.is_terminal:
            bar.update(task, completed=done, total=total, name=name)
            bar.refresh()
        elif name and name != last:
            progress(f"{done}/{total} {name}")
        last = name

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[name]}"))
    bar = Progress(*columns, console=console, auto_refresh=False, transient=True, disable=not console.is_terminal)
    with bar:
        task = bar.add_task("", total=None, name="")
        yield advance


def listing(cases: Sequence[Case]) -> dict[str, Any]:
    """Return the cases in plain values for JSON."""
    return {
        "cases": [
            {
                "name": case.name,
                "title": case.title,
                "points": [dict(point) for point in case.points_for(False)],
                "quick": [dict(point) for point in case.points_for(True)],
                "candidates": [one.label for one in case.candidates],
                "limit": case.limit,
                "goals": [goal.text for goal in case.goals],
                "devices": list(case.devices),
            }
            for case in cases
        ]
    }


def show_listing(cases: Sequence[Case], console: Console) -> None:
    """Print a line for each case."""
    table = grid("!case", "what it asks", "!>points", "!>quick", "!>goals", header=True)
    for case in cases:
        counts = (len(case.points_for(False)), len(case.points_for(True)), len(case.goals))
        where = "" if "cpu" in case.devices else f" (on {' or '.join(case.devices)})"
        table.add_row(case.name, case.title + where, *map(str, counts))
    console.print(table)
    points = sum(len(case.points_for(False)) for case in cases)
    console.print(f"{counted(len(cases), 'case', 'cases')}, {counted(points, 'point', 'points')} in a full run.")
