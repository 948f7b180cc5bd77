"""What reaches a file from a device: the values at the call, in whatever order the device works."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import allow_abandoned, fresh, until
from helpers.fake_cuda import LEGACY, FakeCuda
from helpers.fake_cuda_arrays import TableArray
from helpers.fake_cuda_driver import Driver
from helpers.orders import orders

NAMES = ("x.npz", "x.safetensors")


@pytest.fixture
def driver(fake: FakeCuda) -> Driver:
    return Driver()


def _current(stream: int) -> None:
    """Let the exchange table answer with this stream, with NULL for the legacy one as torch does."""
    TableArray.current_stream = None if stream == LEGACY else stream


@pytest.mark.parametrize("name", NAMES)
def test_what_was_put_may_be_overwritten_at_once(fake: FakeCuda, driver: Driver, tmp_path: Path, name: str):
    streams = [LEGACY, driver.stream(), driver.stream(blocking=True)]
    for number, order in enumerate(orders(fake, seeds=100)):
        stream = streams[number % 3]
        _current(stream)
        x = TableArray(np.zeros(6, np.int32), stream=stream)
        with ferry.Writer(tmp_path / name, overwrite=True) as writer:
            for step in range(4):
                x.write_later(np.arange(6) + step)
                writer.put(f"t{step}", x)
                x.write_later(np.full(6, -1))
        found = ferry.load(tmp_path / name, mmap=False)
        assert [found[f"t{step}"].tolist() for step in range(4)] == [
            list(range(step, step + 6)) for step in range(4)
        ], order
        assert fake.violations() == [], order


def test_rows_that_were_appended_may_be_overwritten_at_once(fake: FakeCuda, driver: Driver, tmp_path: Path):
    side = driver.stream()
    for number, order in enumerate(orders(fake, seeds=100)):
        stream = (LEGACY, side)[number % 2]
        _current(stream)
        x = TableArray(np.zeros((2, 3), np.float32), stream=stream)
        with ferry.Writer(tmp_path / "x.npy", overwrite=True, max_staging_bytes="64KiB") as writer:
            for step in range(5):
                x.write_later(np.full((2, 3), step))
                writer.append(x)
                x.write_later(np.full((2, 3), -1))
        assert np.load(tmp_path / "x.npy")[::2, 0].tolist() == [0, 1, 2, 3, 4], order
        assert fake.violations() == [], order


def test_put_does_not_wait_for_the_device(fake: FakeCuda, tmp_path: Path):
    x = TableArray(np.zeros(6, np.int32))
    ferry.to_numpy_async(x).result()
    writer = ferry.Writer(tmp_path / "x.npz")
    with fake.held():
        x.write_later(np.arange(6))
        writer.put("x", x)
        x.write_later(np.full(6, -1))
    writer.close()
    assert np.load(tmp_path / "x.npz")["x"].tolist() == [0, 1, 2, 3, 4, 5]


def test_a_tensor_larger_than_the_staging_memory_arrives_in_pieces(any_schedule: FakeCuda, tmp_path: Path):
    values = np.arange(100_000, dtype=np.int64).reshape(1000, 100)
    x = TableArray(values.copy())
    with ferry.Writer(tmp_path / "x.npz", max_staging_bytes="128KiB") as writer:
        writer.put("x", x)
        x.write_later(np.zeros((1000, 100), np.int64))
    assert np.array_equal(np.load(tmp_path / "x.npz")["x"], values)
    assert writer._thread._pool.most_in_use <= 64 << 10


def given_what_fails(fake: FakeCuda, tmp_path: Path) -> ferry.Writer:
    x = TableArray(np.zeros(4, np.float32))
    allow_abandoned(1)
    writer = ferry.Writer(tmp_path / "x.npz")
    with fake.held():
        x.write_later([1, 2, 3, 4])
        writer.put("x", x)
        fake.fault("execution", 700, 0)
    return writer


def test_an_error_of_the_device_removes_the_file_and_is_raised(fake: FakeCuda, tmp_path: Path):
    writer = given_what_fails(fake, tmp_path)
    with pytest.raises(ferry.DeviceError):
        writer.close()
    assert list(tmp_path.iterdir()) == []
    fresh()


def test_saving_in_the_background_stages_such_arrays_before_it_returns(any_schedule: FakeCuda, tmp_path: Path):
    sources: dict[str, Any] = {f"t{i}": TableArray(np.zeros(6, np.int32)) for i in range(5)}
    for number, x in enumerate(sources.values()):
        x.write_later(np.full(6, number))
    handle = ferry.save_async(sources, tmp_path / "x.npz")
    for x in sources.values():
        x.write_later(np.full(6, -1))
    assert handle.staged.done()
    handle.result(60)
    assert [int(np.load(tmp_path / "x.npz")[name][0]) for name in sources] == [0, 1, 2, 3, 4]


def test_closing_after_an_error_that_an_earlier_call_told_removes_the_file_too(fake: FakeCuda, tmp_path: Path):
    writer, names = given_what_fails(fake, tmp_path), count()

    def told() -> bool:
        try:
            writer.put(f"y{next(names)}", np.zeros(1))
        except ferry.DeviceError:
            return True
        return False

    assert until(told)
    with pytest.raises(ferry.DeviceError):
        writer.close()
    assert list(tmp_path.iterdir()) == []
    fresh()
