"""The native half of torch on the fake driver: compiled once per state of its source and of torch, then loaded."""

from __future__ import annotations

import ctypes
import hashlib
from functools import cache
from pathlib import Path

import torch

from helpers.fake_cuda import fake_cuda
from helpers.fake_cuda_build import build_once, compiler, run_all

__all__ = ["Elements", "guard_library", "kernels_library"]

_SOURCE = Path(__file__).with_name("torch_on_fake_guard.cpp")
_TORCH = Path(torch.__file__).parent
_int, _i64, _pointer, _address = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p, ctypes.c_uint64


class Elements(ctypes.Structure):
    """FakeElements of ``tests/fake_cuda/producer_kernels.cpp``."""

    _fields_ = (
        ("ndim", _i64),
        ("shape", ctypes.POINTER(_i64)),
        ("to_steps", ctypes.POINTER(_i64)),
        ("from_steps", ctypes.POINTER(_i64)),
        ("itemsize", ctypes.c_size_t),
        ("flip", ctypes.c_char_p),
    )


def _command() -> list[str]:
    flags = ["-std=c++20", "-O1", "-g1", "-fPIC", "-shared", "-fvisibility=hidden"]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"
    headers = ["-isystem", str(_TORCH / "include")]
    return [compiler(), *flags, abi, *headers, str(_SOURCE), f"-L{_TORCH / 'lib'}", "-lc10", "-o", "libguard.so"]


@cache
def guard_library() -> ctypes.CDLL:
    """The guard, connected to the fake driver; once in a process and for good."""
    command = _command()
    key = hashlib.sha256(repr((command, torch.__version__)).encode() + _SOURCE.read_bytes()).hexdigest()[:16]
    directory = build_once(f"torch-on-fake-{key}", lambda into: run_all([command], into))
    library = ctypes.CDLL(str(directory / "libguard.so"))
    library.torch_on_fake_stream.restype = _pointer
    library.torch_on_fake_set_stream.argtypes = [_int, _pointer]
    library.torch_on_fake_wrap.restype = _pointer
    library.torch_on_fake_wrap.argtypes = [_pointer, _i64, _int, _pointer]
    fake = fake_cuda().library
    library.torch_on_fake_connect(fake.fake_use_device, fake.fake_free)
    return library


@cache
def kernels_library() -> ctypes.CDLL:
    """The fake driver, with the types of the kernels that work on any layout."""
    fake = fake_cuda().library
    elements = ctypes.POINTER(Elements)
    fake.fake_copy_strided_later.argtypes = [_address, _address, elements, _pointer, _int]
    fake.fake_write_strided_later.argtypes = [_address, _pointer, elements, _pointer, _int]
    fake.fake_read_strided.argtypes = [_address, _pointer, elements, _pointer, _int]
    fake.fake_order_across.argtypes = [_pointer, _int, _pointer, _int]
    return fake
