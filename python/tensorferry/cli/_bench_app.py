"""``tensorferry bench``: its options. A first word that is no command of its own is the name of a case."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from tensorferry.cli._output import emit_json, stdout, with_clear_errors

__all__ = ["bench"]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


class _CasesFirst(typer.core.TyperGroup):
    """Takes whatever does not begin with a command's name for the arguments of `run`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # Any: typer's context is click's own in some versions, and a copy of it in others
        return super().parse_args(ctx, args if args and args[0] in self.commands else ["run", *args])


bench = typer.Typer(cls=_CasesFirst, help="Time our calls beside their peers and the physical limit; compare two runs.")


@bench.command(
    epilog="The word run may be left out. To compare two runs: tensorferry bench compare BEFORE.json AFTER.json"
)
def run(
    cases: Annotated[
        list[str] | None, typer.Argument(metavar="[CASE]...", help="Names from --list, or their first word; else all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points and rounds: under two minutes.")] = False,
    device: Annotated[str, typer.Option(metavar="cpu|cuda", help="Where the tensors lie.")] = "cpu",
    threads: Annotated[int | None, typer.Option(min=1, help="Threads for every candidate.")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds of each point.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="What the inputs are made from; else a random one.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder for results.json and report.html.", file_okay=False)
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the cases and measure nothing.")] = False,
    json: Json = False,
) -> None:
    """Time our calls beside their peers and the physical limit, and check every value.

    Ctrl-C keeps what was measured so far.

    Exit code 1 when a candidate of ours raises or gives a wrong value; never because of a time.
    """
    from tensorferry.cli import _bench

    chosen = with_clear_errors(lambda: _bench.choose(cases or [], device, anywhere=listing))
    if listing:
        if json:
            emit_json(_bench.listing(chosen))
        else:
            _bench.show_listing(chosen, stdout())
        return
    options = _bench.Options(quick=quick, device=device, threads=threads, rounds=rounds, seed=seed, out=out)
    code = with_clear_errors(lambda: _bench.measure(chosen, options, json=json))
    raise typer.Exit(code)


@bench.command()
def compare(
    before: Annotated[Path, typer.Argument(metavar="BEFORE.json", exists=True, dir_okay=False)],
    after: Annotated[Path, typer.Argument(metavar="AFTER.json", exists=True, dir_okay=False)],
    json: Json = False,
) -> None:
    """Tell what got slower between two results files.

    Our ratios to the best peer and to the limit are compared, never bare times: those of two runs mean nothing.

    Exit code 1 when something got slower, or a candidate of ours began to fail.
    """
    from tensorferry.bench import _regress
    from tensorferry.cli import _bench

    found = _regress.regression(
        with_clear_errors(lambda: _bench.load(before)), with_clear_errors(lambda: _bench.load(after))
    )
    if json:
        emit_json(found.document())
    else:
        _regress.show(found, stdout())
    raise typer.Exit(0 if found.ok else 1)
