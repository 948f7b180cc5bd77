"""What only a driver shows that nobody has used, or that has failed: in interpreters of their own."""

from __future__ import annotations

import pytest

from helpers.subprocess import stdout_of

pytestmark = pytest.mark.usefixtures("environment")  # builds what these interpreters load
BEGIN = """
import ctypes, gc, torch
from helpers.fake_cuda import as_test
from helpers.fake_cuda_driver import Driver
from helpers.torch_on_fake import torch_on_fake

cuda = torch_on_fake()

def current_context():
    context = ctypes.c_void_p()
    with as_test():
        code = Driver().code("cuCtxGetCurrent", ctypes.addressof(context))
    return code, context.value is not None

def refusal(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)

def printed(*values):
    print(*values, sep="\\n")

"""


def run(program: str) -> list[str]:
    """Lines that a program prints which has the environment as ``cuda``."""
    return stdout_of(BEGIN + program).splitlines()


def test_torch_is_initialised_and_has_a_context_from_its_first_use_on():
    assert run(
        "printed(torch.cuda.is_initialized(), current_context(), cuda.fake.live('primary_contexts'))\n"
        "torch.cuda.current_stream()\n"
        "printed(torch.cuda.is_initialized(), cuda.fake.live('primary_contexts'))\n"
        "torch.empty(1, device='cuda')\n"
        "printed(torch.cuda.is_initialized(), current_context(), cuda.fake.live('primary_contexts'))\n"
    ) == ["False", "(3, False)", "0", "True", "0", "True", "(0, True)", "1"]


def test_each_thread_has_a_context_from_its_first_use_on():
    assert run(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "x = torch.ones(3, device='cuda:1')\n"
        "with ThreadPoolExecutor(1) as pool:\n"
        "    printed(pool.submit(current_context).result())\n"
        "    printed(pool.submit(x.tolist).result())\n"
        "    printed(pool.submit(current_context).result(), cuda.fake.violations())\n"
    ) == ["(0, False)", "[1.0, 1.0, 1.0]", "(0, True)", "[]"]


def test_a_failed_context_refuses_further_work_as_torch_does():
    lines = run(
        "x = torch.ones(3).to('cuda')\n"
        "cuda.fake.fault('execution', 700)\n"
        "printed(refusal(x.cpu), refusal(x.clone), refusal(x.zero_))\n"
    )
    assert [line.startswith("CUDA error") and line.endswith("code 700") for line in lines] == [True] * 3


def test_tensors_of_a_world_before_the_reset_do_no_harm():
    lines = run(
        "x = torch.zeros(3, device='cuda')\n"
        "event = torch.cuda.current_stream().record_event()\n"
        "cuda.reset()\n"
        "printed(refusal(x.cpu))\n"
        "cuda.fake.clear_violations()\n"
        "del x, event\n"
        "gc.collect()\n"
        "printed(torch.ones(2, device='cuda').tolist(), cuda.fake.violations())\n"
    )
    assert lines[0].startswith("CUDA error")
    assert lines[1:] == ["[1.0, 1.0]", "[]"]


def test_tensors_and_events_alive_at_the_end_of_the_interpreter_do_no_harm():
    assert run(
        "cuda.fake.schedule('threaded', 1)\n"
        "kept = torch.ones(3, device='cuda'), torch.cuda.current_stream().record_event()\n"
        "kept[1].kept = kept\n"
        "printed(kept[0].sum().item())\n"
    ) == ["3.0"]


def test_the_first_use_of_a_device_may_be_a_copy_to_it():
    assert run(
        "import numpy as np, tensorferry as ferry\n"
        "printed(ferry.to_device(np.ones(3), 'cuda:1').tolist())\n"
        "printed(ferry.images_to_tensor(np.full((1, 2, 1), 255, np.uint8), device='cuda').tolist())\n"
        "printed(cuda.fake.violations())\n"
    ) == ["[1.0, 1.0, 1.0]", "[[[1.0, 1.0]]]", "[]"]
