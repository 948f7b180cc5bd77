"""Marks that backends ignore, the reason that is given for a fallback, and what the doctor tells of such devices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers import torch_dtypes as dtypes
from helpers.array_oracle import array_of, assert_same
from helpers.device_cases import CASES, Layout
from helpers.remote_device import Remote
from helpers.subprocess import stdout_of
from tensorferry._doctor.devices import devices
from tensorferry._native import core
from tensorferry._torch import fallback

MARKED = [(dtype, name, layout) for dtype, name, layout in CASES if "negative" in name or "conjugate" in name]


@pytest.mark.parametrize(
    ("dtype", "layout"),
    [pytest.param(dtype, layout, id=f"{dtypes.name_of(dtype)} {name}") for dtype, name, layout in MARKED],
)
def test_values_are_right_on_a_backend_that_ignores_marks_for_it_never_meets_one(
    remote: Remote, dtype: torch.dtype, layout: Layout
) -> None:
    x = dtypes.sample(dtype)
    device = layout(x.to("remote"))
    assert device.is_conj() or device.is_neg()
    remote.ignores_marks = True
    marked_copies = remote.marked_copies
    for copy in (None, True):
        assert_same(ferry.to_numpy(device, copy=copy), array_of(layout(x)))
    assert remote.marked_copies == marked_copies
    assert (device.is_conj(), device.is_neg()) == (layout(x).is_conj(), layout(x).is_neg())


def test_torchs_own_copy_gives_wrong_values_on_such_a_backend(remote: Remote) -> None:
    device = torch._neg_view(torch.ones(2).to("remote"))
    remote.ignores_marks = True
    assert device.cpu().tolist() == [1, 1]
    assert ferry.to_numpy(device).tolist() == [-1, -1]


@pytest.mark.parametrize("kind", ["mps", "xpu", "hpu", "remote", "remote:0"])
def test_the_reason_names_the_kind_of_device(remote: Remote, kind: str) -> None:
    name = kind.partition(":")[0]
    expected = f"tensorferry copies natively between the host and CUDA only, not from or to {name}"
    assert fallback.reason(kind) == expected
    assert fallback.reason(torch.device(kind)) == expected
    assert not fallback.is_native_kind(kind)


def test_the_reason_for_cuda_is_what_the_driver_said() -> None:
    said = "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
    assert fallback.reason("cuda:1", said) == f"the CUDA driver cannot be used here ({said})"
    assert fallback.reason("cuda:1", "") == "the CUDA driver cannot be used here"
    assert fallback.is_native_kind("cuda:1")


def test_without_a_driver_library_the_reason_for_cuda_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORFERRY_LIBCUDA", "/nowhere/libcuda.so.1")
    printed = stdout_of("from tensorferry._torch import fallback; print(fallback.reason('cuda'))")
    assert printed.startswith("the CUDA driver cannot be used here (")
    assert "/nowhere/libcuda.so.1" in printed


def test_a_rocm_build_is_told_apart_from_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", "6.4")
    assert not fallback.is_native_kind("cuda")
    assert fallback.reason("cuda:0", "no driver").endswith("not from or to ROCm")


def test_the_doctor_lists_a_registered_backend_with_its_way_and_starts_nothing(remote: Remote) -> None:
    copies = remote.copies
    listed = {device.name: device for device in devices(torch)}
    found = listed["remote"]
    assert (found.built, found.seen, found.path) == ("remote", "registered in this process", "fallback")
    assert found.reason == fallback.reason("remote")
    assert (listed["cpu"].path, listed["mps"].path, listed["cuda"].path) == ("host", "", "")
    assert remote.copies == copies
    assert not torch.cuda.is_initialized()


def test_the_doctor_does_not_ask_what_would_start_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def started() -> bool:
        raise AssertionError("a device was asked")

    for backend in (torch.cuda, torch.xpu, torch.mps, torch.backends.mps, torch.mtia, torch.accelerator):
        for question in ("is_available", "device_count", "init"):
            if hasattr(backend, question):
                monkeypatch.setattr(backend, question, started)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.version, "xpu", "2025.2")
    monkeypatch.setattr(torch.backends.mps, "is_built", lambda: True)
    listed = {device.name: device for device in devices(torch)}
    assert [listed[name].path for name in ("mps", "xpu")] == ["fallback"] * 2
    assert listed["cuda"].path == ("fallback" if core.driver_problem(initialise=False) else "driver")
    assert listed["mps"].reason.endswith("not from or to mps")


def test_without_torch_the_doctor_claims_no_way() -> None:
    assert {device.path for device in devices(None)} == {""}


def test_an_array_from_a_device_has_memory_of_the_pool_of_private_copies(remote: Remote) -> None:
    device = torch.zeros(1 << 16).to("remote")
    before = ferry.pool_stats()
    array = ferry.to_numpy(device)
    during = ferry.pool_stats()
    assert during.in_use_nbytes - before.in_use_nbytes >= array.nbytes
    del array
    assert ferry.pool_stats().in_use_nbytes == before.in_use_nbytes
    assert np.all(ferry.to_numpy(device) == 0)
