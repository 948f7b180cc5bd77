"""Starts ``tests/device``, where the product opens the simulated driver, in a process of its own."""

from __future__ import annotations

from pathlib import Path

from helpers.own_process import require_collected_alone, require_passed

SUITE = Path(__file__).parents[1] / "device"


def test_the_device_path_on_the_simulated_driver():
    require_passed(SUITE, at_least=2000, timeout_s=900)


def test_beside_other_tests_nothing_of_it_is_collected():
    require_collected_alone(SUITE, beside=__file__)
