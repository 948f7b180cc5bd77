"""Tensors of every dtype in every kind of layout, made on the host; the same operations make them on a device."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from helpers import torch_dtypes as dtypes

__all__ = ["CASES", "Layout", "all_cases"]

Layout = Callable[[torch.Tensor], torch.Tensor]

PLAIN: dict[str, Layout] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.permute(2, 0, 1),
    "sliced": lambda x: x[:, 1::2, ::3],
    "expanded": lambda x: x[:1].expand(3, -1, -1),
    "0-d": lambda x: x[1, 2, 3],
    "empty": lambda x: x[:, :0],
}
NEGATIVE: dict[str, Layout] = {
    "negative": torch._neg_view,
    "negative and sliced": lambda x: torch._neg_view(x[:, ::2]),
}
CONJUGATED: dict[str, Layout] = {
    "conjugated": lambda x: x.conj(),
    "conjugated and transposed": lambda x: x.permute(2, 0, 1).conj(),
    "negative and conjugated": lambda x: torch._neg_view(x.conj()),
    "imaginary part of a conjugate": lambda x: x.conj().imag,
}
# What torch itself negates on the host, so that there is something to compare with.
NEGATABLE = [dtype for dtype in [*dtypes.NUMPY_HAS, torch.bfloat16] if dtype is not torch.bool]
NEGATABLE = [dtype for dtype in NEGATABLE if dtypes.name_of(dtype) not in ("uint16", "uint32", "uint64")]


def _layouts_of(dtype: torch.dtype) -> dict[str, Layout]:
    layouts = dict(PLAIN)
    if dtype is torch.float4_e2m1fn_x2:
        del layouts["0-d"]  # refused everywhere: two elements have no axis there
    if dtype in NEGATABLE:
        layouts |= NEGATIVE
    if dtype in (torch.complex64, torch.complex128):
        layouts |= CONJUGATED
    if dtype is torch.complex32:
        layouts["conjugated"] = CONJUGATED["conjugated"]
    return layouts


CASES = [(dtype, name, layout) for dtype in dtypes.CONVERTIBLE for name, layout in _layouts_of(dtype).items()]

all_cases = pytest.mark.parametrize(
    ("dtype", "layout"),
    [pytest.param(dtype, layout, id=f"{dtypes.name_of(dtype)} {name}") for dtype, name, layout in CASES],
)
