"""The file that calibrations are kept in: where it is, who may write it, and what happens where nobody can."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tensorferry as ferry
from tensorferry._device.calibration import Calibration, LinkKey
from tensorferry._device.calibration_file import CalibrationFile, calibration_file
from tensorferry._device.link_figures import LinkFigures

KEY = LinkKey("a device", "ab" * 16, "0000:01:00.0", "CUDA 12.4", "0.2.0", "unknown", -1)
FIGURES = LinkFigures("calibrated on 2026-01-31", 25e9, 125_000, 31_250, 16_384, 4096, 1 << 20)
MADE = Calibration(KEY, "2026-01-31", 0.0, FIGURES, {})

HOLDS_THE_LOCK = """
import sys
from pathlib import Path
from tensorferry._device.calibration_file import CalibrationFile
with CalibrationFile(Path(sys.argv[1])).locked():
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def file(tmp_path):
    return CalibrationFile(tmp_path / "new" / "link-host.json")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("TENSORFERRY_CALIBRATION", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_it_is_in_the_cache_folder_and_named_after_the_host(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = calibration_file(simulated=False).path
    assert path.parent == tmp_path / "tensorferry"
    assert path.name.startswith("link-")
    assert path.suffix == ".json"


@pytest.mark.parametrize("cache", ["", "relative"], ids=["unset", "relative"])
def test_without_a_cache_folder_it_is_in_the_home(monkeypatch, tmp_path, cache):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    assert calibration_file(simulated=False).path.parent == tmp_path / ".cache" / "tensorferry"


def test_off_means_that_there_is_none(monkeypatch):
    monkeypatch.setenv("TENSORFERRY_CALIBRATION", "off")
    assert calibration_file(simulated=False) is None
    assert calibration_file(simulated=True) is None


def test_of_simulated_devices_there_is_one_only_in_a_folder_that_was_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert calibration_file(simulated=True) is None
    monkeypatch.setenv("TENSORFERRY_CALIBRATION", str(tmp_path / "named"))
    assert calibration_file(simulated=True).path.parent == tmp_path / "named"


def test_an_absent_file_holds_nothing_and_is_no_problem(file):
    assert file.read() == ({}, "")


def test_calibrations_of_other_devices_stay_and_nothing_else_is_left(file):
    other = dataclasses.replace(MADE, key=dataclasses.replace(KEY, uuid="cd" * 16))
    with file.locked():
        file.write(MADE)
        file.write(other)
        file.write(MADE)
    assert file.read() == ({KEY.uuid: MADE, "cd" * 16: other}, "")
    assert sorted(one.name for one in file.path.parent.iterdir()) == ["link-host.json", "link-host.lock"]


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"{" * 10, b" " * ((1 << 20) + 1)], ids=["empty", "no text", "no JSON", "too long"]
)
def test_a_corrupted_file_holds_nothing_and_is_replaced(file, content):
    file.path.parent.mkdir()
    file.path.write_bytes(content)
    found, problem = file.read()
    assert found == {}
    assert str(file.path) in problem
    with file.locked():
        file.write(MADE)
    assert file.read() == ({KEY.uuid: MADE}, "")


def test_a_folder_in_its_place_is_a_problem_that_is_named(file):
    file.path.mkdir(parents=True)
    found, problem = file.read()
    assert found == {}
    assert str(file.path) in problem
    with file.locked(), pytest.raises(ferry.DeviceError, match="cannot be kept"):
        file.write(MADE)
    assert [one.suffix for one in file.path.parent.iterdir() if one.is_file()] == [".lock"]


def test_another_process_that_calibrates_is_not_disturbed(file):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS_THE_LOCK, str(file.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(ferry.DeviceError, match="another process is calibrating"), file.locked():
            pytest.fail("the lock is not exclusive")
        other.communicate("")
    with file.locked():
        file.write(MADE)


def test_the_lock_of_a_process_that_was_killed_is_free(file):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS_THE_LOCK, str(file.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "locked\n"
        other.kill()
        other.wait()
    with file.locked():
        file.write(MADE)
    assert file.read()[0] == {KEY.uuid: MADE}


def test_a_folder_that_cannot_be_written_to_is_named_before_anything_is_measured(tmp_path):
    if os.geteuid() == 0:
        folder = Path("/proc/self")  # which not even root can write to
    else:
        folder = tmp_path / "read-only"
        folder.mkdir(mode=0o500)
    file = CalibrationFile(folder / "tensorferry" / "link-host.json")
    with pytest.raises(ferry.DeviceError, match="XDG_CACHE_HOME") as caught, file.locked():
        pytest.fail("it was locked")
    assert str(folder) in str(caught.value)
