"""``tensorferry doctor``: the facts against what the packages say of themselves, and the exit code."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.console import run_here, run_outside
from tensorferry._doctor import checks as _doctor_checks
from tensorferry._doctor import facts as _doctor
from tensorferry._units import binary_size


@pytest.fixture(scope="module")
def facts():
    return _doctor.examine()


def test_versions_are_those_of_the_packages(facts):
    expected = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        **{
            name: metadata.version(name)
            for name in ("ml_dtypes", "tensorferry", "safetensors", "pillow", "scikit-learn")
        },
    }
    assert facts.versions == expected


def test_the_native_module_tells_how_it_was_built(facts):
    assert set(facts.native) >= {"compiler", "build_type", "numpy", "dlpack"}
    assert facts.native["numpy"].split(".")[0] == "2"


def test_the_pool_of_private_copies_is_the_process_own(facts):
    assert facts.host_pool.limit_nbytes == ferry.pool_stats().limit_nbytes > 0


def test_the_engine_uses_what_the_processor_has_and_as_many_threads_as_torch(facts):
    flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")).split()
    level = "avx512" if "avx512bw" in flags else "avx2" if "avx2" in flags else "portable"
    assert facts.engine.processor_level == level
    assert facts.engine.threads == torch.get_num_threads()
    loads_openmp = "/torch/lib/libgomp" in Path("/proc/self/maps").read_text()
    assert facts.engine.thread_owner == ("torch" if loads_openmp else "tensorferry")
    assert facts.engine.stream_from_nbytes >= 4 << 20


def test_no_device_is_initialised(facts):
    assert facts.findings == []
    assert not torch.cuda.is_initialized()


def test_devices_that_torch_was_not_built_for_are_not_claimed(facts):
    built = {device.name: bool(device.built) for device in facts.devices}
    assert built["cpu"]
    assert built["cuda"] == (torch.version.cuda is not None)
    assert built["cuda (ROCm)"] == (torch.version.hip is not None)
    assert built["mps"] == torch.backends.mps.is_built()


def test_paths_say_which_calls_copy(facts):
    copies = {path.call: path.copies for path in facts.paths}
    assert copies["to_numpy(host tensor)"] == 0
    assert copies["to_numpy(t, copy=True)"] == 1
    assert copies["from_numpy(array)"] == 0
    assert copies["from_numpy(array[::-1])"] == 1
    assert [path.waits for path in facts.paths if path.path == "fallback"] == [("the device",)] * 2


def test_every_check_passes_here_and_the_exit_code_is_0(capsys):
    ran = run_here(capsys, "doctor", "--json")
    assert ran.code == 0
    assert ran.document["ok"]
    assert [check["name"] for check in ran.document["checks"] if not check["ok"]] == []
    assert len(ran.document["checks"]) == 5


def test_the_text_holds_what_the_json_holds(capsys, facts):
    ran = run_here(capsys, "doctor")
    assert ran.code == 0
    needed = [facts.versions["torch"], facts.versions["ml_dtypes"], *(check.name for check in facts.checks)]
    needed += [path.call for path in facts.paths] + [binary_size(facts.host_pool.limit_nbytes)]
    assert [text for text in needed if text not in ran.stdout] == []


def test_a_wrong_value_is_a_finding_and_exits_1(capsys, monkeypatch):
    right = _doctor_checks.core.from_numpy

    def off_by_one(a):
        tensor = right(a)
        return tensor + 1 if isinstance(tensor, torch.Tensor) else tensor

    monkeypatch.setattr(_doctor_checks.core, "from_numpy", off_by_one)
    ran = run_here(capsys, "doctor", "--json")
    assert ran.code == 1
    assert not ran.document["ok"]
    finding = next(found for found in ran.document["findings"] if "array to tensor" in found["given"])
    assert "expected" in finding["why"]
    assert "[[2, -1], [4, 5]]" in finding["why"]
    assert "report" in finding["instead"]


def test_without_torch_the_finding_says_what_to_install():
    ran = run_outside("doctor", "--json", without=("torch",))
    assert ran.code == 1
    document = ran.document
    assert document["versions"]["torch"] is None
    assert document["numpy_bridge"] is None
    assert "tensorferry[torch]" in document["findings"][0]["instead"]
    assert [check["ok"] for check in document["checks"]] == [True]
    assert any("tensorferry[torch]" in remedy["command"] for remedy in document["remedies"])


def test_without_torch_the_text_says_so_and_still_shows_what_works():
    ran = run_outside("doctor", without=("torch",))
    assert ran.code == 1
    assert "not installed" in ran.stdout
    assert "FINDING" in ran.stdout
    assert "to_numpy(buffer)" in ran.stdout


def test_optional_packages_that_are_missing_are_named_with_their_use():
    document = run_outside("doctor", "--json", without=("sklearn", "safetensors")).document
    assert document["ok"]
    gives = {remedy["command"]: remedy["gives"] for remedy in document["remedies"]}
    assert gives["pip install 'tensorferry[demo]'"] == "tensorferry demo"
    assert gives["pip install safetensors"] == "tensorferry explain FILE.safetensors"


@pytest.mark.parametrize(("switch", "table"), [("0", True), ("1", False)], ids=["exchange table", "capsules forced"])
def test_the_way_tensors_are_read_is_told_with_its_reason(switch, table):
    document = run_outside("doctor", "--json", TENSORFERRY_NO_EXCHANGE_API=switch).document
    has_table = hasattr(torch.Tensor, "__dlpack_c_exchange_api__")
    assert document["exchange_table"] == (table and has_table)
    if not table:
        assert "TENSORFERRY_NO_EXCHANGE_API=1" in document["exchange_reason"]


def test_nothing_important_is_cut_off_in_a_narrow_terminal():
    ran = run_outside("doctor", columns=80)
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert [path.call for path in _doctor.examine().paths if path.call not in ran.stdout] == []
    assert "…" not in ran.stdout
    assert sys.version.split()[0] in ran.stdout
