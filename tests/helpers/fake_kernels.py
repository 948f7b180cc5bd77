"""Launches of kernels on the fake device, and device memory as NumPy arrays.

The kernels are those of ``csrc/kernels``, compiled for the host. They run as the schedule says; :meth:`Kernels.run`
launches and waits.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from helpers.fake_cuda import LEGACY, fake_cuda
from helpers.fake_cuda_driver import Driver

__all__ = ["IMAGE", "DeviceBytes", "Kernels", "ToyArgs"]

IMAGE = b"FAKE kernels"


class ToyArgs(ctypes.Structure):
    """Of the small kernels in ``tests/fake_cuda/toy_kernels.cu``; `count` numbers of 4 bytes."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in ("to", "source", "count", "flag", "ticket", "value"))


class DeviceBytes:
    """A piece of device memory.

    Parameters
    ----------
    driver : Driver
        With a current context.
    nbytes : int
        Exactly so many: the first byte behind them is somebody else's.

    Attributes
    ----------
    pointer : int
        Its address, a multiple of 256.
    """

    def __init__(self, driver: Driver, nbytes: int) -> None:
        self.driver, self.nbytes = driver, nbytes
        self.pointer = driver.alloc(max(nbytes, 1))

    @classmethod
    def of(cls, driver: Driver, values: NDArray[Any]) -> DeviceBytes:
        """Memory that holds the bytes of an array."""
        made = cls(driver, values.nbytes)
        made.poke(values)
        return made

    def poke(self, values: NDArray[Any], offset: int = 0) -> None:
        """Write at once, before any schedule has a say."""
        host = np.ascontiguousarray(values)
        if host.nbytes:
            code = fake_cuda().library.fake_poke(self.pointer + offset, host.ctypes.data, host.nbytes)
            assert code == 0, "more than there is"

    def peek(self, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
        """All of it as it is now."""
        out = np.empty(self.nbytes, np.uint8)
        if self.nbytes:
            assert fake_cuda().library.fake_peek(self.pointer, out.ctypes.data, out.nbytes) == 0
        return out.view(dtype)

    def free(self) -> None:
        """Give it back."""
        self.driver("cuMemFree", self.pointer)


class Kernels:
    """The kernels in the current context, loaded from a pretended image.

    Parameters
    ----------
    driver : Driver
        With a current context.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        none = ctypes.c_void_p()
        self._image = ctypes.create_string_buffer(IMAGE)
        rest = (ctypes.addressof(self._image), none, none, 0, none, none, 0)
        self.library = int(driver.get(ctypes.c_void_p, "cuLibraryLoadData", after=rest))
        self._functions: dict[str, int] = {}

    def function(self, name: str) -> int:
        """Handle of a kernel's function in the current context."""
        if name not in self._functions:
            kernel = self.driver.get(ctypes.c_void_p, "cuLibraryGetKernel", after=(self.library, name.encode()))
            self._functions[name] = int(self.driver.get(ctypes.c_void_p, "cuKernelGetFunction", after=(kernel,)))
        return self._functions[name]

    def code_of_launch(
        self, name: str, arguments: ctypes.Structure | bytes, blocks: int = 1, threads: int = 256, stream: int = LEGACY
    ) -> int:
        """Launch, and give the driver's answer."""
        given = bytes(arguments)
        assert len(given) == fake_cuda().kernels()[name], f"{name} takes {fake_cuda().kernels()[name]} bytes"
        copied = ctypes.create_string_buffer(given, len(given))
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(copied))
        code = self.driver.code(
            "cuLaunchKernel",
            *(self.function(name), blocks, 1, 1, threads, 1, 1, 0, stream, ctypes.addressof(parameters), None),
        )
        ctypes.memset(copied, 0xEE, len(given))  # a launch keeps nothing of the caller's
        return code

    def launch(
        self, name: str, arguments: ctypes.Structure | bytes, blocks: int = 1, threads: int = 256, stream: int = LEGACY
    ) -> None:
        """Put a launch into a stream."""
        code = self.code_of_launch(name, arguments, blocks, threads, stream)
        assert code == 0, f"launching {name} gave {code}"

    def run(self, name: str, arguments: ctypes.Structure | bytes, blocks: int = 1, threads: int = 256) -> None:
        """Launch, and run everything that is pending."""
        self.launch(name, arguments, blocks, threads)
        fake_cuda().drain()
