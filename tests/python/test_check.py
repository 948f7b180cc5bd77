"""``check``: what passes, what is listed, and what makes no sense to ask."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.subprocess import stdout_of
from helpers.violations import violations
from tensorferry._check.check import check

X = torch.zeros(4, 3, 8, 8)


@pytest.mark.parametrize(
    "x",
    [
        pytest.param(torch.ones(2, 3), id="tensor"),
        pytest.param(np.ones((2, 3), np.float32), id="array"),
        pytest.param(memoryview(np.ones((2, 3), np.float32)), id="buffer"),
        pytest.param([torch.ones(2, 3), {"a": np.ones((2, 3), np.float32)}], id="nest"),
    ],
)
def test_the_object_itself_comes_back(x):
    wanted = {"shape": (2, 3), "dtype": "float32", "device": "cpu", "finite": True, "range": (0, 1)}
    assert check(x, **wanted, requires_grad=False) is x


def test_without_requirements_everything_passes():
    x = torch.tensor([float("nan")])
    assert check(x) is x


def test_one_error_lists_every_violation():
    x = torch.tensor([[1.0, float("nan"), 7.0]])
    with pytest.raises(ferry.CheckError) as caught:
        check(x, shape=(2, 3), dtype=torch.float64, device="cuda", finite=True, range=(0, 5), requires_grad=True)
    error = caught.value
    assert error.violations == (
        "shape is (1, 3): axis 0 is 1, wanted 2",
        "dtype is float32, wanted float64",
        "device is cpu, wanted cuda",
        "requires_grad is False, wanted True",
        "1 of 3 values is not finite: the first, at index (0, 1), is nan",
        "2 of 3 values are outside of [0, 5]: the first, at index (0, 1), is nan",
    )
    assert isinstance(error, ValueError)
    assert all(violation in str(error) for violation in error.violations)
    assert error.given == "a (1, 3) float32 Tensor"
    assert error.why.startswith("it misses 6 requirements:")
    assert "describe(x)" in error.instead


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param((4, 3, 8, 8), id="ints"),
        pytest.param((None, 3, None, None), id="anything"),
        pytest.param(("B", 3, "H", "H"), id="names"),
        pytest.param(("B", ...), id="rest behind"),
        pytest.param((..., "H", "H"), id="rest in front"),
        pytest.param((4, ..., 8), id="rest in the middle"),
        pytest.param((4, 3, ..., 8, 8), id="empty rest"),
        pytest.param((...,), id="any shape"),
        pytest.param([4, 3, 8, 8], id="list"),
        pytest.param(torch.Size([4, 3, 8, 8]), id="torch.Size"),
        pytest.param(tuple(np.array([4, 3, 8, 8])), id="NumPy integers"),
    ],
)
def test_shapes_that_match(pattern):
    assert check(X, shape=pattern) is X


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        pytest.param((4, 3, 8), ("shape is (4, 3, 8, 8) with 4 axes, wanted (4, 3, 8) with 3",), id="too many axes"),
        pytest.param(
            (1, 2, 3, ..., 4, 5),
            ("shape is (4, 3, 8, 8) with 4 axes, wanted (1, 2, 3, ..., 4, 5) with at least 5",),
            id="too few axes",
        ),
        pytest.param((), ("shape is (4, 3, 8, 8) with 4 axes, wanted () with 0",), id="no axis"),
        pytest.param(
            (5, 3, 8, 9),
            ("shape is (4, 3, 8, 8): axis 0 is 4, wanted 5", "shape is (4, 3, 8, 8): axis 3 is 8, wanted 9"),
            id="two extents",
        ),
        pytest.param(("C", "C", ...), ('shape is (4, 3, 8, 8): axis 1 is 3, but "C" is 4 from axis 0',), id="one name"),
        pytest.param((..., 7), ("shape is (4, 3, 8, 8): axis 3 is 8, wanted 7",), id="behind the rest"),
    ],
)
def test_shapes_that_do_not_match(pattern, expected):
    assert violations(X, shape=pattern) == expected


def test_a_shape_of_no_axes_is_that_of_a_scalar():
    assert check(np.float32(1), shape=()) == 1
    assert violations(torch.zeros(1), shape=()) == ("shape is (1,) with 1 axes, wanted () with 0",)


def test_names_are_forgotten_after_the_call():
    check(np.zeros(3), shape=("B",))
    x = np.zeros(4)
    assert check(x, shape=("B",)) is x


def test_names_hold_across_the_leaves_of_a_nest():
    batch = {"image": torch.zeros(4, 3, 8, 8), "label": np.zeros(5, np.int64)}
    shapes = {"image": ("B", 3, "H", "W"), "label": ("B",)}
    assert violations(batch, shape=shapes) == (
        """['label']: shape is (5,): axis 0 is 5, but "B" is 4 from axis 0 of ['image']""",
    )


def test_a_nest_without_a_mapping_must_meet_the_requirement_everywhere():
    nest = (np.zeros(2), [np.array([1, np.inf]), "text", None], np.zeros(3))
    assert violations(nest, shape=("N",), finite=True) == (
        "[1][0]: 1 of 2 values is not finite: the first, at index (1,), is inf",
        '[2]: shape is (3,): axis 0 is 3, but "N" is 2 from axis 0 of [0]',
    )


def test_mappings_reach_into_every_kind_of_container():
    class Pair(NamedTuple):
        left: object
        right: object

    @dataclasses.dataclass
    class Batch:
        pair: Pair
        items: list

    batch = Batch(Pair(np.zeros(2), np.zeros(3)), [np.zeros(4), np.zeros(5)])
    good = {"pair": {"left": (2,), "right": (3,)}, "items": {1: (5,)}}
    assert check(batch, shape=good) is batch
    bad = {"pair": {"right": (2,)}, "items": {0: (5,), 2: (1,)}}
    assert violations(batch, shape=bad, dtype={"items": "bool"}) == (
        ".pair.right: shape is (3,): axis 0 is 3, wanted 2",
        ".items[2]: it is missing",
        ".items[0]: shape is (4,): axis 0 is 4, wanted 5",
        ".items[0]: dtype is float64, wanted bool",
        ".items[1]: dtype is float64, wanted bool",
    )


def test_a_child_that_is_named_must_be_there_and_be_an_array():
    assert violations({"a": 3}, shape={"a": (1,)}, dtype={"b": "bool"}) == (
        "['b']: it is missing",
        "['a']: it is no tensor and no array, but of class int",
    )


def test_a_nest_that_contains_itself_is_refused():
    nest = [np.zeros(2)]
    nest.append(nest)
    with pytest.raises(ferry.LayoutError, match="contains itself"):
        check(nest, finite=True)


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu")], ids=["name", "torch.device"])
def test_host_memory_is_on_the_cpu(device):
    assert check(X, device=device) is X
    y = np.zeros(2)
    assert check(y, device=device) is y


def test_a_device_is_met_by_type_or_by_index():
    meta = torch.empty(2, device="meta")
    assert check(meta, device="meta") is meta
    assert violations(meta, device="cpu") == ("device is meta, wanted cpu",)
    assert violations(X, device=torch.device("cuda", 1)) == ("device is cpu, wanted cuda:1",)


class DeviceProducer:
    """Says that it lies on the second CUDA device."""

    shape, dtype = (2, 3), np.dtype("float16")

    def __dlpack__(self, **arguments):
        raise AssertionError("the host cannot read this")

    def __dlpack_device__(self):
        return (2, 1)


def test_what_a_device_producer_says_of_itself_is_checked():
    x = DeviceProducer()
    assert check(x, shape=(2, "N"), dtype="float16", device="cuda") is x
    assert check(x, device="cuda:1") is x
    assert violations(x, device="cuda:0") == ("device is cuda:1, wanted cuda:0",)
    (only,) = violations(x, finite=True)
    assert only.startswith("its values cannot be checked: ")


def test_requires_grad():
    leaf = torch.zeros(2, requires_grad=True)
    assert check(leaf, requires_grad=True) is leaf
    assert violations(leaf, requires_grad=False) == ("requires_grad is True, wanted False",)
    assert violations(np.zeros(2), requires_grad=True) == ("requires_grad is False, wanted True",)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: torch.eye(2, 3).to_sparse(), id="sparse"),
        pytest.param(lambda: torch.empty(2, 3, device="meta"), id="meta"),
        pytest.param(lambda: torch.ones(2, 3).as_subclass(type("Named", (torch.Tensor,), {})), id="subclass"),
    ],
)
def test_tensors_that_do_not_convert_are_checked_as_far_as_no_value_is_needed(make):
    x = make()
    assert check(x, shape=(2, 3), dtype="float32", requires_grad=False) is x


def test_values_that_cannot_be_read_are_a_violation_that_says_why():
    (only,) = violations(torch.eye(2).to_sparse(), finite=True, range=(0, 1))
    assert only.startswith("its values cannot be checked: a (2, 2) torch.float32 tensor of layout torch.sparse_coo")
    assert "to_dense" in only


def test_nested_tensors_have_no_plain_shape():
    x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    assert violations(x, shape=(2, None)) == ("its shape is not made of plain numbers, wanted (2, None)",)


def test_tensors_stay_as_they_are():
    x = torch.ones(3, 2, requires_grad=True)
    before = (x._version, x.data_ptr(), x.is_leaf, x.grad, x.untyped_storage().resizable())
    check(x, finite=True, range=(0, 1))
    assert (x._version, x.data_ptr(), x.is_leaf, x.grad, x.untyped_storage().resizable()) == before


@pytest.mark.parametrize(
    ("requirement", "words"),
    [
        pytest.param({"shape": 3}, "no sequence of extents", id="shape is an int"),
        pytest.param({"shape": (..., 1, ...)}, "many ways", id="two rests"),
        pytest.param({"shape": (-1,)}, "-1 is no extent", id="negative extent"),
        pytest.param({"shape": (1.5,)}, "1.5 is no extent", id="fraction"),
        pytest.param({"shape": (True,)}, "True is no extent", id="bool extent"),
        pytest.param({"shape": ("...",)}, "is no extent", id="rest as text"),
        pytest.param({"shape": {"a": 3}}, "no sequence of extents", id="inside a mapping"),
        pytest.param({"dtype": "float33"}, "it is no dtype", id="unknown dtype"),
        pytest.param({"dtype": ("float32", None)}, "it is no dtype", id="None among dtypes"),
        pytest.param({"dtype": ()}, "at least one", id="no dtype at all"),
        pytest.param({"device": "gpu"}, "it is no device", id="unknown device"),
        pytest.param({"device": 0}, "it is no device", id="device number"),
        pytest.param({"finite": False}, "only be asked for", id="finite=False"),
        pytest.param({"range": 3}, "no pair", id="range is a number"),
        pytest.param({"range": (0, 1, 2)}, "no pair", id="three bounds"),
        pytest.param({"range": (1, 0)}, "above its high end", id="low above high"),
        pytest.param({"range": (float("nan"), 1)}, "nan is no bound", id="NaN as a bound"),
        pytest.param({"range": ("a", None)}, "'a' is no bound", id="text as a bound"),
        pytest.param({"requires_grad": 1}, "no choice", id="requires_grad is a number"),
    ],
)
def test_requirements_that_make_no_sense_are_argument_errors(requirement, words):
    with pytest.raises(ferry.ArgumentError, match=words) as caught:
        check({"a": np.zeros(2)}, **requirement)
    assert isinstance(caught.value, (TypeError, ValueError))
    assert all((caught.value.given, caught.value.why, caught.value.instead))


@pytest.mark.parametrize("x", [3, "text", None], ids=["number", "text", "None"])
def test_what_is_no_tensor_is_refused(x):
    with pytest.raises(ferry.DTypeError, match="no tensor"):
        check(x, shape=())


def test_neither_checking_nor_describing_arrays_imports_torch():
    code = """
        import sys
        import numpy as np
        from tensorferry._check.check import check
        from tensorferry._inspect.describe import describe
        from tensorferry._inspect.shares_memory import shares_memory
        x = check(np.ones((2, 3)), shape=("B", 3), dtype="floating", device="cpu", finite=True)
        print(describe(x).strides, shares_memory(x, x[1:]), "torch" in sys.modules)
    """
    assert stdout_of(code) == "(24, 8) True False"
