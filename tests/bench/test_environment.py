"""The facts of the environment, against independent sources."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch

import tensorferry as ferry
from tensorferry.bench import environment


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """The environment of this process."""
    return environment(tmp_path_factory.mktemp("folder"))


def test_versions_are_those_that_the_modules_tell(facts):
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["numpy"] == np.__version__
    assert facts["torch"].partition("+")[0] == str(torch.__version__).partition("+")[0]
    assert facts["tensorferry"] == ferry.__version__
    assert facts["ml_dtypes"] == metadata.version("ml_dtypes")


def test_cores_and_kernel_are_those_of_the_system(facts):
    assert facts["cores"] == os.cpu_count()
    assert facts["cores usable"] == len(os.sched_getaffinity(0))
    assert facts["kernel"] == os.uname().release
    assert facts["architecture"] == platform.machine()


def test_the_processor_is_the_one_of_proc(facts):
    assert f": {facts['processor']}\n" in Path("/proc/cpuinfo").read_text()


@pytest.mark.parametrize("level", [2, 3])
def test_cache_sizes_are_those_that_lscpu_tells(facts, level):
    command = ["lscpu", "--bytes", "--caches=NAME,ONE-SIZE"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    sizes = dict(line.split() for line in told.splitlines()[1:])
    wanted = sizes.get(f"L{level}")
    assert facts[f"L{level} bytes"] == (None if wanted is None else int(wanted))


def test_memory_is_that_of_the_system(facts):
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert facts["memory bytes"] == pytest.approx(pages, rel=0.02)
    assert 0 < facts["free memory bytes"] <= facts["memory bytes"]


def test_the_state_of_huge_pages_is_the_word_in_brackets(facts):
    path = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if path.exists():
        assert f"[{facts['transparent huge pages']}]" in path.read_text()
    else:
        assert facts["transparent huge pages"] is None


def test_the_file_system_is_the_one_that_stat_tells(tmp_path):
    told = subprocess.run(["df", "--output=fstype", str(tmp_path)], capture_output=True, text=True, check=True).stdout
    assert environment(tmp_path)["file system"] == told.splitlines()[1].strip()
    assert environment("/proc")["file system"] == "proc"


def test_load_and_build_are_told(facts):
    assert 0 <= facts["load average"] < 10_000
    assert facts["compiler"]
    assert facts["build type"]


def test_no_device_is_initialised_by_asking(facts):
    assert (facts["GPU"] is None) == (not torch.cuda.is_available())
    if facts["GPU"] is None:
        assert not torch.cuda.is_initialized()


def test_the_cost_of_the_timing_loop_is_nanoseconds(facts):
    assert 0 < facts["timing loop ns"] < 1000


def test_all_facts_are_plain(facts):
    assert all(value is None or type(value) in (str, int, float) for value in facts.values())
