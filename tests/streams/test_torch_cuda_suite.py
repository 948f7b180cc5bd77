"""Starts ``tests/torch_cuda``, which changes torch for its whole process, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from helpers.own_process import require_collected_alone, require_passed, run_suite

SUITE = Path(__file__).parents[1] / "torch_cuda"


@pytest.mark.parametrize("without_table", ["0", "1"], ids=["by the exchange table", "by capsules"])
def test_torch_tensors_on_the_simulated_device(without_table: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TENSORFERRY_NO_EXCHANGE_API", without_table)
    if torch.version.cuda is not None or torch.version.hip is not None:
        with pytest.raises(AssertionError, match="exit code 5"):  # nothing is collected: it needs a CPU build of torch
            run_suite(SUITE)
        return
    require_passed(SUITE, at_least=800)


def test_beside_other_tests_nothing_of_it_is_collected():
    require_collected_alone(SUITE, beside=__file__)
