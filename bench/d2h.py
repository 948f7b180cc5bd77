"""Tensors on a CUDA device to arrays: contiguous ones at the speed of the link, and others no slower.

These cases need a GPU: ``tensorferry bench d2h --device cuda``. The limit is the driver's own copy into pinned memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorferry.bench import Case, Inputs, Point, at_least, at_most, best, naive, ours, share_of_limit
from tensorferry.bench.cases._device import CUPY, SIDE_STREAM, cupy_array, cupy_into, link_inputs, on_side_stream
from tensorferry.bench.cases._inputs import as_array, random_tensor
from tensorferry.bench.cases._layouts import laid_out
from tensorferry.bench.cases._points import KIB, MIB, from_size, sizes

__all__ = ["CASES"]

_CPU = "t.cpu().numpy()"
_PACKED = "ferry.to_numpy(packed)"
_FULL = "ferry.to_numpy(t)"
_SIZES = (4 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB)
_PERMUTATIONS = {"NCHW to NHWC": (0, 2, 3, 1), "heads first": (0, 2, 1, 3), "four axes reversed": (3, 2, 1, 0)}


def _contiguous(rng: np.random.Generator, nbytes: int, device: str = "cuda") -> Inputs:
    values = random_tensor(rng, (nbytes // 4,), "float32")
    return link_inputs(values.to(device), values)


def _in_layout(rng: np.random.Generator, nbytes: int, layout: str, dtype: str, device: str = "cuda") -> Inputs:
    t = laid_out(rng, nbytes, layout, dtype, device=device)
    return link_inputs(t, t.cpu().contiguous(), packed=t.contiguous())


def _permuted(rng: np.random.Generator, nbytes: int, layout: str, device: str = "cuda") -> Inputs:
    values = random_tensor(rng, (nbytes // 4 // (16 * 64 * 32), 16, 64, 32), "float32")
    t = values.to(device).permute(_PERMUTATIONS[layout])
    return link_inputs(t, values.permute(_PERMUTATIONS[layout]), packed=t.contiguous())


def _cast(rng: np.random.Generator, nbytes: int, device: str = "cuda") -> Inputs:
    import torch

    values = random_tensor(rng, (nbytes // 4,), "float32")
    t = values.to(device)
    narrow = torch.empty(t.shape, dtype=torch.bfloat16).pin_memory()
    return link_inputs(t, values, narrow=narrow, rounded=as_array(values.bfloat16()))


def _cast_on_device(inputs: Inputs) -> Any:
    host = inputs["narrow"]
    host.copy_(inputs["t"].bfloat16(), non_blocking=True)
    inputs["event"].record()
    inputs["event"].synchronize()
    return as_array(host)


def _either(result: Any, expected: dict[str, Any]) -> int:
    """Compare with the values of the result's own dtype: the candidates that do not cast are there for their time."""
    wanted = expected[result.dtype.name]
    assert np.array_equal(result, wanted), f"wrong values of dtype {result.dtype}"
    return int(result.size)


def _nbytes(inputs: Inputs) -> int:
    return int(inputs["t"].numel() * inputs["t"].element_size())


def _is_small(point: Point) -> bool:
    return int(point["nbytes"]) <= 64 * KIB


_LAYOUTS = ("transposed", "every other row", "every other column", "pitched")

CASES = (
    Case(
        name="d2h.pinned",
        title="A contiguous tensor into pinned memory that exists",
        setup=_contiguous,
        candidates=(
            ours("ferry.to_numpy(t, out=out)"),
            best(SIDE_STREAM, on_side_stream),
            naive(_CPU),
            best(CUPY, cupy_into, needs=("cupy",)),
        ),
        expected=lambda inputs: inputs["values"],
        nbytes=_nbytes,
        limit="d2h",
        goals=(share_of_limit(0.99, from_size(64 * MIB)),),
        points=sizes(_SIZES),
        quick=sizes([4 * MIB]),
        destinations=("out", "host"),
        devices=("cuda",),
        plan="ferry.plan(t, out=out)",
    ),
    Case(
        name="d2h.array",
        title="A contiguous tensor to a new array",
        setup=_contiguous,
        candidates=(
            ours("ferry.to_numpy(t)"),
            naive(_CPU),
            best("t.contiguous().cpu().numpy()"),
            best(SIDE_STREAM, on_side_stream),
            best("cupy.asnumpy(cupy.from_dlpack(t))", cupy_array, needs=("cupy",)),
        ),
        expected=lambda inputs: inputs["values"],
        nbytes=_nbytes,
        limit="d2h",
        goals=(at_least(3, _CPU, from_size(16 * MIB)), at_most(0.7, _CPU, _is_small)),
        points=sizes(_SIZES),
        quick=sizes([4 * KIB, 4 * MIB]),
        destinations=("out", "host"),
        devices=("cuda",),
        plan="ferry.plan(t)",
    ),
    Case(
        name="d2h.layout",
        title="A transposed or strided tensor to a new array in C order",
        setup=_in_layout,
        candidates=(
            ours('ferry.to_numpy(t, copy=True, order="C")'),
            best(_PACKED),
            naive(_CPU),
            best("t.contiguous().cpu().numpy()"),
            best(SIDE_STREAM, on_side_stream),
            best('cupy.asnumpy(cupy.from_dlpack(t), order="C")', cupy_array, needs=("cupy",)),
        ),
        expected=lambda inputs: inputs["values"],
        nbytes=_nbytes,
        limit="d2h",
        goals=(at_least(0.97, _PACKED, from_size(16 * MIB)),),
        points=tuple(
            {"nbytes": nbytes, "layout": layout, "dtype": dtype}
            for nbytes in (MIB, 16 * MIB, 128 * MIB)
            for layout in _LAYOUTS
            for dtype in (("uint8", "float16", "float32", "float64") if nbytes == 16 * MIB else ("float32",))
        ),
        quick=tuple({"nbytes": 4 * MIB, "layout": layout, "dtype": "float32"} for layout in _LAYOUTS[::2]),
        destinations=("out", "host"),
        devices=("cuda",),
        plan='ferry.plan(t, copy=True, order="C")',
    ),
    Case(
        name="d2h.permuted",
        title="A dense tensor with its axes in another order, which its array keeps: no kernel at all",
        setup=_permuted,
        candidates=(
            ours('ferry.to_numpy(t, order="K")'),
            best(_PACKED),
            naive(_CPU),
            best("t.contiguous().cpu().numpy()"),
        ),
        expected=lambda inputs: inputs["values"],
        nbytes=_nbytes,
        limit="d2h",
        goals=(at_most(1.02, _PACKED, from_size(16 * MIB)),),
        points=tuple(
            {"nbytes": nbytes, "layout": layout} for nbytes in (MIB, 16 * MIB, 64 * MIB) for layout in _PERMUTATIONS
        ),
        quick=({"nbytes": 4 * MIB, "layout": "NCHW to NHWC"},),
        destinations=("out", "host"),
        devices=("cuda",),
        plan='ferry.plan(t, order="K")',
    ),
    Case(
        name="d2h.cast",
        title="float32 to bfloat16 on the way: half of the bytes cross the link",
        setup=_cast,
        candidates=(
            ours('ferry.to_numpy(t, dtype="bfloat16")'),
            best(_FULL),
            best("narrow.copy_(t.bfloat16(), non_blocking=True), one event", _cast_on_device),
            naive("t.bfloat16().cpu()", lambda inputs: as_array(inputs["t"].bfloat16().cpu())),
        ),
        expected=lambda inputs: {"float32": inputs["values"], "bfloat16": inputs["rounded"]},
        check=_either,
        nbytes=lambda inputs: _nbytes(inputs) // 2,
        limit="d2h",
        goals=(at_most(0.52, _FULL, from_size(16 * MIB)),),
        points=sizes([64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB]),
        quick=sizes([4 * MIB]),
        destinations=("narrow", "host", "out"),
        devices=("cuda",),
        plan='ferry.plan(t, dtype="bfloat16")',
    ),
)
