"""``copy="lazy"``: a snapshot that costs nothing until someone writes, and never pulls memory from under anyone."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.plans import convert_as_planned
from helpers.subprocess import stdout_of

WRITES: dict[str, Callable[[torch.Tensor], Any]] = {
    "an in-place operation": lambda x: x.add_(1),
    "an assignment": lambda x: x.__setitem__(0, 9),
    "a view of it": lambda x: x[2:].zero_(),
    "its NumPy array": lambda x: x.numpy().fill(9),
    "an optimizer": lambda x: torch._foreach_add_([x], 1),
    "an out argument": lambda x: torch.add(x, 1, out=x),
    "its storage": lambda x: x.untyped_storage().fill_(7),
    "resize_": lambda x: x.resize_(1000),
    "set_": lambda x: x.set_(torch.zeros(8)),
    "data": lambda x: setattr(x, "data", torch.zeros(8)),
    "share_memory_": lambda x: x.share_memory_().zero_(),
    "an emptied storage": lambda x: x.untyped_storage().resize_(0),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_promise_2_no_write_reaches_a_lazy_snapshot(write: Callable[[torch.Tensor], Any]) -> None:
    x = torch.arange(8.0)
    assert ferry.plan(x, copy="lazy").path == "lazy"
    array = convert_as_planned(x, copy="lazy")
    write(x)
    gc.collect()
    assert array.tolist() == list(range(8))


def test_a_lazy_snapshot_moves_nothing_and_cannot_be_written() -> None:
    x = torch.arange(8.0)
    address = x.data_ptr()
    assert ferry.plan(x, copy="lazy").nbytes_moved == 0
    array = ferry.to_numpy(x, copy="lazy")
    assert array.ctypes.data == address
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True


def test_snapshots_are_independent_of_each_other() -> None:
    x = torch.zeros(4)
    first = ferry.to_numpy(x, copy="lazy")
    x.add_(1)
    second = ferry.to_numpy(x, copy="lazy")
    x.add_(1)
    assert (first.tolist(), second.tolist(), x.tolist()) == ([0] * 4, [1] * 4, [2] * 4)


def test_a_tensor_made_from_a_snapshot_does_not_write_into_it() -> None:
    x = torch.arange(4.0)
    array = ferry.to_numpy(x, copy="lazy")
    ferry.from_numpy(array).add_(5)
    assert array.tolist() == x.tolist() == [0, 1, 2, 3]


HOLDERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "an array of ours": ferry.to_numpy,
    "its NumPy array": lambda x: x.numpy(),
    "a DLPack consumer": np.from_dlpack,
    "a DLPack consumer of a view": lambda x: np.from_dlpack(x[:]),
    "a DLPack capsule": lambda x: x.__dlpack__(),
}


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_memory_that_someone_else_looks_at_is_copied(hold: Callable[[torch.Tensor], Any]) -> None:
    x = torch.arange(8.0)
    held = hold(x)
    assert ferry.plan(x, copy="lazy").path == "copy"
    array = convert_as_planned(x, copy="lazy")
    x.add_(1)
    assert array.tolist() == list(range(8))
    del held
    assert ferry.plan(x, copy="lazy").shares_memory == x.untyped_storage().resizable()


def test_a_live_view_stays_live_after_a_snapshot_came_and_went() -> None:
    x = torch.arange(8.0)
    consumer, ours = np.from_dlpack(x), ferry.to_numpy(x)
    snapshot = ferry.to_numpy(x, copy="lazy")
    x.add_(1)
    del snapshot
    gc.collect()
    assert consumer.tolist() == ours.tolist() == x.tolist()


def test_a_view_taken_after_a_snapshot_survives_it() -> None:
    x = torch.arange(8.0)
    snapshot = ferry.to_numpy(x, copy="lazy")
    ours, consumer = ferry.to_numpy(x), np.from_dlpack(x)
    x.add_(1)
    assert snapshot.tolist() == list(range(8))
    del snapshot
    gc.collect()
    assert ours.tolist() == consumer.tolist() == x.tolist()


def test_a_consumer_reads_a_large_tensor_safely_after_a_snapshot_is_gone() -> None:
    script = """
    import gc, numpy as np, torch, tensorferry as ferry
    x = torch.arange(1 << 22, dtype=torch.float32)
    consumer = np.from_dlpack(x)
    snapshot = ferry.to_numpy(x, copy="lazy")
    x.add_(1)
    del snapshot
    gc.collect()
    print(consumer[:3].tolist())
    """
    assert stdout_of(script) == "[1.0, 2.0, 3.0]"


@pytest.mark.parametrize("arguments", [{"dtype": "float64"}, {"order": "F"}], ids=["a cast", "an order"])
def test_what_needs_a_copy_anyway_is_copied(arguments: Any) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    array = convert_as_planned(x, copy="lazy", **arguments)
    x.zero_()
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_an_array_has_no_copy_on_write_and_is_copied() -> None:
    a = np.arange(4.0)
    copied = convert_as_planned(a, copy="lazy")
    a[:] = 9
    assert copied.tolist() == [0, 1, 2, 3]
    assert not copied.flags.writeable


def test_a_nest_is_snapshotted_leaf_by_leaf() -> None:
    nest = {"w": torch.ones(3), "b": [torch.zeros(2)]}
    snapshot = ferry.to_numpy(nest, copy="lazy")
    nest["w"].mul_(2)
    nest["b"][0].sub_(1)
    assert snapshot["w"].tolist() == [1, 1, 1]
    assert snapshot["b"][0].tolist() == [0, 0]
    assert {part.path for part in ferry.plan({"w": torch.ones(3)}, copy="lazy").parts.values()} == {"lazy"}


def test_a_default_device_does_not_matter() -> None:
    x = torch.arange(4.0)
    with torch.device("meta"):
        assert ferry.plan(x, copy="lazy").path == "lazy"
        assert ferry.to_numpy(x, copy="lazy").tolist() == [0, 1, 2, 3]
