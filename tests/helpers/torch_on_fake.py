"""Real ``torch.Tensor`` objects on device ``cuda`` with a CPU build of torch: their memory is the fake driver's.

They are torch's own tensors, with torch's exchange table; only what a CPU build lacks is ours: memory, kernels,
streams. What torch would do on the device is enqueued on the fake, in the current stream of the calling thread. So
whoever reads too early meets poison, and whoever copies from memory that torch gave away leaves a violation.

This changes torch for the whole process: it is for tests that run in a process of their own, as ``tests/torch_cuda``.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from helpers.exchange_tables import ATTRIBUTE, _Table
from helpers.fake_cuda import LEGACY, FakeCuda, fake_cuda
from helpers.torch_on_fake_build import guard_library
from helpers.torch_on_fake_kernels import register_kernels
from helpers.torch_on_fake_streams import forget_streams, replace_torch_cuda
from tensorferry._native import core

__all__ = ["TorchOnFake", "torch_on_fake"]

_NAME = b"dlpack_exchange_api"
_kept: list[Any] = []


class TorchOnFake:
    """The environment.

    Attributes
    ----------
    fake : FakeCuda
        The driver: schedules, faults, trace, violations.
    """

    def __init__(self) -> None:
        if torch.version.cuda is not None or torch.version.hip is not None:
            raise RuntimeError("this torch has a real device; the fake one is for CPU builds")
        self.fake: FakeCuda = fake_cuda()
        os.environ["TENSORFERRY_LIBCUDA"] = self.fake.path
        core.set_transfer_limits(kernels=False)  # tests of kernels switch them on
        guard_library()
        replace_torch_cuda()
        register_kernels()
        _answer_for_the_current_stream()
        self.reset()

    def reset(self) -> None:
        """As in a fresh process, with two devices. Whoever else holds handles, such as the product, is not told."""
        self.fake.reset()
        self.fake.preset("two_devices")
        forget_streams(devices=2)

    def renew(self) -> None:
        """Between two tests: no work is pending, nothing is recorded, no fault is planned. What exists stays."""
        self.fake.clear_faults()
        self.fake.schedule("lazy")
        self.fake.library.fake_forget_freed()
        self.fake.clear_trace()
        self.fake.clear_violations()
        core.set_transfer_limits(kernels=False)

    def settled(self, x: torch.Tensor, device: str = "cuda") -> torch.Tensor:
        """A copy on the device whose values are there already."""
        moved = x.to(device)
        self.fake.drain()
        return moved

    def peek(self, x: torch.Tensor) -> NDArray[np.uint8]:
        """The bytes of a contiguous tensor as they are now, whatever is still to come; waits for nothing."""
        out = np.empty(x.nbytes, np.uint8)
        code = self.fake.library.fake_peek(x.data_ptr(), out.ctypes.data, out.nbytes)
        assert code == 0, f"the memory is gone: {code}"
        return out

    @property
    def current_handle(self) -> int:
        """The current stream as the driver wants it: 1 for torch's default stream."""
        return torch.cuda.current_stream().cuda_stream or LEGACY


def _answer_for_the_current_stream() -> None:
    """In a CPU build the exchange table knows no CUDA stream: use a copy of it that does."""
    if not hasattr(torch.Tensor, ATTRIBUTE):
        return  # before torch 2.10 there was none
    get, make = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_New
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    address = get(getattr(torch.Tensor, ATTRIBUTE), _NAME)
    table = _Table.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(_Table)))
    table.current_work_stream = ctypes.cast(guard_library().torch_on_fake_current_work_stream, ctypes.c_void_p)
    _kept.append(table)
    setattr(torch.Tensor, ATTRIBUTE, make(ctypes.addressof(table), _NAME, None))


@cache
def torch_on_fake() -> TorchOnFake:
    """The environment of this process; made at the first call, and for good."""
    return TorchOnFake()
