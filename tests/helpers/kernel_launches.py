"""The product's own decisions about launches (``csrc/kernels``), carried out on the fake device."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from helpers.fake_cuda import LEGACY, fake_cuda
from helpers.fake_cuda_build import CSRC, FLAGS, build_once, compiler, run_all
from helpers.fake_kernels import DeviceBytes, Kernels

__all__ = [
    *("ELEMENT_TYPES", "Launch", "Piece", "Signal", "Slots"),
    *("decisions", "every_kernel", "gather", "launch_copy", "launch_rows"),
]

_SOURCE = Path(__file__).resolve().parents[1] / "kernels" / "launches.cpp"
_COMPILED = [CSRC / "kernels" / name for name in ("device_copy.cpp", "piece_list.cpp")]
# In the order of FERRY_ELEMENT_TYPES.
ELEMENT_TYPES = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "complex64", "complex128", "bfloat16", "float8_e3m4", "float8_e4m3"),
    *("float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    *("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "float4_e2m1fn_x2", "complex32"),
    *("int1", "int2", "int4", "uint1", "uint2", "uint4"),
)
_u64, _i64, _u32, _int, _pointer = ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint32, ctypes.c_int, ctypes.c_void_p


class Signal(ctypes.Structure):
    """A flag of 8 bytes, a ticket of 4 bytes in device memory, and the number that the flag is to become."""

    _fields_ = (("flag", _u64), ("ticket", _u64), ("sequence", _u64))


class Slots(ctypes.Structure):
    """Where captured gathers put their payloads: as in arguments.hpp."""

    _fields_ = (("counter", _u64), ("headers", _u64), ("payloads", _u64), ("pitch", _u64), ("count", _u64))


class _Axis(ctypes.Structure):
    _fields_ = (("extent", _i64), ("to_stride", _i64), ("from_stride", _i64))


class _Pieces(ctypes.Structure):
    _fields_ = (
        ("count", _u64),
        ("addresses", _pointer),
        ("offsets", _pointer),
        ("extents", _pointer),
        ("casts", _pointer),
    )


class Launch(ctypes.Structure):
    """A decided launch."""

    _fields_ = (
        ("kernel", ctypes.c_char_p),
        ("blocks", _u32),
        ("threads", _u32),
        ("nbytes", _u64),
        ("arguments", ctypes.c_ubyte * 4096),
    )

    @property
    def name(self) -> str:
        """Of the kernel."""
        return str(self.kernel.decode())

    def make_wide(self) -> None:
        """Take the way of 64-bit indices, of rows and strided copies."""
        decisions().make_wide(ctypes.addressof(self))

    @property
    def is_wide(self) -> bool:
        """Does it take that way? Of rows and strided copies."""
        return bool(decisions().is_wide(ctypes.addressof(self)))

    def run(self, kernels: Kernels, stream: int = LEGACY, *, blocks: int = 0, threads: int = 0) -> None:
        """Enqueue it; with other numbers of blocks and threads where they are given."""
        given = bytes(self.arguments[: self.nbytes])
        kernels.launch(self.name, given, blocks or self.blocks, threads or self.threads, stream)


def _build(into: Path) -> None:
    sources = [str(path) for path in (_SOURCE, *_COMPILED)]
    run_all([[compiler(), *FLAGS, f"-I{CSRC}", "-shared", *sources, "-o", "liblaunches.so"]], into)


@cache
def decisions() -> ctypes.CDLL:
    """The functions of ``tests/kernels/launches.cpp``; compiled at the first call."""
    digest = hashlib.sha256(repr((compiler(), FLAGS)).encode())
    for path in sorted([_SOURCE, *_COMPILED, *(CSRC / "kernels").glob("*.hpp")]):
        digest.update(path.name.encode() + path.read_bytes())
    library = ctypes.CDLL(str(build_once(f"launches-{digest.hexdigest()[:16]}", _build) / "liblaunches.so"))
    library.launch_copy.argtypes = [_u64, _u64, _int, _int, _u64, _pointer, _u32, _u32, _pointer, _pointer]
    library.launch_rows.argtypes = [ctypes.c_char_p, _u64, _i64, _u64, _i64, _u64, _u64, _int, _int, _pointer]
    library.launch_rows.restype = None
    library.piece_table.argtypes, library.piece_table.restype = [_pointer, _pointer], _u64
    library.launch_gather.argtypes = [_pointer, _int, _u64, _u64, _u32, _u32, _pointer, _pointer, _pointer]
    library.launch_gather.restype = None
    library.image_arguments.argtypes, library.image_arguments.restype = [_pointer, _u64, _u32], _u64
    library.make_wide.argtypes, library.make_wide.restype = [_pointer], None
    library.is_wide.argtypes = [_pointer]
    library.quotient.argtypes, library.quotient.restype = [_u32, _u32], _u32
    library.wide_quotient.argtypes, library.wide_quotient.restype = [_u64, _u64], _u64
    return library


def launch_copy(
    to: int,
    source: int,
    types: tuple[str, str],
    axes: Sequence[tuple[int, int, int]],
    *,
    limit: tuple[int, int] = (8, 256),
    signal: Signal | None = None,
) -> Launch | None:
    """The launch that copies a strided tensor; None where kernels have no way.

    Parameters
    ----------
    to, source : int
        Device addresses of the first elements.
    types : (str, str)
        Element types of the destination and of the source.
    axes : sequence of (int, int, int)
        Extent, and strides of destination and source in bytes.
    limit : (int, int)
        Most blocks, and threads in a block.
    signal : Signal, optional
        Store into mapped memory, and signal behind it.
    """
    given = Launch()
    array = (_Axis * max(len(axes), 1))(*[_Axis(*axis) for axis in axes])
    numbers = [ELEMENT_TYPES.index(name) for name in types]
    at = ctypes.addressof(signal) if signal is not None else None
    decided = decisions().launch_copy(
        to, source, *numbers, len(axes), ctypes.addressof(array), *limit, at, ctypes.addressof(given)
    )
    return given if decided else None


def launch_rows(
    kernel: str, to: int, to_pitch: int, source: int, from_pitch: int, shape: tuple[int, int], types: tuple[str, str]
) -> bytes:
    """Arguments of a kernel of rows; the width is in bytes, or in elements where the types differ."""
    given = Launch()
    numbers = [ELEMENT_TYPES.index(name) for name in types]
    decisions().launch_rows(
        kernel.encode(), to, to_pitch, source, from_pitch, *shape, *numbers, ctypes.addressof(given)
    )
    return bytes(given.arguments[: given.nbytes])


class Piece:
    """One piece: a device address, an offset into the block, and an extent in bytes, or in elements of a cast."""

    def __init__(self, address: int, offset: int, extent: int, cast: tuple[str, str] | None = None) -> None:
        self.address, self.offset, self.extent = address, offset, extent
        self.cast = (0xFF, 0xFF) if cast is None else tuple(ELEMENT_TYPES.index(name) for name in cast)


def gather(
    kernels: Kernels,
    pieces: Sequence[Piece],
    block: int = 0,
    *,
    scatter: bool = False,
    limit: tuple[int, int] = (8, 256),
    signal: Signal | None = None,
    slots: Slots | None = None,
) -> tuple[Launch, DeviceBytes | None]:
    """The launch that moves pieces into a block of memory, or back; and the table that it needs, if it needs one."""
    arrays = [
        np.array([piece.address for piece in pieces], np.uint64),
        np.array([piece.offset for piece in pieces], np.uint64),
        np.array([piece.extent for piece in pieces], np.uint64),
        np.array([piece.cast for piece in pieces], np.uint8).reshape(-1),
    ]
    listed = _Pieces(len(pieces), *(array.ctypes.data for array in arrays))
    nbytes = decisions().piece_table(ctypes.addressof(listed), None)
    table = None
    if nbytes:
        host = np.empty(nbytes, np.uint8)
        decisions().piece_table(ctypes.addressof(listed), host.ctypes.data)
        table = DeviceBytes.of(kernels.driver, host)
    given = Launch()
    decisions().launch_gather(
        *(ctypes.addressof(listed), int(scatter), block, 0 if table is None else table.pointer, *limit),
        None if signal is None else ctypes.addressof(signal),
        None if slots is None else ctypes.addressof(slots),
        ctypes.addressof(given),
    )
    return given, table


def every_kernel() -> list[str]:
    """Names of all kernels of the product."""
    return [name for name in fake_cuda().kernels() if name.startswith("ferry_")]
