"""Prints plans and reports of exports, and what files hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.text import Text

from tensorferry._io.inspect import DTypeSum, Inspection, StoredTensor
from tensorferry._io.report import SaveReport
from tensorferry._io.verify import Verification
from tensorferry.cli._export import Job, Row
from tensorferry.cli._output import counted, grid, heading, human_bytes, human_seconds, stdout, verdict

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["show_inspection", "show_plan", "show_report", "show_verification"]

_NAMED = 3


def show_plan(job: Job, rows: list[Row]) -> None:
    """Print one line per tensor, and the sums."""
    console = stdout()
    console.print(heading("Plan:"), f"{job.source.path} ({job.source.format}) to {job.arguments.target} ({job.format})")
    table = grid("tensor", "!dtype", "!shape", "!>bytes", "how", header=True)
    for row in rows:
        dtype = row.dtype if row.dtype == row.written_dtype else f"{row.dtype} -> {row.written_dtype}"
        table.add_row(row.name, dtype, _shape(row.shape), f"{row.nbytes:,}", row.how)
    console.print(table)
    total = human_bytes(sum(row.nbytes for row in rows))
    console.print(f"{counted(len(rows), 'tensor', 'tensors')}, {total}; nothing was written")
    _show_left_out(console, job)


def show_report(job: Job, report: SaveReport) -> None:
    """Print what was written, and how."""
    console = stdout()
    paths = report.paths if len(report.paths) <= _NAMED + 1 else (*report.paths[:_NAMED], "...")
    console.print(verdict(True, "written"), ", ".join(paths))
    tensors = counted(report.tensors, "tensor", "tensors")
    ties = f" ({report.aliases:,} tied, written once)" if report.aliases else ""
    rate = f"{human_bytes(report.nbytes_per_second)}/s"
    console.print(
        f"{tensors}{ties}, {human_bytes(report.file_nbytes)} in {human_seconds(report.seconds)}, {rate}, "
        f"{report.io}: {report.io_reason}"
    )
    kept = "on the disk" if report.durable else "the system brings it to the disk when it likes (--durable waits)"
    sums = "crc32c of each tensor" if report.checksum else "no checksums (--checksum)"
    console.print(f"{kept}; {sums}")
    _show_left_out(console, job)


def _show_left_out(console: Console, job: Job) -> None:
    if job.filtered_out:
        console.print(f"{counted(job.filtered_out, 'tensor', 'tensors')} not asked for")
    if job.source.left_out:
        names = ", ".join(job.source.left_out[:_NAMED]) + (", ..." if len(job.source.left_out) > _NAMED else "")
        values = counted(len(job.source.left_out), "value that is no tensor", "values that are no tensors")
        console.print(Text(f"left out: {values}: {names}", style="yellow"))


def show_inspection(found: Inspection) -> None:
    """Print one line per tensor, the sums of each dtype, and the metadata."""
    console = stdout()
    console.print(heading(found.path), found.format)
    if not found.tensors:
        console.print("no tensors in it")
        return
    sums = any(tensor.checksum for tensor in found.tensors)
    several = len({tensor.file for tensor in found.tensors}) > 1 and found.format != "folder"
    columns = ["tensor", "!dtype", "!shape", "!>bytes"] + ["!crc32c"] * sums + ["!shard"] * several
    table = grid(*columns, header=True)
    for tensor in found.tensors:
        cells = _cells(tensor) + [tensor.checksum or ""] * sums + [_shard(tensor.file)] * several
        table.add_row(*cells)
    console.print(table)
    console.print()
    totals = grid("!dtype", "!>tensors", "!>elements", "!>bytes", "!>", header=True)
    for dtype, total in found.by_dtype.items():
        totals.add_row(dtype, *_figures(total))
    if len(found.by_dtype) > 1:
        whole = list(found.by_dtype.values())
        totals.add_row("all", *_figures(DTypeSum(*(sum(each) for each in zip(*map(_as_row, whole), strict=True)))))
    console.print(totals)
    if found.metadata:
        console.print()
        facts = grid("!key", "value", header=True)
        for key, value in found.metadata.items():
            facts.add_row(key, value)
        console.print(facts)


def _cells(tensor: StoredTensor) -> list[str]:
    nbytes = f"{tensor.nbytes:,}" if tensor.alias_of is None else "tied"
    name = tensor.name or "(the array)"
    return [
        name if tensor.alias_of is None else f"{name} = {tensor.alias_of}",
        tensor.dtype,
        _shape(tensor.shape),
        nbytes,
    ]


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _shard(file: str) -> str:
    numbered = re.search(r"-0*(\d+)-of-\d+\.safetensors$", file)
    return numbered[1] if numbered else file


def _as_row(total: DTypeSum) -> tuple[int, int, int]:
    return total.tensors, total.elements, total.nbytes


def _figures(total: DTypeSum) -> tuple[str, str, str, str]:
    return f"{total.tensors:,}", f"{total.elements:,}", f"{total.nbytes:,}", human_bytes(total.nbytes)


def show_verification(found: Verification) -> None:
    """Print what was checked."""
    console = stdout()
    text = str(found).removeprefix(f"{found.path}: whole, ")
    console.print(verdict(True, "whole"), found.path)
    console.print(f"{found.format}, {text}")
    if not found.checked and not found.archive_checked:
        console.print('Only its structure could be checked: write with checksum="crc32c", or --checksum, to get more.')
