"""``report.html``: one page that needs no network, no script and no other file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tensorferry._errors import MissingDependencyError

if TYPE_CHECKING:
    from tensorferry.bench._record import Run

__all__ = ["require_matplotlib", "write"]


def require_matplotlib(what: str) -> None:
    """Raise a clear error where the pictures of `what` cannot be drawn."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            what,
            f"its pictures need matplotlib, which cannot be imported ({error})",
            "run pip install 'tensorferry[bench]'",
        ) from error


def write(run: Run, path: Path) -> None:
    """Write the page; a reader sees the old one or the new one, never half of it.

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    """
    require_matplotlib(path.name)
    from tensorferry.bench._report._page import page

    half = path.with_suffix(".part")
    half.write_text(page(run), encoding="utf-8")
    os.replace(half, path)
