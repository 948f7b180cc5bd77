"""``tensorferry export``, ``inspect`` and ``verify``: their options."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from tensorferry.cli._output import emit_json, with_clear_errors

if TYPE_CHECKING:
    from tensorferry._io.inspect import Inspection
    from tensorferry._io.report import SaveReport
    from tensorferry.cli._export import Job

__all__ = ["export", "inspect", "verify"]

T = TypeVar("T")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
_ANY = "A .safetensors file (also in shards, or their index), .npy, .npz, or a folder that tensorferry wrote."


def export(
    source: Annotated[str, typer.Argument(metavar="SRC", help=f"A .pt or .pth file. {_ANY}")],
    target: Annotated[str, typer.Argument(metavar="DST", help="Its end says the format; / stands for a folder.")],
    include: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Names to export, such as 'encoder.*'; may be repeated.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Names to leave out; may be repeated.")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(help="Convert floating and complex tensors, for example to bfloat16.")
    ] = None,
    format: Annotated[str | None, typer.Option(help="The format, where the end of DST does not say it.")] = None,
    max_shard_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Split a .safetensors file into shards, such as 5GB.")
    ] = None,
    checksum: Annotated[bool, typer.Option("--checksum", help="Note a crc32c of each tensor, for verify.")] = False,
    durable: Annotated[bool, typer.Option("--durable", help="Wait until everything is on the disk.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is at DST, in one step.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and write nothing.")] = False,
    json: Json = False,
) -> None:
    """Write the tensors of a file as another format: whole, or nothing appears.

    No code from the source is run: of .pt and .pth files only weights are read.

    Exit code 1 when the source cannot be read, or the target cannot be written.
    """
    from tensorferry.cli import _export, _export_view

    arguments = _export.Arguments(
        source, target, tuple(include or ()), tuple(exclude or ()), format, dtype, checksum, durable, overwrite,
        max_shard_size,
    )  # fmt: skip
    job = _run(lambda: _export.prepared(arguments))
    rows = _run(lambda: _export.planned(job)) if dry_run else None
    report = None if dry_run else _run(lambda: _write(job))
    if json:
        emit_json(_export.document(job, report, rows))
    elif rows is not None:
        _export_view.show_plan(job, rows)
    elif report is not None:
        _export_view.show_report(job, report)


def _run(action: Callable[[], T]) -> T:
    """Call; arguments that do not fit are wrong usage, every other error of ours a failure."""
    from tensorferry._errors import ArgumentError

    def guarded() -> T:
        try:
            return action()
        except ArgumentError as error:
            raise typer.BadParameter(str(error)) from error

    return with_clear_errors(guarded)


def _write(job: Job) -> SaveReport:
    from tensorferry.cli import _export, _export_progress

    with _export_progress.shown(job.nbytes) as progress:
        return _export.carry_out(job, progress)


def inspect(
    path: Annotated[str, typer.Argument(help=f"{_ANY} Or a .pt or .pth file.")],
    json: Json = False,
) -> None:
    """Tell what a file holds: names, dtypes, shapes, bytes, checksums, and sums; no values are read.

    Exit code 1 when it is not there, or damaged.
    """
    from tensorferry.cli import _export_source, _export_view

    found = _run(lambda: _export_source.inspected(path))
    if json:
        emit_json({**dataclasses.asdict(found), "nbytes": found.nbytes, "by_dtype": _sums(found)})
    else:
        _export_view.show_inspection(found)


def _sums(found: Inspection) -> dict[str, object]:
    return {dtype: dataclasses.asdict(total) for dtype, total in found.by_dtype.items()}


def verify(path: Annotated[str, typer.Argument(help=_ANY)], json: Json = False) -> None:
    """Check that a file is whole, and that its values have the checksums that were noted.

    Exit code 1 when anything does not fit.
    """
    from tensorferry._io.verify import verify as checked
    from tensorferry.cli import _export_view

    found = _run(lambda: checked(path))
    if json:
        emit_json({"ok": True, **dataclasses.asdict(found)})
    else:
        _export_view.show_verification(found)
