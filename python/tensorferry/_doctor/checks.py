"""The doctor's small conversions, carried out to see whether they work here."""

from __future__ import annotations

import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry._native import core

__all__ = ["Check", "convert_both_ways"]


@dataclass(frozen=True)
class Check:
    """A small conversion that was carried out, and whether its values were right."""

    name: str
    ok: bool
    detail: str


def convert_both_ways(torch: Any) -> list[Check]:
    """Convert a few values each way and compare them with what was put in.

    Parameters
    ----------
    torch : module or None
        None when torch is not installed.
    """
    found = [_check("buffer to array", _buffer_to_array)]
    if torch is not None:
        found += [
            _check("tensor to array", lambda: _tensor_to_array(torch)),
            _check("array to tensor", lambda: _array_to_tensor(torch)),
            _check("bfloat16 to float32", lambda: _bfloat16_to_float32(torch)),
            _check("nest there and back", lambda: _nest_there_and_back(torch)),
        ]
    return found


def _check(name: str, run: Callable[[], tuple[bool, str]]) -> Check:
    try:
        ok, detail = run()
    except Exception as error:  # whatever goes wrong here is what a doctor is for
        return Check(name, False, f"{type(error).__name__}: {error}")
    return Check(name, ok, detail)


def _compared(got: Any, expected: Any, more: str = "") -> tuple[bool, str]:
    if got == expected:
        return True, "every value right" + more
    return False, f"got {got}, expected {expected}"


def _buffer_to_array() -> tuple[bool, str]:
    return _compared(core.to_numpy(array.array("d", [1.5, -2.0, 0.25])).tolist(), [1.5, -2.0, 0.25])


def _tensor_to_array(torch: Any) -> tuple[bool, str]:
    t = torch.tensor([[1.5, -2.0], [0.25, 8.0]])
    view = core.to_numpy(t)
    t[0, 0] = 4.0
    return _compared(view.tolist(), [[4.0, -2.0], [0.25, 8.0]], ", memory shared")


def _array_to_tensor(torch: Any) -> tuple[bool, str]:
    a = np.array([[1, -2], [3, 4]], dtype=np.int64)
    tensor = core.from_numpy(a)
    a[1, 1] = 9
    return _compared((tensor.dtype, tensor.tolist()), (torch.int64, [[1, -2], [3, 9]]), ", memory shared")


def _bfloat16_to_float32(torch: Any) -> tuple[bool, str]:
    converted = core.to_numpy(torch.tensor([1.0, -0.5, 384.0], dtype=torch.bfloat16), dtype="numpy")
    return _compared((converted.dtype.name, converted.tolist()), ("float32", [1.0, -0.5, 384.0]))


def _nest_there_and_back(torch: Any) -> tuple[bool, str]:
    nest = {"w": torch.tensor([1.0, 2.0]), "steps": [torch.tensor([3, 4]), 5]}
    back = core.from_numpy(core.to_numpy(nest))
    return _compared([back["w"].tolist(), back["steps"][0].tolist(), back["steps"][1]], [[1.0, 2.0], [3, 4], 5])
