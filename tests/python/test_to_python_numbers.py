"""``to_python`` of single numbers, which are read without an array between."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensorferry as ferry
from tensorferry._native import core

NUMBERS = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
NUMBERS |= {torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128}


@pytest.mark.parametrize("dtype", [d for d in vars(torch).values() if isinstance(d, torch.dtype)], ids=str)
def test_a_number_is_what_item_gives(dtype: torch.dtype) -> None:
    checked = 0
    for value in (0, 1, 5, -7, 2.5):
        try:
            x = torch.tensor(value).to(dtype)
            expected = x.item()
        except (RuntimeError, NotImplementedError, TypeError):
            continue  # no such dtype, or a value that it cannot hold
        found = ferry.to_python({"x": x, "list": [x]})
        assert found == {"x": expected, "list": [expected]}
        assert type(found["x"]) is type(expected)
        assert core.python_number(x) in (None, expected)
        checked += 1
    assert checked or dtype not in NUMBERS


@pytest.mark.parametrize("view", ["negative", "conjugate", "requires grad", "parameter", "part", "a snapshot"])
def test_numbers_of_views(view: str) -> None:
    pair = torch.tensor([3 - 4j, 1 + 2j])
    x = {
        "negative": lambda: torch._neg_view(torch.tensor(2.5)),
        "conjugate": lambda: pair.conj()[0],
        "requires grad": lambda: torch.tensor(2.5, requires_grad=True),
        "parameter": lambda: torch.nn.Parameter(torch.tensor(2.5)),
        "part": lambda: torch.arange(10.0)[7],
        "a snapshot": lambda: torch._lazy_clone(torch.tensor(2.5)),
    }[view]()
    assert ferry.to_python([x]) == [x.detach().item()]


@pytest.mark.parametrize(
    "x", [torch.ones(1), torch.ones(2, 2), torch.ones((), device="meta"), np.float32(1), 1.5, None]
)
def test_only_host_tensors_without_axes_are_numbers(x: object) -> None:
    assert core.python_number(x) is None
