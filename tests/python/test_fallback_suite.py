"""Starts ``tests/fallback``, which registers a torch device for good, in a process of its own."""

from __future__ import annotations

from pathlib import Path

from helpers.own_process import require_passed

SUITE = Path(__file__).parents[1] / "fallback"


def test_every_test_on_the_device_passes_and_none_is_skipped() -> None:
    require_passed(SUITE, at_least=5001)
