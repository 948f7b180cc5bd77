"""Many conversions leave memory and reference counts where they were.

``TENSORFERRY_SOAK=1`` makes the runs longer: 10^6 conversions of each main kind, which take some minutes.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.memory import resident_nbytes

pytestmark = pytest.mark.filterwarnings("ignore::tensorferry.ExtensionDTypeWarning")

LONG = os.environ.get("TENSORFERRY_SOAK") == "1"
MAIN_TIMES = 1_000_000 if LONG else 100_000
OTHER_TIMES = 50_000 if LONG else 1_000
WARM_UP = 300

TENSOR = torch.arange(64.0).reshape(8, 8)
PARAMETER = torch.nn.Parameter(torch.ones(8))
HALF = torch.ones(8, dtype=torch.bfloat16)
CONJUGATE = torch.ones(8, dtype=torch.complex64).conj()
META = torch.ones(2, device="meta")
NEST = {"a": [TENSOR, PARAMETER], "b": (TENSOR,)}
ARRAY = np.arange(64.0).reshape(8, 8)
REVERSED = ARRAY[::-1]
READ_ONLY = ARRAY.view()
READ_ONLY.flags.writeable = False
OBJECTS = np.array([None, "x"], object)
OURS = ferry.to_numpy(TENSOR)
OUT = np.empty((8, 8), np.float32)


def _refused(call: Callable, *given: object, **arguments: object) -> None:
    try:
        call(*given, **arguments)
    except ferry.FerryError:
        return
    raise AssertionError("it was not refused")


def _write() -> None:
    with torch.no_grad(), ferry.writable(PARAMETER) as array:
        array[0] = 1


MAIN: dict[str, Callable[[], object]] = {
    "to_numpy, view": lambda: ferry.to_numpy(TENSOR),
    "to_numpy, copy": lambda: ferry.to_numpy(TENSOR, copy=True),
    "from_numpy, share": lambda: ferry.from_numpy(ARRAY),
    "from_numpy, copy": lambda: ferry.from_numpy(ARRAY, copy=True),
    "capsule out": lambda: np.from_dlpack(ferry.to_dlpack(TENSOR)),
    "capsule in": lambda: ferry.from_dlpack(ARRAY),
    "refused": lambda: _refused(ferry.to_numpy, CONJUGATE, copy=False),
}
OTHER: dict[str, Callable[[], object]] = {
    "to_numpy, view of a temporary": lambda: ferry.to_numpy(TENSOR.t()),
    "to_numpy, view of a parameter": lambda: ferry.to_numpy(PARAMETER),
    "to_numpy, bfloat16": lambda: ferry.to_numpy(HALF),
    "to_numpy, conjugate": lambda: ferry.to_numpy(CONJUGATE),
    "to_numpy, cast": lambda: ferry.to_numpy(TENSOR, dtype="float64"),
    "to_numpy, lazy": lambda: ferry.to_numpy(TENSOR, copy="lazy"),
    "to_numpy, out": lambda: ferry.to_numpy(TENSOR, out=OUT),
    "to_numpy, nest": lambda: ferry.to_numpy(NEST),
    "to_numpy, foreign producer": lambda: ferry.to_numpy(ferry.to_dlpack(ARRAY)),
    "from_numpy, packed": lambda: ferry.from_numpy(REVERSED),
    "from_numpy, read-only": lambda: ferry.from_numpy(READ_ONLY),
    "from_numpy, alias": lambda: ferry.from_numpy(OURS),
    "from_numpy, cast": lambda: ferry.from_numpy(ARRAY, dtype="float32"),
    "capsule out, dropped": lambda: ferry.to_dlpack(ARRAY, writable=True).__dlpack__(),
    "capsule in, to NumPy": lambda: ferry.from_dlpack(ARRAY, to="numpy"),
    "writable": _write,
    "stack": lambda: ferry.stack([TENSOR, TENSOR], to="numpy"),
    "to_python": lambda: ferry.to_python(PARAMETER),
    "plan": lambda: ferry.plan(TENSOR, copy=True),
    "refused: no memory": lambda: _refused(ferry.to_numpy, META),
    "refused: leaf of a nest": lambda: _refused(ferry.to_numpy, {"a": TENSOR, "b": META}),
    "refused: casting": lambda: _refused(ferry.to_numpy, TENSOR, dtype="int8", casting="safe"),
    "refused: value lost": lambda: _refused(ferry.to_numpy, TENSOR + 0.5, dtype="int8", casting="same_value"),
    "refused: argument": lambda: _refused(ferry.to_numpy, TENSOR, order="Z"),
    "refused: objects": lambda: _refused(ferry.from_numpy, OBJECTS),
    "refused: read-only": lambda: _refused(ferry.from_numpy, READ_ONLY, readonly="raise"),
    "refused: offer": lambda: _refused(ferry.to_dlpack, PARAMETER),
}
HELD = (TENSOR, PARAMETER, HALF, CONJUGATE, META, NEST, ARRAY, REVERSED, READ_ONLY, OBJECTS, OURS, OUT)
# What every conversion uses: a reference lost on each of these would be found only much later.
COMMON = (None, True, False, np.ndarray, torch.Tensor, np.dtype("float32"), np.dtype("float64"), "K", "same_kind")


def _counts() -> list[int]:
    return [sys.getrefcount(x) for x in HELD] + [sys.getrefcount(TENSOR.untyped_storage())]


def _common_counts() -> list[int]:
    return [sys.getrefcount(x) for x in COMMON]


def _soak(conversion: Callable[[], object], times: int) -> None:
    for _ in range(WARM_UP):
        conversion()
    gc.collect()
    for _ in range(3):  # other threads of the process take memory, too, but not each time
        counts, common = _counts(), _common_counts()
        blocks, resident = sys.getallocatedblocks(), resident_nbytes()
        for _ in range(times):
            conversion()
        gc.collect()
        grown_blocks, grown_nbytes = sys.getallocatedblocks() - blocks, resident_nbytes() - resident
        print(f"{times} times: {grown_blocks:+} blocks, {grown_nbytes:+} bytes resident")
        assert _counts() == counts
        assert max(abs(b - a) for a, b in zip(common, _common_counts(), strict=True)) < 100
        assert grown_blocks < max(300, times // 100)  # a leak is one for each conversion; caches fill by some hundred
        if grown_nbytes <= 2 << 20:
            break
    assert grown_nbytes <= 2 << 20


@pytest.mark.parametrize("kind", MAIN)
def test_f047_many_conversions_leave_nothing_behind(kind):
    _soak(MAIN[kind], MAIN_TIMES)


@pytest.mark.parametrize("kind", OTHER)
def test_f047_conversions_of_every_other_kind_leave_nothing_behind(kind):
    _soak(OTHER[kind], OTHER_TIMES)
