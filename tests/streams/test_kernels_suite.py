"""Starts ``tests/kernels`` in a process of its own."""

from __future__ import annotations

from pathlib import Path

from helpers.own_process import require_collected_alone, require_passed

SUITE = Path(__file__).parents[1] / "kernels"


def test_every_kernel_on_the_simulated_device():
    require_passed(SUITE, at_least=600, timeout_s=900)


def test_beside_other_tests_nothing_of_it_is_collected():
    require_collected_alone(SUITE, beside=__file__)
