"""Which of several processes logs, and where: by torch.distributed where that is set up, else by the launcher."""

from __future__ import annotations

import os
import sys
from typing import Any

from tensorferry._errors import ArgumentError

__all__ = ["checked_ranks", "rank", "rank_suffix"]


def rank() -> tuple[int, int]:
    """Return this process's rank and how many processes there are; (0, 1) for a single one."""
    distributed: Any = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()), int(distributed.get_world_size())
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return 0, 1


def rank_suffix() -> str:
    """Return what keeps the files of several ranks apart; empty for a single process."""
    number, count = rank()
    return f".rank{number}" if count > 1 else ""


def checked_ranks(ranks: Any) -> int | None:
    """Return the only rank that logs, or None for all.

    Raises
    ------
    ArgumentError
        For anything but "all" and a number.
    """
    if ranks == "all":
        return None
    if isinstance(ranks, int) and not isinstance(ranks, bool) and ranks >= 0:
        return ranks
    raise ArgumentError(f"ranks={ranks!r}", "that names no rank", 'pass "all", or the rank that logs, such as 0')
