"""``stack``: many tensors of any kind into one, against ``numpy.stack`` and ``torch.stack``."""

from __future__ import annotations

import collections
import itertools
import tracemalloc
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

import tensorferry as ferry
from helpers.counting_capsules import CountingCapsule, Producer
from helpers.torch_dtypes import CONVERTIBLE, NUMPY_HAS, NUMPY_NAMES, SMALL_INTEGERS, array_dtype, name_of, sample


def _foreign() -> Producer:
    made = CountingCapsule((2, 3))
    made.values[:6] = [1, 2, 3, 4, 5, 6]
    return Producer(made)


GRID = np.arange(1, 7).reshape(2, 3)
ITEMS: dict[str, tuple[Callable[[], Any], Any]] = {
    "array": (lambda: GRID * 1.5, GRID * 1.5),
    "reversed array": (lambda: GRID[::-1, ::-1].astype("f8")[::-1], GRID[:, ::-1]),
    "big-endian array": (lambda: GRID.astype(">i2"), GRID),
    "read-only array": (lambda: np.broadcast_to(np.int8(7), (2, 3)), np.full((2, 3), 7)),
    "bool array": (lambda: GRID > 3, GRID > 3),
    "tensor": (lambda: torch.from_numpy(GRID), GRID),
    "transposed tensor": (lambda: torch.from_numpy(GRID.T.copy()).T, GRID),
    "conjugate tensor": (lambda: torch.from_numpy(GRID * (1 + 2j)).conj(), GRID * (1 - 2j)),
    "negative tensor": (lambda: torch.from_numpy(GRID * (1 + 2j)).conj().imag, GRID * -2),
    "zero tensor": (lambda: torch._efficientzerotensor((2, 3)), np.zeros((2, 3))),
    "bfloat16 tensor": (lambda: torch.from_numpy(GRID).bfloat16(), GRID),
    "float8 array": (lambda: GRID.astype(ml_dtypes.float8_e4m3fn), GRID),
    "foreign producer": (_foreign, GRID),
    "our own offer": (lambda: ferry.to_dlpack(GRID.astype("f4")), GRID),
    "view of a tensor": (lambda: ferry.to_numpy(torch.from_numpy(GRID)), GRID),
    "snapshot": (lambda: ferry.to_numpy(torch.from_numpy(GRID.copy()).clone(), copy="lazy"), GRID),
}


@pytest.mark.parametrize("to", ["torch", "numpy"])
@pytest.mark.parametrize("kind", ITEMS)
def test_every_kind_of_item_mixes_with_every_other(kind, to):
    make, values = ITEMS[kind]
    items = [make(), ITEMS["tensor"][0](), make(), ITEMS["bool array"][0]()]
    stacked = ferry.stack(items, to=to, dtype="complex128")
    np.testing.assert_array_equal(np.asarray(stacked), np.stack([values, GRID, values, GRID > 3]).astype(complex))


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(NUMPY_NAMES, 2)))
def test_the_dtype_is_that_of_numpys_promotion(first, second):
    arrays = [np.ones(2, first), np.ones(2, second)]
    expected = np.stack(arrays)
    stacked = ferry.stack(arrays, to="numpy")
    assert stacked.dtype == expected.dtype
    np.testing.assert_array_equal(stacked, expected)
    tensors = [torch.from_numpy(arrays[0]), arrays[1]]
    assert name_of(ferry.stack(tensors).dtype) == expected.dtype.name


@pytest.mark.parametrize("dtype", CONVERTIBLE, ids=name_of)
def test_tensors_of_one_dtype_keep_every_bit(dtype):
    tensor = sample(dtype)
    stacked = ferry.stack([tensor, tensor], to="numpy")
    assert stacked.dtype == array_dtype(dtype)
    one = ferry.to_numpy(tensor, copy=True)
    assert stacked.tobytes() == one.tobytes() * 2
    assert stacked.shape == (2, *one.shape)


STAYS = [dtype for dtype in NUMPY_HAS if dtype not in SMALL_INTEGERS] + [torch.bfloat16, torch.float8_e5m2]


@pytest.mark.parametrize("dtype", STAYS, ids=name_of)
def test_tensors_stack_as_torch_stacks_them(dtype):
    tensor = sample(dtype)
    stacked = ferry.stack([tensor, tensor.clone()])
    expected = torch.stack([tensor, tensor])
    assert stacked.dtype is dtype
    assert stacked.stride() == expected.stride()
    unsigned = torch.uint8
    assert torch.equal(stacked.view(unsigned), expected.view(unsigned))


@pytest.mark.parametrize(
    "layout",
    [lambda a: a, lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::2], lambda a: a[1], lambda a: a[1, 1:2][0]],
    ids=["C order", "Fortran order", "reversed", "strided", "row", "scalar"],
)
@pytest.mark.parametrize("count", [1, 2, 7])
def test_any_layout_gives_a_private_writable_array_in_c_order(layout, count):
    arrays = [layout(np.arange(12.0).reshape(3, 4) + i) for i in range(count)]
    for items in (arrays, [torch.as_tensor(np.array(a, order="C")) for a in arrays], tuple(arrays)):
        stacked = ferry.stack(items, to="numpy")
        np.testing.assert_array_equal(stacked, np.stack(arrays))
        assert stacked.flags.c_contiguous
        assert stacked.flags.writeable
        assert stacked.flags.owndata
        assert not any(ferry.shares_memory(stacked, item) for item in items)
        assert ferry.stack(items).is_contiguous()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), ()], ids=str)
@pytest.mark.parametrize("to", ["torch", "numpy"])
def test_empty_and_zero_dimensional_items(shape, to):
    stacked = ferry.stack([np.ones(shape, "f4"), torch.ones(shape)], to=to)
    assert tuple(stacked.shape) == (2, *shape)
    np.testing.assert_array_equal(np.asarray(stacked), np.ones((2, *shape)))


def test_numpy_scalars_deques_and_buffers_are_items_too():
    assert ferry.stack([np.float32(1), np.int8(2)], to="numpy").tolist() == [1, 2]
    assert ferry.stack(collections.deque([b"ab", bytearray(b"cd")]), to="numpy").tolist() == [[97, 98], [99, 100]]


class _Shrinking:
    """A producer that takes items away from the list while one is read."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        del self.items[1:]
        return np.ones(2)


def test_a_list_that_shrinks_meanwhile_is_stacked_as_it_was():
    items: list[Any] = []
    items += [_Shrinking(items), np.zeros(2), np.ones(2)]
    assert ferry.stack(items).tolist() == [[1, 1], [0, 0], [1, 1]]


def test_many_items_of_mixed_kinds_keep_their_places():
    arrays = [np.full((3, 50), i, ("f4", "i2", ">f8", "u1")[i % 4]) for i in range(200)]
    items = [torch.from_numpy(a) if i % 4 < 2 else a for i, a in enumerate(arrays)]
    stacked = ferry.stack(items, dtype="float64")
    np.testing.assert_array_equal(stacked.numpy(), np.stack(arrays))


def test_the_result_is_the_only_allocation():
    tensors = [torch.zeros(64, 1024) for _ in range(16)]
    ferry.stack(tensors, to="numpy")
    tracemalloc.start()
    stacked = ferry.stack(tensors, to="numpy", dtype="float64")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert stacked.nbytes == 16 * 64 * 1024 * 8
    assert stacked.nbytes <= peak < stacked.nbytes + 100_000


CASTS = [("float32", "float64"), ("float64", "float16"), ("int64", "int8"), ("int16", "complex64"), ("bool", "int32")]


@pytest.mark.parametrize(("source", "target"), CASTS, ids=lambda name: name)
def test_a_dtype_casts_in_the_same_pass(source, target):
    arrays = [np.arange(4).astype(source), np.arange(4)[::-1].astype(source)]
    expected = np.stack(arrays).astype(target)
    for spelling in (target, np.dtype(target), getattr(torch, target)):
        for to in ("numpy", "torch"):
            stacked = ferry.stack(arrays, to=to, dtype=spelling)
            np.testing.assert_array_equal(np.asarray(stacked), expected)
            assert name_of(stacked.dtype).removeprefix("torch.") == target


def test_a_dtype_brings_together_what_numpy_cannot():
    items = [torch.tensor([1.5]).bfloat16(), np.array([2.5], ml_dtypes.float8_e5m2), torch.tensor([3.5])]
    with pytest.raises(ferry.DTypeError, match="no rule"):
        ferry.stack(items)
    assert ferry.stack(items, dtype="float32").tolist() == [[1.5], [2.5], [3.5]]
    assert ferry.stack(items, dtype=torch.bfloat16).dtype is torch.bfloat16
    assert ferry.stack(items, to="numpy", dtype="numpy").dtype == np.float32


def test_consent_to_counts_of_dates_and_to_rounding_holds_for_items():
    days = np.array(["1970-01-03"], "M8[D]")
    assert ferry.stack([days, np.array([5])], dtype="int64").tolist() == [[2], [5]]
    assert ferry.stack([np.ones(2, np.longdouble)], dtype="float64").dtype is torch.float64


def test_the_cast_that_is_refused_is_named_with_a_remedy_that_works():
    item = np.array([1.5])
    with pytest.raises(ferry.DTypeError, match="item 1") as caught:
        ferry.stack([np.array([1]), item], dtype="int64")
    assert 'casting="unsafe"' in caught.value.instead
    whole = ferry.to_numpy(item, dtype="int64", casting="unsafe")
    assert ferry.stack([np.array([1]), whole], dtype="int64").tolist() == [[1], [1]]


def test_two_float4_elements_share_a_byte_in_torch_only():
    packed = torch.full((2,), 0x21, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    assert ferry.stack([packed], to="numpy").tolist() == [[0.5, 1.0, 0.5, 1.0]]
    assert ferry.stack([packed], dtype="float32").tolist() == [[0.5, 1.0, 0.5, 1.0]]
    asked = ferry.stack([np.ones(2)], to="numpy", dtype="float4_e2m1fn_x2")
    assert asked.dtype == ml_dtypes.float4_e2m1fn
    with pytest.raises(ferry.DTypeError, match="two elements"):
        ferry.stack([packed])


@pytest.mark.parametrize("device", ["cpu", "meta", torch.device("cpu")], ids=str)
def test_the_result_goes_to_the_device_at_last(device):
    stacked = ferry.stack([np.ones(2), np.zeros(2)], device=device)
    assert stacked.device == torch.device(device)
    assert tuple(stacked.shape) == (2, 2)


def test_default_devices_and_modes_of_torch_do_not_touch_the_result():
    from torch._subclasses import FakeTensorMode

    real = torch.ones(2)
    with torch.device("meta"):
        assert ferry.stack([real]).tolist() == [[1, 1]]
    with FakeTensorMode():
        assert ferry.stack([real, np.zeros(2)]).tolist() == [[1, 1], [0, 0]]

    def transformed(x: torch.Tensor) -> torch.Tensor:
        assert ferry.stack([real]).tolist() == [[1, 1]]
        return x

    assert torch.func.vmap(transformed)(torch.ones(2)).tolist() == [1, 1]


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_what_is_differentiated_is_refused_for_a_tensor_and_read_for_an_array():
    leaf = torch.ones(2, requires_grad=True)
    for item in (leaf, leaf * 2, torch.nn.Parameter(torch.ones(2))):
        for arguments in ({}, {"out": torch.zeros(2, 2)}, {"out": torch.zeros(2, 2), "to": "numpy"}):
            with torch.no_grad(), pytest.raises(ferry.AutogradError, match="item 1"):
                ferry.stack([torch.ones(2), item], **arguments)
        np.testing.assert_array_equal(ferry.stack([item], to="numpy"), item.detach()[None])
    with forward_ad.dual_level(), pytest.raises(ferry.AutogradError, match="tangent"):
        ferry.stack([forward_ad.make_dual(torch.ones(2), torch.ones(2))])
    assert ferry.stack([leaf.detach()]).tolist() == [[1, 1]]


REFUSED: dict[str, tuple[Callable[[], Any], type[ferry.FerryError], str]] = {
    "nothing": (lambda: ferry.stack([]), ferry.LayoutError, "no items"),
    "an array": (lambda: ferry.stack(np.ones((2, 2))), ferry.ArgumentError, "list of tensors"),
    "text": (lambda: ferry.stack("ab"), ferry.ArgumentError, "no sequence"),
    "a generator": (lambda: ferry.stack(x for x in [np.ones(1)]), ferry.ArgumentError, "no sequence"),
    "ragged items": (lambda: ferry.stack([np.ones(2), torch.ones(3)]), ferry.LayoutError, r"item 1 of shape \(3,\)"),
    "other number of axes": (lambda: ferry.stack([np.ones(2), np.ones((1, 2))]), ferry.LayoutError, "item 1"),
    "a number": (lambda: ferry.stack([np.ones(()), 1.0]), ferry.DTypeError, "item 1: a float"),
    "a nest": (lambda: ferry.stack([[np.ones(1)]]), ferry.DTypeError, "item 0: a list"),
    "dates": (lambda: ferry.stack([np.array(["2020"], "M8[Y]")]), ferry.DTypeError, "item 0.*dates"),
    "a mask": (lambda: ferry.stack([np.ma.masked_array([1.0], [True])]), ferry.DTypeError, "item 0.*mask"),
    "sparse": (lambda: ferry.stack([torch.eye(2).to_sparse()]), ferry.LayoutError, "item 0.*to_dense"),
    "bits": (lambda: ferry.stack([np.ones(1)], dtype="bits"), ferry.ArgumentError, "bits"),
    "no dtype": (lambda: ferry.stack([np.ones(1)], dtype={"floating": "f4"}), ferry.DTypeError, "no dtype"),
    "direction": (lambda: ferry.stack([np.ones(1)], to="jax"), ferry.ArgumentError, "jax"),
    "device of an array": (lambda: ferry.stack([np.ones(1)], to="numpy", device="cpu"), ferry.ArgumentError, "host"),
    "device that is none": (lambda: ferry.stack([np.ones(1)], device="junk"), ferry.DeviceError, "junk"),
    "device of a destination": (
        lambda: ferry.stack([np.ones(1)], device="cpu", out=torch.ones(1, 1)),
        ferry.ArgumentError,
        "leave out one",
    ),
}


@pytest.mark.filterwarnings("ignore:.*Sparse.*:UserWarning")
@pytest.mark.parametrize("kind", REFUSED)
def test_what_does_not_stack_is_refused_by_name(kind):
    call, error, words = REFUSED[kind]
    with pytest.raises(error, match=words):
        call()
