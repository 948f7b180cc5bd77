"""The commands and their options; what they do lives elsewhere and is imported when a command runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import rich.table  # noqa: F401  (a missing rich is reported by the caller, before any command runs)
import typer

from tensorferry.cli import _export_app
from tensorferry.cli._bench_app import bench
from tensorferry.cli._output import emit_json, progress, with_clear_errors

__all__ = ["app"]

app = typer.Typer(
    help="Ferry tensors between PyTorch, or any DLPack producer, and NumPy.",
    epilog="Exit codes: 0 fine, 1 failure or findings, 2 wrong usage.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
demo = typer.Typer()
app.add_typer(demo, name="demo")
app.add_typer(bench, name="bench")
for command in (_export_app.export, _export_app.inspect, _export_app.verify):
    app.command()(command)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


def _finish(good: bool) -> None:
    raise typer.Exit(0 if good else 1)


def _show_version(asked: bool) -> None:
    if asked:
        import tensorferry

        print(f"tensorferry {tensorferry.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Ferry tensors between PyTorch, or any DLPack producer, and NumPy."""


@app.command()
def doctor(
    json: Json = False,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure the links to CUDA devices, and keep the figures.")
    ] = False,
) -> None:
    """Tell what is installed, which devices there seem to be, and what every path does here.

    No device is initialised, unless it calibrates.

    Exit code 1 when tensors and arrays do not convert both ways, or a link cannot be calibrated.
    """
    from tensorferry._doctor import facts as _doctor
    from tensorferry.cli import _doctor_view

    facts = _doctor.examine(calibrates=calibrate)
    if json:
        emit_json({"ok": not facts.findings, **dataclasses.asdict(facts)})
    else:
        _doctor_view.show(facts)
    _finish(not facts.findings)


@app.command()
def explain(
    file: Annotated[Path, typer.Argument(help="A .npy, .npz, .pt, .pth or .safetensors file.")],
    to: Annotated[str | None, typer.Option(help="numpy or torch; the other side than the file's, if left out.")] = None,
    tensor: Annotated[str | None, typer.Option(help="Walk the decision chart for the tensor of this name.")] = None,
    json: Json = False,
) -> None:
    """List the tensors of a file with what their conversion would do; no values are converted.

    A file with one tensor gets the whole decision chart.

    Exit code 1 when the file cannot be read, or a tensor cannot be converted.
    """
    from tensorferry.cli import _explain, _explain_view

    _explain.check_usage(file, to)
    found = with_clear_errors(lambda: _explain.examine(file, to, tensor))
    if json:
        emit_json(found.document())
    else:
        _explain_view.show(found)
    _finish(found.ok)


@demo.callback(invoke_without_command=True)
def demo_data(context: typer.Context, json: Json = False) -> None:
    """Convert real data, check every value, and time it against the usual idioms.

    Trains a small classifier on scikit-learn's digits, and turns two photographs into a batch and back.

    Takes under a minute and no network. Exit code 1 when any value differs from what plain torch and NumPy give.
    """
    if context.invoked_subcommand is not None:
        if json:
            raise typer.BadParameter(f"put it after {context.invoked_subcommand}", param_hint="--json")
        return
    from tensorferry import _demo
    from tensorferry.cli import _demo_view

    report = with_clear_errors(lambda: _demo.run(progress))
    if json:
        emit_json(report.document())
    else:
        _demo_view.show(report)
    _finish(report.ok)


@demo.command()
def traps(json: Json = False) -> None:
    """Show accidents of torch and NumPy live, and what tensorferry does instead.

    Those that kill the interpreter run in one of their own.

    Exit code 1 when tensorferry got one wrong.
    """
    from tensorferry._demo import _traps
    from tensorferry.cli import _traps_view

    found = with_clear_errors(lambda: _traps.run(progress))
    if json:
        emit_json(_traps.document(found))
    else:
        _traps_view.show(found)
    _finish(all(trap.ours.right for trap in found))


@demo.command()
def race(
    checkout: Annotated[
        Path | None, typer.Option(help="Where the project's sources are; found by itself in an editable installation.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many orders of the device's work to try.")] = 1000,
    json: Json = False,
) -> None:
    """Show a read that races with a copy, on a simulated device, and that tensorferry's do not.

    The device is a double of the NVIDIA driver. Its sources come with the project's tests and not with the package: the
    command needs a checkout, and a C++ compiler for the first run.

    Exit code 1 when tensorferry read a wrong value, or when a rule was switched off and nothing noticed.
    """
    from tensorferry._demo import _race
    from tensorferry.cli import _race_view

    if checkout is not None and not _race.is_checkout(checkout):
        raise typer.BadParameter(f"{checkout} is no checkout of tensorferry", param_hint="--checkout")
    report = with_clear_errors(lambda: _race.run(progress, checkout, seeds))
    if json:
        emit_json(_race.document(report))
    else:
        _race_view.show(report)
    _finish(not report.complaints())


@demo.command()
def crash(
    kills: Annotated[int, typer.Option(min=1, help="How often each way to save is killed.")] = 40,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the moments; else a random one.")] = None,
    json: Json = False,
) -> None:
    """Kill processes in the middle of a save, and count the files that nobody can read any more.

    torch.save writes to the file itself; tensorferry writes beside it, renames, and removes what a kill left there.

    Exit code 1 when a file of tensorferry was lost, or anything was left beside it.
    """
    from tensorferry._demo import _crash
    from tensorferry.cli import _crash_view

    report = with_clear_errors(lambda: _crash.run(progress, kills, seed=seed))
    if json:
        emit_json(_crash.document(report))
    else:
        _crash_view.show(report)
    _finish(report.ok)
