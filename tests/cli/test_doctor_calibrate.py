"""``tensorferry doctor`` on links: the figures in use, and measuring them, on the double of the driver."""

import json
import subprocess
import sys

import pytest

from helpers.console import run_outside
from helpers.fake_cuda_build import fake_cuda_library
from helpers.subprocess import run_python


@pytest.fixture
def fake_driver(tmp_path):
    """The environment of a process that sees the double of the driver, and a cache folder of its own."""
    return {
        "TENSORFERRY_LIBCUDA": str(fake_cuda_library()),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TENSORFERRY_CALIBRATION": "",
    }


def in_one_line(text):
    return " ".join(text.split())


def test_without_a_device_the_defaults_are_told(tmp_path):
    ran = run_outside("doctor", "--json", TENSORFERRY_LIBCUDA="/no/such/library", XDG_CACHE_HOME=str(tmp_path))
    assert ran.code == 0
    for link in ran.document["links"]:
        assert link["figures"]["source"] in ("default", "link")
        assert link["figures"]["rows_from_nbytes"] == 4096
        assert (link["measured"], link["kept"]) == ({}, "")


def test_the_text_tells_the_figures_and_where_they_come_from(tmp_path):
    ran = run_outside("doctor", TENSORFERRY_LIBCUDA="/no/such/library", XDG_CACHE_HOME=str(tmp_path))
    told = in_one_line(ran.stdout[ran.stdout.index("Links") : ran.stdout.index("What each call")])
    assert "GB/s to the host; stores up to" in told
    assert "default:" in told or "link:" in told


def test_a_simulated_link_is_measured_called_so_and_not_kept(fake_driver, tmp_path):
    ran = run_outside("doctor", "--calibrate", "--json", **fake_driver)
    assert (ran.code, ran.stderr) == (0, "")
    for link in ran.document["links"]:
        assert link["simulated"]
        assert link["device"].startswith("Simulated device")
        assert link["figures"]["source"].startswith("calibrated on 20")
        assert link["measured"]["to_host_nbytes_per_s"] == link["figures"]["to_host_nbytes_per_s"] > 0
        assert link["kept"] == ""
        assert "TENSORFERRY_CALIBRATION" in link["note"]
    assert not (tmp_path / "cache").exists()


def test_the_text_says_simulated(fake_driver):
    ran = run_outside("doctor", "--calibrate", **fake_driver)
    told = in_one_line(ran.stdout[ran.stdout.index("Links") : ran.stdout.index("What each call")])
    assert "simulated in" in told
    assert "not kept: a simulation" in told


def test_it_is_kept_in_a_folder_that_is_named(fake_driver, tmp_path):
    ran = run_outside(
        "doctor", "--calibrate", "--json", **{**fake_driver, "TENSORFERRY_CALIBRATION": str(tmp_path / "t")}
    )
    kept = {link["kept"] for link in ran.document["links"]}
    (path,) = (tmp_path / "t").glob("*.json")
    assert kept == {str(path)}
    entries = json.loads(path.read_text())["devices"].values()
    assert [entry["figures"] for entry in entries] == [link["figures"] for link in ran.document["links"]]


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"TENSORFERRY_CALIBRATION": "off"}, "TENSORFERRY_CALIBRATION=off"),
        ({"TENSORFERRY_LIBCUDA": "/no/such/library"}, "/no/such/library"),
        ({"TENSORFERRY_CALIBRATION": "/proc/self/folder"}, "cannot be kept"),
    ],
    ids=["is switched off", "has no driver", "has no place to keep it"],
)
def test_a_host_that_cannot_be_calibrated_is_a_finding(fake_driver, environment, said):
    ran = run_outside("doctor", "--calibrate", "--json", **{**fake_driver, **environment})
    assert (ran.code, ran.stderr) == (1, "")
    (finding,) = ran.document["findings"]
    assert said in f"{finding['given']}: {finding['why']}"
    assert all(link["measured"] == {} for link in ran.document["links"])


def test_while_another_process_calibrates_nothing_is_measured(fake_driver, tmp_path):
    folder = tmp_path / "named"
    hold = (
        "import os, sys; os.environ['TENSORFERRY_CALIBRATION'] = sys.argv[1]\n"
        "from tensorferry._device.calibration_file import calibration_file\n"
        "with calibration_file(simulated=True).locked():\n"
        "    print('locked', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", hold, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "locked\n"
        ran = run_outside("doctor", "--calibrate", "--json", **{**fake_driver, "TENSORFERRY_CALIBRATION": str(folder)})
        other.communicate("")
    assert ran.code == 1
    assert "another process" in ran.document["findings"][0]["why"]
    assert list(folder.glob("*.json")) == []


def test_without_calibrating_the_driver_is_not_initialised(fake_driver):
    told = run_python(
        f"import os; os.environ.update({fake_driver!r})\n"
        "from tensorferry._doctor import facts; from tensorferry._native import core\n"
        "facts.examine(); print(core.devices_in_use(), core.pinned_stats())"
    )
    assert told.stdout.strip() == "[] None"
