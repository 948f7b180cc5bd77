"""``to_python``: exact numbers, lists and dicts, ready for JSON."""

from __future__ import annotations

import array
import collections
import dataclasses
import enum
import json
import math
import re
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.counting_capsules import CountingCapsule, Producer
from helpers.torch_dtypes import CONVERTIBLE, FLOAT4_VALUES, NUMPY_FLOATS, NUMPY_INTEGERS, array_dtype, name_of, sample


def _same(found: Any, expected: Any) -> bool:
    """Equal, of equal types, down to the sign of zero; all NaN are alike."""
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(_same, found, expected))
    if isinstance(expected, complex):
        return isinstance(found, complex) and _same([found.real, found.imag], [expected.real, expected.imag])
    if isinstance(expected, float):
        alike = math.isnan(found) if math.isnan(expected) else found == expected
        return isinstance(found, float) and alike and math.copysign(1, found) == math.copysign(1, expected or found)
    return type(found) is type(expected) and found == expected


def _numbers(x: Any) -> list[Any]:
    return [number for child in x for number in _numbers(child)] if isinstance(x, list) else [x]


@pytest.mark.parametrize("dtype", CONVERTIBLE, ids=name_of)
def test_every_value_of_every_dtype_is_exact(dtype):
    tensor = sample(dtype)
    found = _numbers(ferry.to_python(tensor))
    one_by_one = ferry.to_numpy(tensor, copy=True).reshape(-1)
    kind = array_dtype(dtype)
    as_number = {"c": complex, "f": float, "b": bool, "i": int, "u": int}.get(kind.kind)
    if as_number is None:  # of ml_dtypes
        as_number = int if "int" in kind.name else float
    assert all(map(_same, found, [as_number(value) for value in one_by_one]))
    assert {type(number) for number in found} == {as_number}
    assert len(found) == one_by_one.size


@pytest.mark.parametrize("name", NUMPY_INTEGERS)
@pytest.mark.parametrize("make", [np.array, lambda v: torch.from_numpy(np.array(v))], ids=["array", "tensor"])
def test_integers_keep_their_last_digit(name, make):
    limits = [int(np.iinfo(name).min), int(np.iinfo(name).max), int(np.iinfo(name).max) - 1]
    assert ferry.to_python(make(np.array(limits, name))) == limits
    assert json.loads(json.dumps(ferry.to_python(make(np.array(limits, name))))) == limits


@pytest.mark.parametrize("name", NUMPY_FLOATS)
def test_floats_survive_json(name):
    info = np.finfo(name)
    values = np.array([0.1, -0.0, info.max, info.tiny, info.smallest_subnormal, 1 / 3], name)
    again = np.array(json.loads(json.dumps(ferry.to_python(torch.from_numpy(values)))), name)
    assert again.tobytes() == values.tobytes()


def test_small_floats_come_out_as_what_they_mean():
    assert ferry.to_python(torch.tensor([1.5, -448.0]).to(torch.float8_e4m3fn)) == [1.5, -448.0]
    assert ferry.to_python(torch.tensor(3.140625, dtype=torch.bfloat16)) == 3.140625
    assert ferry.to_python(np.array([2.0**-126], ml_dtypes.bfloat16)) == [2.0**-126]
    packed = torch.tensor([0x10, 0x32], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    assert ferry.to_python(packed) == FLOAT4_VALUES[:4].tolist()


@pytest.mark.parametrize("make", [torch.tensor, np.array], ids=["tensor", "array"])
def test_what_is_no_number_stays_what_it_is(make):
    found = ferry.to_python(make([math.nan, math.inf, -math.inf, -0.0]))
    assert _same(found, [math.nan, math.inf, -math.inf, -0.0])
    assert json.dumps(found) == "[NaN, Infinity, -Infinity, -0.0]"


SHAPES = [(), (1,), (0,), (2, 0), (0, 2), (2, 3), (1, 1, 1), (2, 1, 3)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes_become_lists_of_lists(shape):
    expected = torch.arange(math.prod(shape)).reshape(shape).tolist()
    assert ferry.to_python(torch.arange(math.prod(shape)).reshape(shape)) == expected
    assert ferry.to_python(np.arange(math.prod(shape)).reshape(shape)) == expected


GRID = torch.arange(6.0).reshape(2, 3)
SAME: dict[str, tuple[Callable[[], Any], Any]] = {
    "transposed": (lambda: GRID.T, [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]),
    "expanded": (lambda: torch.tensor([1]).expand(3), [1, 1, 1]),
    "reversed array": (lambda: np.arange(3)[::-1], [2, 1, 0]),
    "big-endian array": (lambda: np.array([1, 256], ">i2"), [1, 256]),
    "conjugate": (lambda: torch.tensor([1 + 2j]).conj(), [1 - 2j]),
    "negative": (lambda: torch.tensor([1 + 2j]).conj().imag, [-2.0]),
    "zero tensor": (lambda: torch._efficientzerotensor((2,)), [0.0, 0.0]),
    "requires grad": (lambda: torch.ones(2, requires_grad=True) * 2, [2.0, 2.0]),
    "parameter": (lambda: torch.nn.Parameter(torch.ones(1)), [1.0]),
    "inference tensor": (lambda: torch.inference_mode()(lambda: torch.ones(1))(), [1.0]),
    "matrix": (lambda: np.matrix([[1, 2]]), [[1, 2]]),
    "producer": (lambda: Producer(CountingCapsule((2,))), [0.0, 0.0]),
    "bytearray": (lambda: bytearray(b"ab"), [97, 98]),
    "memoryview": (lambda: memoryview(b"ab"), [97, 98]),
    "array of the standard library": (lambda: array.array("d", [0.5]), [0.5]),
    "view of a tensor": (lambda: ferry.to_numpy(GRID)[0], [0.0, 1.0, 2.0]),
    "array of text": (lambda: np.array(["a", "a much longer text"]), ["a", "a much longer text"]),
    "text scalar": (lambda: np.str_("a"), "a"),
    "NumPy float": (lambda: np.float32(0.1), float(np.float32(0.1))),
    "NumPy integer": (lambda: np.uint64(2**64 - 1), 2**64 - 1),
    "NumPy bool": (lambda: np.bool_(True), True),
    "NumPy complex": (lambda: np.complex64(1j), 1j),
    "bfloat16 scalar": (lambda: ml_dtypes.bfloat16(1.5), 1.5),
    "int4 scalar": (lambda: ml_dtypes.int4(-3), -3),
    "size": (lambda: GRID.shape, [2, 3]),
    "range": (lambda: range(3), [0, 1, 2]),
    "text": (lambda: "a", "a"),
    "number": (lambda: 2.5, 2.5),
    "nothing": (lambda: None, None),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"k": (x,)}], ids=["alone", "in a nest"])
@pytest.mark.parametrize("kind", SAME)
def test_every_kind_of_leaf(kind, wrap):
    make, expected = SAME[kind]
    found = ferry.to_python(wrap(make()))
    found = found if wrap(0) == 0 else found["k"][0]
    assert found == expected
    assert [type(number) for number in _numbers(found)] == [type(number) for number in _numbers(expected)]


class Point(NamedTuple):
    """A leaf and a number."""

    x: Any
    y: Any


class Colour(enum.IntEnum):
    """JSON knows these."""

    RED = 1


@dataclasses.dataclass
class Metrics:
    """With a field that the constructor does not take."""

    loss: Any
    step: int = 3
    best: Any = dataclasses.field(default=None, init=False)


class Registered:
    """A container of one."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner


ONE = torch.ones(1, dtype=torch.int64)
NESTS: dict[str, tuple[Callable[[], Any], Any]] = {
    "dict": (lambda: {"a": ONE, "b": {"c": ONE}}, {"a": [1], "b": {"c": [1]}}),
    "ordered dict": (lambda: collections.OrderedDict(b=ONE, a=2), {"b": [1], "a": 2}),
    "default dict": (lambda: collections.defaultdict(list, a=ONE), {"a": [1]}),
    "read-only mapping": (lambda: types.MappingProxyType({"a": ONE}), {"a": [1]}),
    "state dict": (lambda: torch.nn.BatchNorm1d(1).state_dict()["running_var"], [1.0]),
    "list and tuple": (lambda: [ONE, (ONE, "text", None, True)], [[1], [[1], "text", None, True]]),
    "deque": (lambda: collections.deque([ONE]), [[1]]),
    "named tuple": (lambda: Point(ONE, np.int8(2)), [[1], 2]),
    "dataclass": (lambda: Metrics(ONE), {"loss": [1], "step": 3, "best": None}),
    "enumeration": (lambda: [Colour.RED], [1]),
    "NumPy scalars": (lambda: {"loss": np.float32(0.5), "n": np.int64(3)}, {"loss": 0.5, "n": 3}),
    "keys of NumPy": (lambda: {np.int64(3): ONE, np.str_("a"): 1}, {3: [1], "a": 1}),
    "result of a sort": (lambda: torch.tensor([2, 1]).sort(), [[1, 2], [1, 0]]),
    "empty nests": (lambda: [{}, [], ()], [{}, [], []]),
}


@pytest.mark.parametrize("kind", NESTS)
def test_nests_become_dicts_and_lists_that_json_takes(kind):
    make, expected = NESTS[kind]
    found = ferry.to_python(make())
    assert found == expected
    assert type(found) in (dict, list)
    text = json.dumps(found)
    assert text == json.dumps(expected)


def test_registered_nodes_become_lists_of_their_children():
    ferry.register_node(Registered, lambda node: [node.inner], lambda node, new: Registered(*new))
    assert ferry.to_python(Registered(ONE)) == [[1]]


def test_the_same_tensor_twice_gives_lists_of_their_own():
    first, second = ferry.to_python([ONE, ONE])
    first.append(5)
    assert second == [1]


def test_nothing_is_left_of_the_tensor():
    tensor = torch.zeros(3)
    found = ferry.to_python(tensor)
    tensor.add_(1)
    assert found == [0, 0, 0]
    assert tensor._version == 1


def test_what_is_no_tensor_passes_through_as_the_same_object():
    kept = [object(), {1, 2}, torch.float32, torch.device("cpu"), 1j, b"ab"]
    assert all(found is given for found, given in zip(ferry.to_python(kept), kept, strict=True))


REFUSED: dict[str, tuple[Callable[[], Any], type[ferry.FerryError], str]] = {
    "dates": (lambda: np.array(["2020"], "M8[Y]"), ferry.DTypeError, r'view\("i8"\)'),
    "date": (lambda: np.datetime64("2020"), ferry.DTypeError, "astype"),
    "durations": (lambda: np.array([1], "m8[s]"), ferry.DTypeError, r'view\("i8"\)'),
    "masked": (lambda: np.ma.masked_array([1.0], [True]), ferry.DTypeError, "filled"),
    "masked constant": (lambda: np.ma.masked, ferry.DTypeError, "filled"),
    "extended precision": (lambda: np.ones(2, np.longdouble), ferry.DTypeError, r'astype\("float64"\)'),
    "extended complex": (lambda: np.clongdouble(1), ferry.DTypeError, r'astype\("complex128"\)'),
    "objects": (lambda: np.array([None]), ferry.DTypeError, "one"),
    "records": (lambda: np.zeros(2, [("x", "f4")]), ferry.DTypeError, "fields"),
    "record": (lambda: np.zeros(2, [("x", "f4")])[0], ferry.DTypeError, "fields"),
    "sparse": (lambda: torch.eye(2).to_sparse(), ferry.LayoutError, "to_dense"),
    "meta": (lambda: torch.ones(1, device="meta"), ferry.DeviceError, "materialise"),
    "quantised": (
        lambda: torch.quantize_per_tensor(torch.ones(1), 1.0, 0, torch.quint8),
        ferry.DTypeError,
        "dequantize",
    ),
}


@pytest.mark.filterwarnings("ignore:.*(Sparse|quantize).*:UserWarning")
@pytest.mark.parametrize("kind", REFUSED)
def test_what_has_no_number_is_refused_with_a_remedy_and_its_place(kind):
    make, error, remedy = REFUSED[kind]
    with pytest.raises(error) as alone:
        ferry.to_python(make())
    with pytest.raises(error, match=r"leaf \['k'\]\[1\]") as nested:
        ferry.to_python({"k": [1, make()]})
    for caught in (alone, nested):
        assert re.search(remedy, caught.value.instead)


def test_a_cycle_is_refused():
    cycle: list[Any] = [ONE]
    cycle.append({"again": cycle})
    with pytest.raises(ferry.LayoutError, match="contains itself"):
        ferry.to_python(cycle)
