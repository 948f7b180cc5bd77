"""What ``tensorferry doctor`` says of the device kernels, and without which driver or toolkit."""

import re

import pytest

from helpers.console import run_outside
from helpers.fake_cuda_build import fake_cuda_library
from tensorferry._doctor.kernels import kernels
from tensorferry._native import core


def told(**environment):
    ran = run_outside("doctor", "--json", **environment)
    assert ran.stderr == ""
    return ran.document["kernels"]


def test_a_build_tells_what_its_kernels_were_made_by_and_for():
    found = kernels()
    facts = core.kernel_facts()
    assert bool(found.architectures) == facts["embedded"] == bool(found.toolkit) == (found.source == "embedded")
    assert all(re.fullmatch(r"\d+\.\d", capability) for capability in (*found.architectures, *found.compiled_for))
    assert set(found.compiled_for) <= set(found.architectures)
    if facts["embedded"]:
        major = int(found.toolkit.split(".")[0])
        assert found.needs == (f"CUDA {major}.0 (driver {580 if major >= 13 else 525} or newer)")
    else:
        assert "built" in found.reason


def test_without_a_driver_the_reason_names_its_library():
    found = told(TENSORFERRY_LIBCUDA="/no/such/library")
    assert not found["usable"]
    assert "/no/such/library" in found["reason"] or "built" in found["reason"]


def test_with_a_driver_and_an_image_nothing_speaks_against_them(tmp_path):
    image = tmp_path / "kernels.fatbin"
    image.write_bytes(b"FAKE")
    found = told(TENSORFERRY_LIBCUDA=str(fake_cuda_library()), TENSORFERRY_KERNEL_IMAGE=str(image))
    assert (found["source"], found["usable"], found["reason"]) == (str(image), True, "")


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "cannot be read"), (b"\x50\xed\x55\xba\x01\x00\x10\x00" + b"\xff" * 7 + b"\x00", "cut short")],
    ids=["that is missing", "that is cut short"],
)
def test_an_image_that_cannot_be_used_is_named(tmp_path, content, reason):
    image = tmp_path / "kernels.fatbin"
    if content is not None:
        image.write_bytes(content)
    found = told(TENSORFERRY_LIBCUDA=str(fake_cuda_library()), TENSORFERRY_KERNEL_IMAGE=str(image))
    assert not found["usable"]
    assert reason in found["reason"]


@pytest.mark.parametrize("library", ["/no/such/library", "a driver"])
def test_the_report_says_what_is_there_and_what_happens_without(library):
    where = str(fake_cuda_library()) if library == "a driver" else library
    ran = run_outside("doctor", TENSORFERRY_LIBCUDA=where)
    line = " ".join(ran.stdout[ran.stdout.index("device kernels") : ran.stdout.index("Devices")].split())
    assert "built" in line
    assert ("library packs" in line) == (library != "a driver" or not core.kernel_facts()["embedded"])
