"""The table of docs/sharing-and-copying.md: what becomes of an array when its tensor's memory is moved in place.

An array that is left behind points to freed memory. It is never read here: that the tensor now lies elsewhere, while
the array stayed and copied nothing, is what is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry

VALUES = [1.0, 2.0, 3.0, 4.0]

MOVES: dict[str, Callable[[torch.Tensor], Any]] = {
    "resize_": lambda t: t.resize_(4096),
    "storage resize_": lambda t: t.untyped_storage().resize_(1 << 16),
    "storage freed": lambda t: t.untyped_storage().resize_(0),
    "share_memory_": lambda t: t.share_memory_(),
}
REPLACEMENTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "set_": lambda t: t.set_(torch.zeros(2).untyped_storage()),
    "data assigned": lambda t: setattr(t, "data", torch.zeros(4)),
    "resized smaller": lambda t: t.resize_(2),
}
BRIDGES: dict[str, Callable[[torch.Tensor], np.ndarray[Any, Any]]] = {
    "to_numpy": ferry.to_numpy,
    "numpy()": lambda t: t.numpy(),
    "np.from_dlpack": np.from_dlpack,
}


@pytest.mark.parametrize("copy", ["lazy", True])
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES.keys())
def test_a_snapshot_or_copy_keeps_its_values(move: Callable[[torch.Tensor], Any], copy: Any) -> None:
    t = torch.tensor(VALUES)
    kept = ferry.to_numpy(t, copy=copy)
    move(t)
    del t
    assert kept.tolist() == VALUES


@pytest.mark.parametrize("bridge", ["to_numpy", "np.from_dlpack"])
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES.keys())
def test_a_view_and_a_dlpack_array_are_left_behind(move: Callable[[torch.Tensor], Any], bridge: str) -> None:
    t = torch.tensor(VALUES)
    left = BRIDGES[bridge](t)
    assert left.ctypes.data == t.data_ptr()
    move(t)
    assert left.ctypes.data != t.untyped_storage().data_ptr()


@pytest.mark.parametrize("move", ["resize_", "storage resize_", "storage freed"])
def test_numpy_makes_torch_refuse_to_resize(move: str) -> None:
    t = torch.tensor(VALUES)
    array = t.numpy()
    with pytest.raises(RuntimeError, match="not resizable"):
        MOVES[move](t)
    assert array.tolist() == VALUES


def test_numpy_does_not_keep_torch_from_moving_to_shared_memory() -> None:
    t = torch.tensor(VALUES)
    left = t.numpy()
    t.share_memory_()
    assert left.ctypes.data != t.data_ptr()


@pytest.mark.parametrize("bridge", ["to_numpy", "numpy()"])
@pytest.mark.parametrize("replace", REPLACEMENTS.values(), ids=REPLACEMENTS.keys())
def test_an_array_survives_that_the_storage_is_replaced(replace: Callable[[torch.Tensor], Any], bridge: str) -> None:
    t = torch.tensor(VALUES)
    array = BRIDGES[bridge](t)
    replace(t)
    del t
    torch.zeros(4)  # would take the memory if it were free
    assert array.tolist() == VALUES


@pytest.mark.parametrize("replace", ["set_", "data assigned"])
def test_a_dlpack_array_holds_the_tensor_and_not_the_storage_that_was_replaced(replace: str) -> None:
    t = torch.tensor(VALUES)
    memory = t.untyped_storage()
    alone = torch._C._storage_Use_Count(memory._cdata)
    left = np.from_dlpack(t)
    assert torch._C._storage_Use_Count(memory._cdata) == alone
    REPLACEMENTS[replace](t)
    assert torch._C._storage_Use_Count(memory._cdata) == alone - 1  # this test's own; then none
    assert left.tolist() == VALUES


@pytest.mark.parametrize("convert", [lambda m: m.half(), lambda m: m.to(torch.float64)], ids=["half", "to"])
def test_arrays_of_a_model_survive_its_conversion(convert: Callable[[torch.nn.Module], Any]) -> None:
    model = torch.nn.Linear(2, 2)
    expected = model.weight.tolist()
    arrays = [ferry.to_numpy(model.weight), model.weight.detach().numpy(), np.from_dlpack(model.weight.detach())]
    convert(model)
    del model
    for array in arrays:
        assert array.tolist() == expected


LOOKERS: dict[str, Callable[[torch.Tensor], object]] = {
    "an array of ours": ferry.to_numpy,
    "an array of a slice": lambda t: ferry.to_numpy(t[1:]),
    "a producer of ours": ferry.to_dlpack,
    "a consumer of DLPack": np.from_dlpack,
    "numpy()": lambda t: t.numpy(),
    "shared with processes": lambda t: t.share_memory_(),
    "a view of torch's own": lambda t: t[1:],
}


@pytest.mark.parametrize("look", LOOKERS.values(), ids=LOOKERS.keys())
def test_lazy_copies_at_once_while_somebody_else_looks(look: Callable[[torch.Tensor], object]) -> None:
    t = torch.tensor(VALUES)
    assert ferry.plan(t, copy="lazy").path == "lazy"
    held = look(t)
    assert ferry.plan(t, copy="lazy").path == "copy"
    kept = ferry.to_numpy(t, copy="lazy")
    t.add_(1)
    assert kept.tolist() == VALUES
    assert held is not None


@pytest.mark.parametrize("bridge", BRIDGES)
def test_a_view_taken_after_a_lazy_snapshot_sees_the_tensor(bridge: str) -> None:
    t = torch.tensor(VALUES)
    snapshot = ferry.to_numpy(t, copy="lazy")
    live = BRIDGES[bridge](t)
    t.add_(1)
    assert live.tolist() == [2, 3, 4, 5]
    assert snapshot.tolist() == VALUES


def test_lazy_copies_at_once_when_autograd_has_saved_the_tensor() -> None:
    w = torch.tensor(VALUES, requires_grad=True)
    assert ferry.plan(w, copy="lazy").path == "lazy"
    loss = (w * w).sum()
    assert ferry.plan(w, copy="lazy").path == "copy"
    loss.backward()
