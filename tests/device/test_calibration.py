"""Measuring the link to a simulated device: with what is there anyway, in order, and without leaving anything."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import kernels, seen
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import TableArray
from helpers.subprocess import stdout_of
from tensorferry._device.calibration import Calibration
from tensorferry._device.calibration_file import calibration_file
from tensorferry._device.link import key_of
from tensorferry._device.link_figures import LinkFigures
from tensorferry._doctor.links import calibrate
from tensorferry._native import core

pytestmark = pytest.mark.usefixtures("second_device")

TAKES_MEMORY = ("cuMemAlloc", "cuMemHostAlloc", "cuMemHostRegister", "cuStreamCreate", "cuDevicePrimaryCtxRetain")


@pytest.fixture
def second_device(fake: FakeCuda) -> None:
    """The second device is in use, too: a reset of the fake takes the reference that the product has."""
    fake.use_device(1)
    fake.use_device(0)


def test_every_schedule_gives_rates_and_times(any_schedule: FakeCuda):
    measured = core.measure_link(0)
    assert measured["to_host_nbytes_per_s"] > 0
    assert measured["to_device_nbytes_per_s"] > 0
    assert measured["steps"] >= 2
    assert all(by_copy > 0 for _, _, by_copy in measured["small"][: measured["steps"] - 2])
    assert [by_store for _, by_store, _ in measured["small"]] == [0, 0, 0]


def test_kernels_store_where_they_are_used(fake: FakeCuda):
    with kernels(), seen(fake) as made:
        measured = core.measure_link(0)
    assert measured["small"][0][1] > 0
    assert made.count("cuLaunchKernel") >= 2


def test_no_memory_is_taken_once_copies_have_theirs(fake: FakeCuda):
    core.measure_link(0)
    with seen(fake) as made:
        core.measure_link(0)
    assert [line for line in made.lines if line.startswith(TAKES_MEMORY)] == []


def test_all_copies_are_made_in_one_stream_of_ours(fake: FakeCuda):
    with seen(fake) as made:
        core.measure_link(0)
    assert len(made.streams) == 1
    assert not made.streams & {"legacy", "per-thread"}


def test_each_step_makes_two_attempts_at_least(fake: FakeCuda):
    with seen(fake) as made:
        measured = core.measure_link(0)
    copies = len(made.copies("DtoH")) + len(made.copies("HtoD")) + made.copies_of_rows
    assert copies >= 2 * measured["steps"]


@pytest.mark.parametrize("call", ["cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync", "cuEventRecord", "cuEventQuery"])
def test_a_failure_is_an_error_and_copies_go_on(fake: FakeCuda, call: str):
    fake.fault(call, 1, nth=2)
    with pytest.raises(ferry.DeviceError):
        core.measure_link(0)
    fake.clear_faults()
    x = np.arange(1000.0)
    assert np.array_equal(ferry.to_numpy(TableArray(x)), x)
    assert core.measure_link(0)["to_host_nbytes_per_s"] > 0


def test_of_a_simulated_device_nothing_is_kept_unasked(fake: FakeCuda, tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TENSORFERRY_CALIBRATION", raising=False)
    made = calibrate()
    assert [one.simulated for one in made] == [True, True]
    assert [one.kept for one in made] == ["", ""]
    assert all("simulation" in one.note for one in made)
    assert list(tmp_path.iterdir()) == []


def test_both_devices_are_kept_in_a_folder_that_was_named(fake: FakeCuda, tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("TENSORFERRY_CALIBRATION", str(tmp_path))
    made = calibrate()
    file = calibration_file(simulated=True)
    assert file is not None
    assert [one.kept for one in made] == [str(file.path)] * 2
    found, problem = file.read()
    assert problem == ""
    assert [one.figures for one in found.values()] == [one.figures for one in made]
    assert all(one.figures.source == f"calibrated on {one.date}" for one in found.values())


def test_figures_of_a_process_stay_as_they_are(fake: FakeCuda, tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("TENSORFERRY_CALIBRATION", str(tmp_path))
    before = ferry.plan(TableArray(np.zeros(100))).link
    calibrate()
    after = ferry.plan(TableArray(np.zeros(100))).link
    assert after == before
    assert before is not None
    assert before.source in ("default", "link")


IN_A_NEW_PROCESS = """
import numpy as np
import tensorferry as ferry
from helpers.device_path import fresh
from helpers.fake_cuda_arrays import TableArray
from tensorferry._native import core
fake = fresh()
core.set_transfer_limits(kernels=True)
x = TableArray(np.arange(2500.0))
for _ in range(3):
    assert np.array_equal(ferry.to_numpy(x), np.arange(2500.0))
made = ferry.plan(x)
print(made.path, made.link.stores_of_blocks_nbytes, made.link.source)
print(ferry.explain(x).steps[1].consequence)
"""


def keep(folder: Path, monkeypatch: Any, **changed: str) -> None:
    """Keep a calibration of the first simulated device, by which blocks of 20,000 bytes are stored."""
    monkeypatch.setenv("TENSORFERRY_CALIBRATION", str(folder))
    key, rate = key_of(0)
    figures = LinkFigures("calibrated on 2026-01-31", 25e9, 125_000, 31_250, 20_000, 4096, 1 << 20)
    file = calibration_file(simulated=True)
    assert file is not None
    with file.locked():
        file.write(Calibration(dataclasses.replace(key, **changed), "2026-01-31", rate, figures, {}))


def in_a_new_process() -> list[str]:
    return stdout_of(IN_A_NEW_PROCESS).splitlines()


def test_a_new_process_uses_what_was_kept_and_plans_say_so(fake: FakeCuda, tmp_path: Path, monkeypatch: Any):
    keep(tmp_path, monkeypatch)
    told, explained = in_a_new_process()
    assert told == "store 20000 calibrated on 2026-01-31"
    assert "calibrated on 2026-01-31" in explained


@pytest.mark.parametrize("changed", [{"version": "0.0.1"}, {"driver": "CUDA 11.8"}, {"device": "another"}], ids=str)
def test_a_calibration_with_another_key_is_not_used(
    fake: FakeCuda, tmp_path: Path, monkeypatch: Any, changed: dict[str, str]
):
    keep(tmp_path, monkeypatch, **changed)
    assert in_a_new_process()[0].split()[:2] == ["dma", "16384"]


def test_off_ignores_it(fake: FakeCuda, tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep(tmp_path / "tensorferry", monkeypatch)
    monkeypatch.setenv("TENSORFERRY_CALIBRATION", "off")
    assert in_a_new_process()[0].split()[:2] == ["dma", "16384"]


def test_a_corrupted_file_is_as_none(fake: FakeCuda, tmp_path: Path, monkeypatch: Any):
    keep(tmp_path, monkeypatch)
    file = calibration_file(simulated=True)
    assert file is not None
    file.path.write_bytes(file.path.read_bytes()[:100])
    assert in_a_new_process()[0].split()[:2] == ["dma", "16384"]
