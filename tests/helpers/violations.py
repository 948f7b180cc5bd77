"""What ``check`` finds wrong."""

from __future__ import annotations

from typing import Any

import pytest

import tensorferry as ferry
from tensorferry._check.check import check


def violations(x: Any, **requirements: Any) -> tuple[str, ...]:
    """Return the violations of the error that ``check`` must raise."""
    with pytest.raises(ferry.CheckError) as caught:
        check(x, **requirements)
    return caught.value.violations
