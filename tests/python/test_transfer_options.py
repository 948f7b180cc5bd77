"""What ``options`` says of transfers: limits of memory, and the internal thread's switch."""

from __future__ import annotations

import pytest

import tensorferry as ferry
from helpers.subprocess import stdout_of
from tensorferry._native import core
from tensorferry._transfer.background import background


def test_native_limits_set_before_a_device_is_used_are_kept():
    printed = stdout_of("""
        import tensorferry as ferry
        from tensorferry._native import core
        first = core.transfer_limits()
        ferry.options(ring_nbytes=1 << 20)
        with ferry.options(pinned_nbytes=5 << 20, staging_nbytes=3 << 20):
            print(sorted(value for name, value in core.transfer_limits().items() if name.endswith("_nbytes")))
        print(core.transfer_limits() == {**first, "ring_nbytes": 1 << 20})
    """)
    assert printed.splitlines() == [str([1 << 20, 3 << 20, 5 << 20]), "True"]


class LimitsDouble:
    """The native side's limits, by its names."""

    def __init__(self) -> None:
        self.held = {"results_nbytes": 300, "ring_nbytes": 200, "staging_nbytes": 100}

    def transfer_limits(self) -> dict[str, int]:
        return dict(self.held)

    def set_transfer_limits(self, **given: int) -> None:
        assert set(given) <= set(self.held)
        self.held.update(given)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> LimitsDouble:
    double = LimitsDouble()
    monkeypatch.setattr(core, "transfer_limits", double.transfer_limits, raising=False)
    monkeypatch.setattr(core, "set_transfer_limits", double.set_transfer_limits, raising=False)
    return double


NAMES = {"pinned_nbytes": "results_nbytes", "ring_nbytes": "ring_nbytes", "staging_nbytes": "staging_nbytes"}


@pytest.mark.parametrize(("name", "native"), NAMES.items(), ids=NAMES)
def test_limits_are_passed_on_and_brought_back(limits, name, native):
    before = dict(limits.held)
    with ferry.options(**{name: 4096}):
        assert limits.held == {**before, native: 4096}
        with ferry.options(**{name: 0}, background=False):
            assert limits.held == {**before, native: 0}
        assert limits.held == {**before, native: 4096}
    assert limits.held == before
    ferry.options(**{name: 8192})
    assert limits.held == {**before, native: 8192}


def test_the_switch_is_an_option_of_the_process():
    assert background.on
    with ferry.options(background=False):
        assert not background.on
        with ferry.options(background=True):
            assert background.on
        with ferry.options():
            assert not background.on
        assert not background.on
    assert background.on


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [-1, 1.5, "1 GiB", True, 1 << 70], ids=repr)
def test_what_is_no_number_of_bytes_is_refused(limits, name, value):
    before = dict(limits.held)
    with pytest.raises(ferry.ArgumentError, match=f"^{name}=.*no number of bytes"):
        ferry.options(**{name: value})
    assert limits.held == before


@pytest.mark.parametrize("value", [0, "no", 1.0], ids=repr)
def test_what_is_neither_on_nor_off_is_refused_before_anything_changes(limits, value):
    before, pool = dict(limits.held), ferry.pool_stats().limit_nbytes
    with pytest.raises(ferry.ArgumentError, match="background=True or False"):
        ferry.options(host_pool_nbytes=0, ring_nbytes=1, background=value)
    assert (limits.held, ferry.pool_stats().limit_nbytes, background.on) == (before, pool, True)
