"""The console command ``tensorferry``: exit code 0 for fine, 1 for failures and findings, 2 for wrong usage."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tensorferry._errors import MissingDependencyError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the console command.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the command's name; ``sys.argv[1:]`` when left out.

    Returns
    -------
    int
        1, when Typer or rich cannot be imported.

    Raises
    ------
    SystemExit
        With the exit code, when the command has run.
    """
    try:
        from tensorferry.cli._app import app
    except ImportError as error:
        package = (error.name or "tensorferry").partition(".")[0]
        if package == "tensorferry":
            raise
        missing = MissingDependencyError(
            "the command tensorferry",
            f"it needs Typer and rich, and {package} cannot be imported",
            f"run {sys.executable} -m pip install typer rich",
        )
        print(f"tensorferry: {missing}", file=sys.stderr)
        return 1
    app(args=None if arguments is None else list(arguments), prog_name="tensorferry")
    return 0
