"""Field cases: arrays whose dtype no tensor has, batches of arrays, and memory that two sides share."""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.memory import address
from helpers.subprocess import stdout_of


def _ragged() -> np.ndarray:
    frames = np.empty(2, object)
    frames[:] = [np.ones((2, 3)), np.ones((4, 3))]
    return frames


REFUSED = {
    "ragged frames": (_ragged, r"\(0,\) is a ndarray of shape \(2, 3\)"),
    "Python objects": (lambda: np.array([[None, 1]], object), r"\(0, 0\) is a NoneType"),
    "dates": (lambda: np.array(["2020-01-01"], "M8[D]"), r'view\("i8"\).*int64'),
    "durations": (lambda: np.array([5], "m8[ms]"), r"ms.*view\("),
    "extended precision": (lambda: np.ones(2, np.longdouble), "float64"),
    "extended complex": (lambda: np.ones(2, np.clongdouble), "complex128"),
    "text": (lambda: np.array(["a", "bc"]), "encode"),
    "bytes": (lambda: np.array([b"a"]), "encode"),
    "records": (lambda: np.zeros(2, [("x", "f4")]), r"x\['x'\]"),
    "raw bytes": (lambda: np.zeros(2, "V3"), "astype"),
    "masked": (lambda: np.ma.masked_array([1.0, 2.0], [True, False]), "filled"),
}


# A failed conversion kept a reference to the array, and its message was a bare TypeError.
@pytest.mark.parametrize("wrap", [lambda a: a, lambda a: {"leaf": [a]}], ids=["alone", "in a nest"])
@pytest.mark.parametrize("kind", REFUSED)
def test_f042_a_refused_array_is_named_and_let_go(kind, wrap):
    make, words = REFUSED[kind]
    array = make()
    before = sys.getrefcount(array)
    for _ in range(5):
        with pytest.raises(ferry.DTypeError, match=words):
            ferry.from_numpy(wrap(array))
    assert sys.getrefcount(array) == before


def test_f042_the_remedies_work():
    days = np.array(["1970-01-03", "NaT"], "M8[D]")
    lowest = np.iinfo(np.int64).min
    assert ferry.from_numpy(days.view("i8")).tolist() == [2, lowest]
    assert ferry.from_numpy(days, dtype="int64").tolist() == [2, lowest]
    assert ferry.from_numpy(np.ones(2, np.longdouble), dtype="float64").dtype is torch.float64
    assert ferry.from_numpy(np.ones(2, np.clongdouble), dtype="complex128").dtype is torch.complex128
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    assert ferry.from_numpy(masked.filled(-1)).tolist() == [-1.0, 2.0]


# One tensor per array and then a copy of each: orders of magnitude slower than one allocation.
@pytest.mark.parametrize("to", ["torch", "numpy"])
def test_f045_a_list_of_arrays_stacks_into_one_block(to):
    frames = [np.full((8, 8, 3), i, np.uint8) for i in range(4)]
    batch = ferry.stack(frames, to=to, dtype="float32")
    expected = np.stack(frames).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(batch), expected)
    assert str(batch.dtype).endswith("float32")
    assert batch.is_contiguous() if to == "torch" else batch.flags.c_contiguous


def test_f045_a_stack_mixes_layouts_and_libraries():
    grid = np.arange(12.0).reshape(3, 4)
    items = [grid, grid[::-1], torch.from_numpy(grid), grid.astype(">f8"), torch.from_numpy(grid.T.copy()).t()]
    np.testing.assert_array_equal(ferry.stack(items, to="numpy"), [grid, grid[::-1], grid, grid, grid])
    np.testing.assert_array_equal(ferry.stack(items).numpy(), [grid, grid[::-1], grid, grid, grid])


def test_f045_a_ragged_stack_names_the_first_item_that_differs():
    with pytest.raises(ferry.LayoutError, match=r"item 2 of shape \(3,\)"):
        ferry.stack([np.ones(2), np.ones(2), np.ones(3)])


# np.array of a list of tensors converts element by element.
def test_f046_a_list_of_tensors_becomes_a_list_of_arrays_or_one_array():
    tensors = [torch.full((4, 4), i, dtype=torch.float32) for i in range(3)]
    arrays = ferry.to_numpy(tensors)
    assert [array.ctypes.data for array in arrays] == [tensor.data_ptr() for tensor in tensors]
    one = ferry.stack(tensors, to="numpy")
    np.testing.assert_array_equal(one, np.arange(3, dtype=np.float32)[:, None, None] * np.ones((3, 4, 4), np.float32))


def test_f046_zero_dimensional_tensors_stack_into_a_vector():
    losses = [torch.tensor(0.5, requires_grad=True), torch.tensor(2.0), np.float32(3)]
    np.testing.assert_array_equal(ferry.stack(losses, to="numpy"), [0.5, 2, 3])


def test_f046_bfloat16_tensors_stack():
    tensors = [torch.ones(2, dtype=torch.bfloat16), torch.full((2,), 2.5, dtype=torch.bfloat16)]
    assert ferry.stack(tensors, to="numpy").dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(ferry.stack(tensors, to="numpy", dtype="float32"), [[1, 1], [2.5, 2.5]])


# An array made by .numpy() once dangled after the tensor was given another storage.
def test_f048_an_array_outlives_every_way_a_tensor_lets_go_of_its_memory():
    printed = stdout_of(
        """
        import gc, torch
        import tensorferry as ferry

        def retarget(t): t.set_(torch.zeros(1).untyped_storage())
        def assign(t): t.data = torch.zeros(1)
        for let_go in (retarget, assign):
            tensor = torch.arange(float(1 << 22))
            whole, part = ferry.to_numpy(tensor), ferry.to_numpy(tensor[1 << 20:][::2])
            let_go(tensor)
            del tensor
            gc.collect()
            scratch = [torch.full((1 << 22,), -1.0) for _ in range(4)]
            print(whole[-1] == (1 << 22) - 1, part[3] == (1 << 20) + 6, float(whole[:5].sum()))
        """
    )
    assert printed.splitlines() == ["True True 10.0"] * 2


# A library changed its caller's input through memory that the caller did not know was shared.
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64])
@pytest.mark.parametrize(
    "view",
    [lambda t: t, lambda t: t[1:], lambda t: t.t(), lambda t: t[0], lambda t: t[0, 0]],
    ids=["whole", "rows", "transposed", "one row", "zero-dimensional"],
)
def test_f050_views_of_tensors_are_read_only_and_stay_so(dtype, view):
    tensor = torch.ones(3, 4).to(dtype)
    array = ferry.to_numpy(view(tensor))
    assert address(array) == address(view(tensor))
    for alias in (array, array.view(), array[...], np.asarray(array), array.T):
        assert not alias.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            alias[...] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            alias.flags.writeable = True
    assert memoryview(array).readonly
    assert bool((tensor == torch.ones(3, 4).to(dtype)).all())


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2)], ids=str)
@pytest.mark.parametrize("copy", [None, False, "lazy"])
def test_f050_views_without_elements_are_read_only_too(shape, copy):
    array = ferry.to_numpy(torch.empty(shape), copy=copy)
    assert array.shape == shape
    assert not array.flags.writeable


def test_f050_the_plan_says_whether_memory_is_shared():
    tensor = torch.ones(3)
    assert ferry.plan(tensor).shares_memory
    assert not ferry.plan(tensor, copy=True).shares_memory
    assert ferry.plan(np.ones(3), to="torch").shares_memory
    assert ferry.shares_memory(ferry.to_numpy(tensor), tensor)
    assert not ferry.shares_memory(ferry.to_numpy(tensor, copy=True), tensor)


def test_f050_a_copy_protects_the_callers_array():
    array = np.ones(3)
    ferry.from_numpy(array, copy=True).add_(1)
    np.testing.assert_array_equal(array, [1, 1, 1])
    ferry.from_numpy(array).add_(1)
    np.testing.assert_array_equal(array, [2, 2, 2])
