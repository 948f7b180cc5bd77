"""Settings shared by all tests."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

settings.register_profile("ci", deadline=None, print_blob=True, database=None, derandomize=True, max_examples=200)
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=5000)
settings.load_profile("ci")

# A job that a shell runs in the background ignores it, and so would every test that interrupts itself, or a child.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Let no test fail or pass by being the first to meet ml_dtypes: that warning is given once per process."""
    config.addinivalue_line("filterwarnings", "ignore::tensorferry.ExtensionDTypeWarning")
