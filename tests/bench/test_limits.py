"""The physical limits really move the bytes that they say."""

from __future__ import annotations

import os

import numpy as np
import pytest

import tensorferry as ferry
from tensorferry._native import core
from tensorferry.bench import LIMITS, _limits, compare, make_limit

HOST = ["memcpy", "non-temporal copy", "read", "write to disk"]


def test_every_limit_has_a_name():
    assert list(LIMITS) == [*HOST, "d2h", "h2d"]


@pytest.mark.parametrize("name", HOST)
@pytest.mark.parametrize("nbytes", [2, 4096, 1_000_000])
def test_a_limit_says_how_many_bytes_it_moves(name, nbytes, tmp_path):
    limit = make_limit(name, nbytes, 1, tmp_path)
    limit.once()
    assert limit.loop(2) > 0
    limit.finish()
    assert nbytes <= limit.nbytes < nbytes + 8
    assert limit.label == name


@pytest.mark.parametrize(("name", "non_temporal"), [("memcpy", False), ("non-temporal copy", True)])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_copy_moves_half_of_the_bytes_from_one_array_to_another(name, non_temporal, threads, monkeypatch):
    calls = []

    class Watched:
        @staticmethod
        def raw_copy(destination, source, *options):
            before = source.copy()
            assert not np.array_equal(destination, source)
            core.raw_copy(destination, source, *options)
            calls.append((destination.nbytes, options, np.array_equal(destination, before)))

    monkeypatch.setattr(_limits, "core", Watched)
    make_limit(name, 1 << 20, threads).once()
    assert calls == [(1 << 19, (non_temporal, threads), True)]


def test_a_small_copy_moves_every_byte_too(monkeypatch):
    memory = np.arange(1000, dtype=np.uint16).view(np.uint8)
    monkeypatch.setattr(_limits, "_random_bytes", lambda count: memory[:count])
    written = []
    monkeypatch.setattr(_limits.operator, "setitem", lambda to, where, what: written.append((to, where, what)))
    make_limit("memcpy", 4000, 1).once()
    ((to, where, what),) = written
    assert bytes(to) != bytes(memory)
    to[where] = what
    assert bytes(to) == bytes(memory)


def test_reading_looks_at_every_byte(monkeypatch):
    source = np.zeros(4 << 20, np.uint8)
    monkeypatch.setattr(_limits, "_random_bytes", lambda count: source[:count])
    limits = [make_limit("read", 4 << 20, threads) for threads in (1, 2)]
    assert [limit.code for limit in limits] == ["uint32 array.max()", "int64 tensor.sum()"]
    assert [int(limit.once()) for limit in limits] == [0, 0]
    for place in (0, 12_345, (4 << 20) - 1):
        source[place] = 1
        assert all(int(limit.once()) > 0 for limit in limits)
        source[place] = 0


@pytest.mark.parametrize("nbytes", [1000, (40 << 20) + 1], ids=["less than a block", "some blocks and a byte"])
def test_a_file_of_the_stated_size_is_written_and_removed(nbytes, tmp_path):
    limit = make_limit("write to disk", nbytes, 1, tmp_path)
    for _ in range(2):
        limit.once()
        (written,) = tmp_path.iterdir()
        assert written.stat().st_size == nbytes
    assert written.read_bytes()[:1000] != bytes(1000)
    limit.finish()
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_removed_when_the_comparison_ends(tmp_path):
    seen = set()
    result = compare(
        {"look": lambda inputs: seen.update(os.listdir(tmp_path))},
        setup=lambda rng: {"x": rng.random(10)},
        check=lambda result, inputs: None,
        nbytes=1 << 16,
        limit="write to disk",
        folder=tmp_path,
        rounds=2,
    )
    assert len(seen) == 1
    assert list(tmp_path.iterdir()) == []
    assert len(result.limit.samples_s) == 2
    assert result.limit.error is None


def test_a_limit_that_fails_is_told_and_the_rest_goes_on(tmp_path, monkeypatch):
    def full(file, block):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    result = compare(
        {"a": "x.sum()"}, setup=lambda rng: {"x": rng.random(10)}, nbytes=64, limit="write to disk", rounds=2
    )
    assert "No space left" in result.limit.error
    assert len(result.ours.samples_s) == 2


@pytest.mark.parametrize(
    ("name", "nbytes", "given"), [("light", 8, "'light'"), ("memcpy", 0, "nbytes=0"), ("read", 1, "nbytes=1")]
)
def test_what_is_no_limit_is_refused(name, nbytes, given):
    with pytest.raises(ferry.ArgumentError) as refusal:
        make_limit(name, nbytes, 1)
    assert given in refusal.value.given
