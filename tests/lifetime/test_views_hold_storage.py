"""A view holds the storage it shows: whatever becomes of the tensor, the values stay right."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

import numpy as np
import pytest
import torch

import tensorferry as ferry

SIZE = 1 << 16


def _scribble() -> list[torch.Tensor]:
    """Take up whatever memory was given back just now."""
    return [torch.full((SIZE,), -1.0) for _ in range(8)]


VIEWS: dict[str, tuple[Callable, Callable]] = {
    "whole": (ferry.to_numpy, lambda a: a),
    "slice": (lambda t: ferry.to_numpy(t[SIZE // 2 :: 3]), lambda a: a[SIZE // 2 :: 3]),
    "transposed": (lambda t: ferry.to_numpy(t.view(256, -1).t()), lambda a: a.reshape(256, -1).T),
    "one element": (lambda t: ferry.to_numpy(t[5]), lambda a: a[5]),
    "bits": (lambda t: ferry.to_numpy(t, dtype="bits"), lambda a: a.view(np.uint32)),
    "nest": (lambda t: ferry.to_numpy({"a": (t, t[1:])})["a"][1], lambda a: a[1:]),
    "copy=False": (lambda t: ferry.to_numpy(t, copy=False), lambda a: a),
    "lazy": (lambda t: ferry.to_numpy(t, copy="lazy"), lambda a: a),
    "NumPy's view of it": (lambda t: ferry.to_numpy(t)[1:][::-2].view(np.int32), lambda a: a[1:][::-2].view(np.int32)),
    "memoryview of it": (lambda t: memoryview(ferry.to_numpy(t)), lambda a: a),
    "tensor made of it": (lambda t: ferry.from_numpy(ferry.to_numpy(t)[2:]), lambda a: a[2:]),
    "to_dlpack": (lambda t: np.from_dlpack(ferry.to_dlpack(t, detach=True)), lambda a: a),
    "from_dlpack": (lambda t: ferry.from_dlpack(t, to="numpy", detach=True), lambda a: a),
    "from_dlpack to torch": (lambda t: ferry.from_dlpack(t, detach=True), lambda a: a),
}
every_view = pytest.mark.parametrize("view", VIEWS)


def _retarget(t: torch.Tensor) -> None:
    t.set_(torch.zeros(1).untyped_storage())


def _assign(t: torch.Tensor) -> None:
    t.data = torch.zeros(1)


LET_GO: dict[str, Callable[[torch.Tensor], None]] = {
    "del": lambda t: None,
    "set_": _retarget,
    "data =": _assign,
}


@every_view
@pytest.mark.parametrize("let_go", LET_GO)
def test_a_view_survives_what_happens_to_its_tensor(view, let_go):
    make, pick = VIEWS[view]
    tensor = torch.arange(SIZE, dtype=torch.float32)
    array = make(tensor)
    LET_GO[let_go](tensor)
    del tensor
    scratch = _scribble()
    np.testing.assert_array_equal(np.asarray(array), pick(np.arange(SIZE, dtype=np.float32)))
    assert all(bool((block == -1).all()) for block in scratch)


CONVERSIONS: dict[str, Callable[[torch.nn.Module], object]] = {
    "half": lambda m: m.half(),
    "double": lambda m: m.double(),
    "to a dtype": lambda m: m.to(torch.bfloat16),
    "to_empty": lambda m: m.to_empty(device="cpu"),
    "to meta": lambda m: m.to("meta"),
    "assigning load": lambda m: m.load_state_dict({"weight": torch.zeros(256, 256)}, assign=True),
    "new parameter": lambda m: setattr(m, "weight", torch.nn.Parameter(torch.zeros(1))),
}


@every_view
@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_a_view_of_a_weight_survives_conversions_of_its_model(view, conversion):
    make, pick = VIEWS[view]
    model = torch.nn.Linear(256, 256, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.arange(SIZE).view(256, 256))
    array = make(model.weight.view(-1).detach() if view != "whole" else model.weight)
    CONVERSIONS[conversion](model)
    del model
    scratch = _scribble()
    expected = pick(np.arange(SIZE, dtype=np.float32))
    np.testing.assert_array_equal(np.asarray(array).reshape(expected.shape), expected)
    del scratch


def test_a_view_of_a_gradient_survives_zero_grad():
    parameter = torch.nn.Parameter(torch.zeros(SIZE))
    (parameter * torch.arange(SIZE)).sum().backward()
    array = ferry.to_numpy(parameter.grad)
    torch.optim.SGD([parameter]).zero_grad(set_to_none=True)
    scratch = _scribble()
    np.testing.assert_array_equal(array, np.arange(SIZE, dtype=np.float32))
    del scratch


@every_view
def test_a_view_survives_collection_in_another_thread(view):
    make, pick = VIEWS[view]
    tensors = [torch.arange(SIZE, dtype=torch.float32)]
    array = make(tensors[0])
    dropping = threading.Thread(target=tensors.clear)
    dropping.start()
    dropping.join()
    scratch = _scribble()
    np.testing.assert_array_equal(np.asarray(array), pick(np.arange(SIZE, dtype=np.float32)))
    del scratch


# Torch cannot snapshot memory that is not its own, so "lazy" is a copy there.
@pytest.mark.parametrize("view", [name for name in VIEWS if name != "lazy"])
def test_the_last_view_may_die_in_another_thread(view):
    memory = np.arange(SIZE, dtype=np.float32)
    alive = weakref.ref(memory)
    views = [VIEWS[view][0](ferry.from_numpy(memory))]
    del memory
    assert alive() is not None
    dropping = threading.Thread(target=views.clear)
    dropping.start()
    dropping.join()
    assert alive() is None


@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize(
    "pick", [lambda a: a, lambda a: a[::2], lambda a: a[::-1]], ids=["whole", "strided", "reversed"]
)
def test_a_tensor_survives_the_array_it_was_made_of(pick, copy):
    array = np.arange(SIZE, dtype=np.float32)
    expected = pick(array).copy()
    tensor = ferry.from_numpy(pick(array), copy=copy)
    del array
    scratch = _scribble()
    np.testing.assert_array_equal(tensor.numpy(), expected)
    del scratch


def test_a_tensor_keeps_a_foreign_buffer_from_being_resized():
    buffer = bytearray(range(16))
    tensor = ferry.from_numpy(buffer)
    with pytest.raises(BufferError):
        buffer.extend(b"more")
    assert tensor.tolist() == list(range(16))
    del tensor
    buffer.extend(b"more")
    assert len(buffer) == 20
