"""Tests on a torch device of our own. Registering it is final, so they run in a process of their own:

    pytest tests/fallback

In any other run they are not collected; ``tests/python/test_fallback_suite.py`` starts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from helpers.own_process import is_alone

if TYPE_CHECKING:
    from helpers.remote_device import Remote

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect nothing beside other tests."""
    inside = HERE in (collection_path, *collection_path.parents)
    return True if inside and not is_alone(config, HERE) else None


@pytest.fixture(scope="session")
def registered() -> Remote:
    """The device, registered once."""
    from helpers.remote_device import install

    return install()


@pytest.fixture
def remote(registered: Remote) -> Iterator[Remote]:
    """The device in its ordinary state; no test leaves work behind."""
    registered.behave()
    yield registered
    left = len(registered.waiting)
    registered.behave()
    registered.synchronize()
    assert left == 0
