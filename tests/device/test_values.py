"""Values, dtypes, layouts and flags of what comes from a device, against NumPy on the same values in host memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

import tensorferry as ferry
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import ALL_KINDS, DeviceArray, InterfaceArray, TableArray, on_device

Array = NDArray[Any]

NATIVE = [np.dtype(code) for code in "?bBhHiIqQefdFD"]
SMALL_FLOATS = [
    np.dtype(getattr(ml_dtypes, name))
    for name in ("bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz")
] + [np.dtype(getattr(ml_dtypes, name)) for name in ("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")]


def as_bytes(x: Array) -> Array:
    return x.view(f"V{x.dtype.itemsize}")


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    **{
        f"dense, axes in the order {axes}": (lambda x, axes=axes: x.transpose(axes))
        for axes in itertools.permutations(range(3))
    },
    "a slice of the last axis": lambda x: x[:, :, 1:4],
    "every other row": lambda x: x[:, ::2],
    "every third element": lambda x: x[:, :, ::3],
    "inner block": lambda x: x[1:, 1:3, 1:4],
    "backwards along one axis": lambda x: x[:, ::-1],
    "backwards along all axes": lambda x: x[::-1, ::-1, ::-1],
    "backwards in steps": lambda x: x[:, ::-2, ::-3],
    "one element": lambda x: x[1:2, 2:3, 3:4],
    "without axes": lambda x: x[1, 2, 3, ...],
    "of no elements": lambda x: x[:, :0],
    "behind an offset": lambda x: x[2],
    "broadcast": lambda x: np.broadcast_to(x[:1], (5, *x.shape[1:])),
    "broadcast inside": lambda x: np.broadcast_to(x[:, :, None, :1], (3, 4, 2, 5)),
    "one element everywhere": lambda x: np.broadcast_to(x[1, 1, 1, ...], (4, 3)),
    # as_strided does not know every dtype of ml_dtypes
    "overlapping windows": lambda x: sliding_window_view(as_bytes(x).reshape(-1), 7)[::3].view(x.dtype),
    "a diagonal": lambda x: x.diagonal(0, 0, 2),
    "with new axes": lambda x: x[None, :, None],
}
every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
CASTS = [("f", "d"), ("d", "e"), ("i", "q"), ("q", "f"), ("B", "h"), ("?", "f"), ("e", "F"), ("F", "D")]


def sample(dtype: np.dtype[Any]) -> Array:
    """Every bit pattern that fits, in shape (3, 4, 6): NaNs and infinities are among them."""
    rng = np.random.default_rng(7)
    if dtype == np.bool_:
        return rng.integers(0, 2, (3, 4, 6)).astype(bool)
    return np.frombuffer(rng.bytes(72 * dtype.itemsize), dtype).reshape(3, 4, 6)


def same_bits(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@every_layout
@pytest.mark.parametrize("dtype", [*NATIVE, *SMALL_FLOATS], ids=str)
def test_every_dtype_arrives_bit_by_bit_in_every_layout(fake: FakeCuda, dtype: np.dtype[Any], layout: Any):
    base = sample(dtype)
    expected = layout(base)
    for kind in (TableArray, DeviceArray):
        array = ferry.to_numpy(on_device(kind, base, expected))
        assert same_bits(array, expected)
        assert not array.flags.writeable


@every_layout
def test_every_kind_of_producer_gives_the_same(any_schedule: FakeCuda, kind: Any, layout: Any):
    base = sample(np.dtype(np.int32))
    expected = layout(base)
    x = on_device(kind, base, expected)
    assert same_bits(ferry.to_numpy(x), expected)
    assert same_bits(ferry.to_numpy_async(x).result(), expected)


@every_layout
@pytest.mark.parametrize("order", ["K", "C", "F", "A"])
@pytest.mark.parametrize("copy", [None, True], ids=["copy=None", "copy=True"])
def test_strides_and_flags_are_those_of_the_plan(fake: FakeCuda, layout: Any, order: str, copy: bool | None):
    base = sample(np.dtype(np.float32))
    expected = layout(base)
    x = on_device(TableArray, base, expected)
    planned = ferry.plan(x, copy=copy, order=order)
    array = ferry.to_numpy(x, copy=copy, order=order)
    assert same_bits(array, expected)
    assert (array.strides, array.shape, array.dtype.name) == (planned.strides, planned.shape, planned.dtype)
    assert array.flags.writeable == planned.writable == (copy is True)
    if order in "CF":
        assert array.flags[f"{order}_CONTIGUOUS"]


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))), ids=str)
def test_a_dense_tensor_keeps_the_order_of_its_axes(fake: FakeCuda, axes: tuple[int, ...]):
    base = sample(np.dtype(np.int16))
    expected = base.transpose(axes)
    assert ferry.to_numpy(on_device(TableArray, base, expected)).strides == expected.strides


@every_layout
def test_promise_3_private_copies_are_writable_and_private(any_schedule: FakeCuda, layout: Any):
    base = sample(np.dtype(np.int64))
    expected = layout(base)
    x = on_device(TableArray, base, expected)
    shared, private = ferry.to_numpy(x), ferry.to_numpy(x, copy=True)
    assert not shared.flags.writeable
    private[...] = 7  # each element has memory of its own
    assert same_bits(shared, expected)
    assert (private == 7).all()
    assert same_bits(ferry.to_numpy(x), expected)


@pytest.mark.parametrize(("source", "wanted"), CASTS, ids=[f"{a} to {b}" for a, b in CASTS])
@pytest.mark.parametrize(
    "name", ["dense, axes in the order (2, 0, 1)", "every other row", "broadcast", "of no elements"]
)
def test_casts_are_numpys(any_schedule: FakeCuda, source: str, wanted: str, name: str):
    base = np.arange(72).astype(source).reshape(3, 4, 6)
    expected = LAYOUTS[name](base)
    array = ferry.to_numpy(on_device(TableArray, base, expected), dtype=np.dtype(wanted))
    assert same_bits(array, expected.astype(wanted))


def test_small_floats_widen_and_show_their_bits(fake: FakeCuda):
    base = sample(np.dtype(ml_dtypes.bfloat16))
    x = on_device(TableArray, base)
    wide = ferry.to_numpy(x, dtype="numpy")
    assert wide.dtype == np.float32
    assert np.array_equal(wide, base.astype(np.float32), equal_nan=True)
    assert same_bits(ferry.to_numpy(x, dtype="bits"), base.view(np.uint16))


@pytest.mark.parametrize("value", [0.1, np.inf], ids=["rounded", "overflowing"])
def test_same_value_names_the_first_value_that_does_not_survive(any_schedule: FakeCuda, value: float):
    base = np.ones((3, 4))
    exact = on_device(TableArray, base)
    assert same_bits(ferry.to_numpy(exact, dtype="float32", casting="same_value"), base.astype(np.float32))
    base[1, 2] = 1e300 if np.isinf(value) else value
    with pytest.raises(ferry.PrecisionLossError) as caught:
        ferry.to_numpy(on_device(TableArray, base), dtype="float32", casting="same_value")
    assert caught.value.index == (1, 2)


def test_a_cast_that_the_rule_forbids_is_refused_before_the_device_is_asked(fake: FakeCuda):
    x = on_device(TableArray, np.ones(3))
    fake.clear_trace()
    with pytest.raises(ferry.DTypeError):
        ferry.to_numpy(x, dtype="int32", casting="same_kind")
    assert "cuMemcpyDtoHAsync" not in fake.calls()


def test_sharing_is_refused(fake: FakeCuda, kind: Any):
    with pytest.raises(ferry.CopyRequiredError, match="cuda"):
        ferry.to_numpy(on_device(kind, np.ones(3)), copy=False)


@every_layout
def test_a_destination_is_filled_and_returned(any_schedule: FakeCuda, kind: Any, layout: Any):
    base = sample(np.dtype(np.float32))
    expected = layout(base)
    x = on_device(kind, base, expected)
    for make in (np.zeros, lambda shape, dtype: np.zeros(shape[::-1], dtype).T):
        out = make(expected.shape, np.float32)
        assert ferry.to_numpy(x, out=out) is out
        assert same_bits(np.ascontiguousarray(out).reshape(out.shape), expected)
        out = make(expected.shape, np.float64)
        assert ferry.to_numpy_async(x, out=out).result() is out
        assert np.array_equal(out, expected.astype(np.float64), equal_nan=True)


def test_a_read_only_capsule_is_only_read(fake: FakeCuda):
    x = on_device(DeviceArray, np.arange(4))
    x.flags = 1
    array = ferry.to_numpy(x, copy=True)
    array[:] = 9
    assert x.peek().tolist() == [0, 1, 2, 3]


def test_marks_and_masks_of_the_array_interface_are_honoured(fake: FakeCuda):
    class Masked(InterfaceArray):
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return {**super().__cuda_array_interface__, "mask": self}

    class Contiguous(InterfaceArray):
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return {**super().__cuda_array_interface__, "strides": None, "stream": None}

    with pytest.raises(ferry.DTypeError, match="mask"):
        ferry.to_numpy(on_device(Masked, np.ones(3)))
    assert ferry.to_numpy(on_device(Contiguous, np.arange(6).reshape(2, 3))).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_nest_keeps_its_structure_and_its_other_leaves(any_schedule: FakeCuda, kind: Any):
    x, y = on_device(kind, np.arange(6).reshape(2, 3)), on_device(kind, np.float32([1.5]))
    host = np.ones(2)
    nest = ferry.to_numpy({"x": x, "rest": [y, (x, 3, "text", None)], "host": host})
    assert nest["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert nest["rest"][0].tolist() == [1.5]
    assert nest["rest"][1][0] is nest["x"]
    assert nest["rest"][1][1:] == (3, "text", None)
    assert nest["host"] is host


@pytest.mark.parametrize("call", [ferry.to_numpy, ferry.plan], ids=["to_numpy", "plan"])
def test_an_error_names_the_leaf(fake: FakeCuda, kind: Any, call: Any):
    nest = {"a": [np.ones(2), on_device(kind, np.arange(3.0))]}
    with pytest.raises(ferry.CopyRequiredError, match=r"\['a'\]\[1\]"):
        call(nest, copy=False)
    with pytest.raises(ferry.DTypeError, match=r"\['a'\]"):
        call(nest, dtype="int32")


def test_the_same_array_twice_is_copied_once(fake: FakeCuda, kind: Any):
    x = on_device(kind, np.arange(100))
    fake.clear_trace()
    first, second = ferry.to_numpy([x, x])
    assert first is second
    assert fake.call_counts()["cuMemcpyDtoHAsync"] == 1


def test_numbers_and_lists_come_from_devices_too(any_schedule: FakeCuda, kind: Any):
    nest = {"loss": on_device(kind, np.float32(0.5)), "sizes": on_device(kind, np.arange(3))}
    assert ferry.to_python(nest) == {"loss": 0.5, "sizes": [0, 1, 2]}


@pytest.mark.parametrize("kinds", list(itertools.combinations(ALL_KINDS, 2)), ids=" and ".join)
def test_kinds_of_producers_mix(any_schedule: FakeCuda, kinds: tuple[str, str]):
    nest = [on_device(ALL_KINDS[name], np.full(3, i), device=i) for i, name in enumerate(kinds)]
    assert [array.tolist() for array in ferry.to_numpy(nest)] == [[0, 0, 0], [1, 1, 1]]
