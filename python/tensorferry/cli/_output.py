"""Results go to stdout, progress and errors to stderr; ``--json`` turns the result into one JSON document."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from tensorferry._errors import FerryError
from tensorferry._units import counted, human_bytes, human_seconds

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = [
    "counted",
    "emit_json",
    "grid",
    "heading",
    "human_bytes",
    "human_seconds",
    "progress",
    "stdout",
    "verdict",
    "with_clear_errors",
]

T = TypeVar("T")


def stdout() -> Console:
    """Return a console for results. Brackets mean nothing in it: shapes and indices are full of them."""
    from rich.console import Console

    return Console(file=sys.stdout, markup=False, emoji=False, highlight=False)


def progress(text: str) -> None:
    """Say on stderr what is going on."""
    print(text, file=sys.stderr, flush=True)


def emit_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document."""
    print(json.dumps(document, indent=2, ensure_ascii=False))


def with_clear_errors(run: Callable[[], T]) -> T:
    """Call `run`; turn an error of ours into its one line on stderr and exit code 1."""
    import typer

    try:
        return run()
    except FerryError as error:
        progress(f"tensorferry: {error}")
        raise typer.Exit(1) from error


def grid(*columns: str, header: bool = False) -> Table:
    """Return an open table.

    Each column is named by its header text, preceded by ">" to align it right, "!" to keep it on one line, or both.
    """
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD if header else None,
        show_header=header,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1 if header else 2, 0, 0),
    )
    for column in columns:
        table.add_column(
            column.lstrip(">!"),
            justify="right" if ">" in column[:2] else "left",
            no_wrap="!" in column[:2],
            overflow="fold",
        )
    return table


def heading(text: str) -> Text:
    """Return a section's title."""
    from rich.text import Text

    return Text(text, style="bold")


def verdict(good: bool, yes: str = "ok", no: str = "FAILED") -> Text:
    """Return one coloured word."""
    from rich.text import Text

    return Text(yes if good else no, style="green" if good else "bold red")
