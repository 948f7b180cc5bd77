"""``stack(out=...)``: a given array or tensor is filled, and nothing is filled that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry

ITEMS = [np.arange(3.0), torch.arange(3.0) + 10]
EXPECTED = np.array([[0, 1, 2], [10, 11, 12]])

DESTINATIONS: dict[str, Callable[[], Any]] = {
    "array": lambda: np.zeros((2, 3)),
    "array, float16": lambda: np.zeros((2, 3), "f2"),
    "array, bfloat16": lambda: np.zeros((2, 3), ml_dtypes.bfloat16),
    "array, complex": lambda: np.zeros((2, 3), "c16"),
    "array, Fortran order": lambda: np.zeros((3, 2)).T,
    "array, strided": lambda: np.zeros((4, 9))[::2, ::3],
    "array, reversed": lambda: np.zeros((2, 3))[::-1, ::-1],
    "array, big-endian": lambda: np.zeros((2, 3), ">f4"),
    "tensor": lambda: torch.zeros(2, 3, dtype=torch.float64),
    "tensor, bfloat16": lambda: torch.zeros(2, 3, dtype=torch.bfloat16),
    "tensor, transposed": lambda: torch.zeros(3, 2).T,
    "tensor, strided": lambda: torch.zeros(4, 9)[::2, ::3],
    "tensor, conjugate": lambda: torch.zeros(2, 3, dtype=torch.complex64).conj(),
    "tensor, negative": lambda: torch.zeros(2, 3, dtype=torch.complex64).conj().imag,
    "tensor, inference": lambda: torch.inference_mode()(lambda: torch.zeros(2, 3))(),
    "tensor with a snapshot": lambda: _with_snapshot()[0],
}


def _with_snapshot() -> tuple[torch.Tensor, np.ndarray]:
    tensor = torch.zeros(2, 3)
    return tensor, ferry.to_numpy(tensor, copy="lazy")


@pytest.mark.parametrize("to", ["torch", "numpy"])
@pytest.mark.parametrize("kind", DESTINATIONS)
def test_the_destination_is_filled_and_returned(kind, to):
    out = DESTINATIONS[kind]()
    assert ferry.stack(ITEMS, out=out, to=to) is out
    values = np.asarray(out) if isinstance(out, np.ndarray) else np.array(out.tolist())
    np.testing.assert_array_equal(values.astype(complex), EXPECTED)


def test_nothing_around_a_strided_destination_changes():
    whole = np.full((4, 9), -1.0)
    ferry.stack(ITEMS, out=whole[::2, ::3])
    expected = np.full((4, 9), -1.0)
    expected[::2, ::3] = EXPECTED
    np.testing.assert_array_equal(whole, expected)


def test_a_snapshot_of_the_destination_keeps_its_values():
    out, snapshot = _with_snapshot()
    ferry.stack(ITEMS, out=out)
    assert not snapshot.any()


def test_filling_a_tensor_is_an_in_place_operation_to_autograd():
    leaf = torch.ones(2, 3, requires_grad=True)
    saved = torch.ones(2, 3)
    result = (leaf * saved).sum()
    version = saved._version
    ferry.stack(ITEMS, out=saved)
    assert saved._version > version
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def _overlapping(x: np.ndarray) -> np.ndarray:
    return np.lib.stride_tricks.as_strided(x, (2, 3), (8, 8))


class Shifted(torch.Tensor):
    """Is read through its own ``__dlpack__``, from other memory."""

    def __dlpack__(self, **arguments: Any) -> Any:
        return (self.as_subclass(torch.Tensor) + 1).__dlpack__(**arguments)


REFUSED: dict[str, tuple[Callable[[], Any], dict[str, Any], type[ferry.FerryError]]] = {
    "other shape": (lambda: np.zeros((3, 2)), {}, ferry.BufferMismatchError),
    "shape that would broadcast": (lambda: np.zeros((1, 2, 3)), {}, ferry.BufferMismatchError),
    "other shape, tensor": (lambda: torch.zeros(2), {}, ferry.BufferMismatchError),
    "read-only array": (lambda: ferry.to_numpy(torch.zeros(2, 3)), {}, ferry.ReadOnlyError),
    "broadcast array": (lambda: np.broadcast_to(np.zeros(3), (2, 3)), {}, ferry.ReadOnlyError),
    "overlapping elements": (lambda: _overlapping(np.zeros(9)), {}, ferry.BufferMismatchError),
    "expanded tensor": (lambda: torch.zeros(3).expand(2, 3), {}, ferry.BufferMismatchError),
    "dtype it is not of": (lambda: np.zeros((2, 3)), {"dtype": "float32"}, ferry.BufferMismatchError),
    "dtype it is not of, tensor": (lambda: torch.zeros(2, 3), {"dtype": "float64"}, ferry.BufferMismatchError),
    "cast too far": (lambda: np.zeros((2, 3), int), {}, ferry.DTypeError),
    "cast too far, tensor": (lambda: torch.zeros(2, 3, dtype=torch.int32), {}, ferry.DTypeError),
    "tensor that requires grad": (lambda: torch.zeros(2, 3, requires_grad=True), {}, ferry.BufferMismatchError),
    "sparse tensor": (lambda: torch.zeros(2, 3).to_sparse(), {}, ferry.LayoutError),
    "meta tensor": (lambda: torch.zeros(2, 3, device="meta"), {}, ferry.DeviceError),
    "zero tensor": (lambda: torch._efficientzerotensor((2, 3)), {}, ferry.ReadOnlyError),
    "tensor that exports itself": (lambda: torch.zeros(2, 3).as_subclass(Shifted), {}, ferry.BufferMismatchError),
    "packed tensor": (
        lambda: torch.zeros(2, 3, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
        {},
        ferry.DTypeError,
    ),
    "masked array": (lambda: np.ma.zeros((2, 3)), {}, ferry.ArgumentError),
    "array of text": (lambda: np.zeros((2, 3), "U1"), {}, ferry.DTypeError),
    "list": (lambda: [[0, 0, 0], [0, 0, 0]], {}, ferry.ArgumentError),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_destination_that_does_not_fit_is_refused_and_left_alone(kind):
    make, arguments, error = REFUSED[kind]
    out = make()
    with pytest.raises(error) as caught:
        ferry.stack(ITEMS, out=out, **arguments)
    assert caught.value.instead
    if isinstance(out, np.ndarray) and out.dtype.kind in "fi":
        assert not np.asarray(out).any()
    elif isinstance(out, torch.Tensor) and out.device.type == "cpu" and out.layout is torch.strided:
        assert out._version == 0


@pytest.mark.parametrize("wrap", [np.asarray, torch.from_numpy], ids=["array", "tensor"])
def test_a_destination_over_an_item_is_refused(wrap):
    memory = np.zeros(9)
    for item in (memory[:3], memory[3:6], torch.from_numpy(memory)[2:5], ferry.to_numpy(torch.from_numpy(memory))[4:7]):
        with pytest.raises(ferry.BufferMismatchError, match="overlaps"):
            ferry.stack([np.ones(3), item], out=wrap(memory[:6].reshape(2, 3)))
    assert not memory.any()
    ferry.stack([np.ones(3), memory[6:]], out=wrap(memory[:6].reshape(2, 3)))
    assert memory.tolist() == [1, 1, 1, 0, 0, 0, 0, 0, 0]
