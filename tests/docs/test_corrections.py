"""Each correction of docs/what-the-articles-got-wrong.md, held against torch and NumPy as they are installed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.documentation import ROOT
from helpers.subprocess import stdout_of

WITH_REMOTE = f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r})\n" + (
    "import torch, tensorferry as ferry\nfrom helpers.remote_device import install\nremote = install()\n"
)


def test_sharing_is_not_copy_on_write_a_write_on_either_side_is_seen_by_the_other() -> None:
    t = torch.zeros(3)
    a = t.numpy()
    a[0] = 5
    t[1] = 7
    assert t.tolist() == a.tolist() == [5, 7, 0]
    b = np.zeros(3)
    u = torch.from_numpy(b)
    b[0] = 5
    u[1] = 7
    assert u.tolist() == b.tolist() == [5, 7, 0]


def test_ours_is_copy_on_write_only_when_it_is_asked_for() -> None:
    t = torch.zeros(3)
    lazy, live = ferry.to_numpy(t, copy="lazy"), ferry.to_numpy(t)
    t[0] = 5
    assert lazy.tolist() == [0, 0, 0]
    assert live.tolist() == [5, 0, 0]


def test_numpy_of_a_tensor_on_a_device_raises_and_copies_nothing() -> None:
    program = """
t = torch.arange(3.0).to("remote")
copies = remote.copies
try:
    t.numpy()
except TypeError as error:
    print(str(error).split(".")[0], remote.copies - copies)
print(t.cpu().numpy().tolist(), remote.copies - copies)
"""
    lines = stdout_of(WITH_REMOTE + program).splitlines()
    assert lines == ["can't convert remote:0 device type tensor to numpy 0", "[0.0, 1.0, 2.0] 1"]


def test_ours_copies_from_a_device_once_and_the_plan_says_so_without_copying() -> None:
    program = """
t = torch.arange(3.0).to("remote")
copies = remote.copies
plan = ferry.plan(t)
print(plan.path, plan.waits, plan.copies, remote.copies - copies)
print(ferry.to_numpy(t).tolist(), ferry.to_numpy(t).flags.writeable, remote.copies - copies)
"""
    lines = stdout_of(WITH_REMOTE + program).splitlines()
    assert lines == ["fallback ('the device',) 1 0", "[0.0, 1.0, 2.0] False 2"]


@pytest.mark.parametrize("convert", [torch.from_numpy, torch.tensor, torch.as_tensor, ferry.from_numpy])
def test_float64_arrays_become_float64_tensors(convert: object) -> None:
    assert callable(convert)
    assert convert(np.ones(2)).dtype == torch.float64


def test_flags_belong_to_arrays_and_strides_have_two_units() -> None:
    t = torch.zeros(2, 3, dtype=torch.float64)
    assert not hasattr(t, "flags")
    assert hasattr(t.numpy(), "flags")
    assert t.stride() == (3, 1)
    assert t.numpy().strides == (24, 8)


def test_numpy_of_a_tensor_that_requires_grad_raises() -> None:
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        w.numpy()


def test_a_write_through_detach_numpy_damages_the_gradient_in_silence() -> None:
    w = torch.ones(2, requires_grad=True)
    loss = (w * w).sum()
    w.detach().numpy()[:] = 0
    loss.backward()
    assert w.grad is not None
    assert w.grad.tolist() == [0, 0]


def test_a_write_through_writable_makes_the_backward_pass_raise() -> None:
    w = torch.ones(2, requires_grad=True)
    loss = (w * w).sum()
    with torch.no_grad(), ferry.writable(w) as a:
        a[:] = 0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_to_with_a_buffer_does_not_fill_the_buffer() -> None:
    buffer = torch.zeros(3)
    ones = np.ones(3, np.float32)
    returned = torch.from_numpy(ones).to(buffer)
    assert returned is not buffer
    assert buffer.tolist() == [0, 0, 0]
    buffer.copy_(torch.from_numpy(ones))
    assert buffer.tolist() == [1, 1, 1]
    out = np.zeros(3, np.float32)
    assert ferry.to_numpy(torch.ones(3), out=out) is out
    assert out.tolist() == [1, 1, 1]


def test_a_non_blocking_copy_to_the_host_can_be_read_too_early() -> None:
    program = """
device = torch.arange(1.0, 4.0).to("remote")
host = torch.zeros(3)
host.copy_(device, non_blocking=True)
print(host.tolist(), host.is_pinned())
remote.synchronize()
print(host.tolist())
"""
    lines = stdout_of(WITH_REMOTE + program).splitlines()
    assert lines == ["[0.0, 0.0, 0.0] False", "[1.0, 2.0, 3.0]"]


def test_ours_is_complete_when_it_returns_even_behind_work_that_was_enqueued() -> None:
    program = """
device, newer = torch.zeros(3).to("remote"), torch.ones(3).to("remote")
device.copy_(newer, non_blocking=True)
print(len(remote.waiting), ferry.to_numpy(device).tolist(), len(remote.waiting))
"""
    assert stdout_of(WITH_REMOTE + program) == "1 [1.0, 1.0, 1.0] 0"


def test_dividing_a_uint8_image_by_255_makes_a_float64_temporary_eight_times_its_size() -> None:
    image = np.full((4, 4, 3), 51, np.uint8)
    divided = image / 255.0
    assert divided.dtype == np.float64
    assert divided.nbytes == 8 * image.nbytes
    ours = ferry.from_numpy(image, dtype="float32").div_(255)
    assert ours.dtype == torch.float32
    assert ours.nbytes == 4 * image.nbytes
    np.testing.assert_allclose(ours.numpy(), divided, rtol=1e-7)
