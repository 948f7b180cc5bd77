"""No kernel of the list is without a test, and each stays inside the memory that it is given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from helpers.fake_cuda import FakeCuda
from helpers.fake_kernels import DeviceBytes, Kernels
from helpers.kernel_launches import Launch, Piece, Signal, Slots, every_kernel, gather, launch_copy

HOT = [
    ("bfloat16", "float32", 2, 4),
    ("float16", "float32", 2, 4),
    ("float32", "bfloat16", 4, 2),
    ("float32", "float16", 4, 2),
    ("float32", "float64", 4, 8),
    ("float32", "uint8", 4, 1),
]
SIZES = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}
Case = tuple[int, int, Callable[..., "Launch | None"]]  # bytes to write, bytes to read, and what launches


def _copy(types: tuple[str, str], axes: list[tuple[int, int, int]]) -> Callable[..., Launch | None]:
    return lambda _, to, source, extra: launch_copy(to, source, types, axes)


def _store(types: tuple[str, str], axes: list[tuple[int, int, int]]) -> Callable[..., Launch | None]:
    return lambda _, to, source, extra: launch_copy(to, source, types, axes, signal=Signal(extra, extra + 8, 5))


def _pieces(count: int, **how: bool) -> Callable[..., Launch | None]:
    def make(kernels: Kernels, to: int, source: int, extra: int) -> Launch:
        there, block = (to, source) if how.get("scatter") else (source, to)
        pieces = [Piece(there + 16 * i, 16 * i, 16) for i in range(count)]
        signal = Signal(extra, extra + 8, 5) if how.get("signal") else None
        slots = Slots(extra + 16, extra + 32, to, 16 * count, 1) if how.get("slots") else None
        return gather(kernels, pieces, block, scatter=bool(how.get("scatter")), signal=signal, slots=slots)[0]

    return make


CASES: dict[str, Case] = {
    "ferry_rows": (1000, 1000, _copy(("uint8", "uint8"), [(1000, 1, 1)])),
    "ferry_rows_cast": (800, 400, _copy(("float64", "int32"), [(100, 8, 4)])),
    "ferry_strided_cast": (792, 396, _copy(("float64", "int32"), [(50, 16, 8)])),
    "ferry_strided_store": (400, 796, _store(("uint32", "uint32"), [(100, 4, 8)])),
    "ferry_strided_cast_store": (400, 100, _store(("float32", "uint8"), [(100, 4, 1)])),
}
for to_type, from_type, to_size, from_size in HOT:
    name, types = f"{to_type}_from_{from_type}", (to_type, from_type)
    CASES[f"ferry_rows_{name}"] = (100 * to_size, 100 * from_size, _copy(types, [(100, to_size, from_size)]))
    CASES[f"ferry_strided_{name}"] = (
        *(199 * to_size, 298 * from_size),
        _copy(types, [(100, 2 * to_size, 3 * from_size)]),
    )
for size, dtype in SIZES.items():
    CASES[f"ferry_strided_{size}"] = (199 * size, 298 * size, _copy((dtype,) * 2, [(100, 2 * size, 3 * size)]))
    CASES[f"ferry_transpose_{size}"] = (
        *(70 * 50 * size, 70 * 50 * size),
        _copy((dtype,) * 2, [(70, 50 * size, size), (50, size, 70 * size)]),
    )
for count, where in ((20, "inline"), (300, "table")):
    CASES[f"ferry_gather_{where}"] = (16 * count, 16 * count, _pieces(count))
    CASES[f"ferry_scatter_{where}"] = (16 * count, 16 * count, _pieces(count, scatter=True))
    CASES[f"ferry_gather_store_{where}"] = (16 * count, 16 * count, _pieces(count, signal=True))
    CASES[f"ferry_gather_slot_{where}"] = (16 * count, 16 * count, _pieces(count, slots=True))
WITH_TESTS_OF_THEIR_OWN = {f"ferry_image_{name}" for name in ("float32", "float16", "bfloat16")}


def test_the_list_below_has_every_kernel():
    assert set(CASES) | WITH_TESTS_OF_THEIR_OWN == set(every_kernel())


@pytest.mark.parametrize("name", CASES)
def test_it_touches_all_that_it_is_given_and_nothing_else(fake: FakeCuda, kernels: Kernels, name: str):
    to_nbytes, from_nbytes, make = CASES[name]
    to, extra = DeviceBytes(kernels.driver, to_nbytes), DeviceBytes.of(kernels.driver, np.zeros(8, np.uint64))
    source = DeviceBytes.of(kernels.driver, np.zeros(from_nbytes, np.uint8))
    launch = make(kernels, to.pointer, source.pointer, extra.pointer)
    assert launch is not None
    assert launch.name == name
    launch.run(kernels)
    fake.drain()
    assert fake.violations() == []
    assert np.count_nonzero(to.peek() == 0) >= to_nbytes // 2  # what lies between strided elements stays
    assert to.peek()[0] == 0


@pytest.mark.parametrize("side", ["written", "read"])
@pytest.mark.parametrize("name", CASES)
def test_memory_that_is_one_byte_too_short_is_noticed(fake: FakeCuda, kernels: Kernels, name: str, side: str):
    to_nbytes, from_nbytes, make = CASES[name]
    short = DeviceBytes(kernels.driver, (to_nbytes if side == "written" else from_nbytes) - 1)
    other = DeviceBytes(kernels.driver, max(to_nbytes, from_nbytes))
    extra = DeviceBytes.of(kernels.driver, np.zeros(8, np.uint64))
    pointers = (short.pointer, other.pointer) if side == "written" else (other.pointer, short.pointer)
    launch = make(kernels, *pointers, extra.pointer)
    assert launch is not None
    launch.run(kernels)
    fake.drain()
    found = fake.violations()
    assert len(found) == 1
    assert found[0].startswith(f"kernel {name} {'wrote' if side == 'written' else 'read'}")
    assert "of device#1" in found[0]
    fake.clear_violations()
