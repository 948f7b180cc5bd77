"""``out=``: filled in place and returned, its dtype wins, and nothing that overlaps is ever written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.plans import convert_as_planned, refused_as_planned

X = torch.arange(6.0).reshape(2, 3)

DESTINATIONS: dict[str, Callable[[Path], np.ndarray[Any, Any]]] = {
    "C order": lambda _: np.empty((2, 3), "f4"),
    "Fortran order": lambda _: np.empty((2, 3), "f4", order="F"),
    "a wider dtype": lambda _: np.empty((2, 3), "f8"),
    "an extension dtype": lambda _: np.empty((2, 3), ml_dtypes.bfloat16),
    "a complex dtype": lambda _: np.empty((2, 3), "c16"),
    "every other column": lambda _: np.empty((2, 6), "f4")[:, ::2],
    "negative strides": lambda _: np.empty((2, 3), "f4")[::-1, ::-1],
    "the other byte order": lambda _: np.empty((2, 3), ">f4"),
    "a packed field": lambda _: np.empty((2, 3), [("tag", "i1"), ("x", "f8")])["x"],
    "a subclass": lambda _: np.empty((2, 3)).view(np.recarray),
    "a memory map": lambda folder: np.memmap(folder / "x", dtype="f4", mode="w+", shape=(2, 3)),
}


@pytest.mark.parametrize("make", DESTINATIONS.values(), ids=DESTINATIONS)
def test_a_destination_is_filled_and_returned_itself(make: Callable[[Path], Any], tmp_path: Path) -> None:
    out = make(tmp_path)
    for source in (X, X.numpy(), X.T.contiguous().T):
        out[...] = -1
        assert convert_as_planned(source, out=out) is out
        assert np.array_equal(out.astype("c16"), X.numpy())


def test_a_memory_map_reaches_its_file(tmp_path: Path) -> None:
    out = np.memmap(tmp_path / "x", dtype="f4", mode="w+", shape=(2, 3))
    ferry.to_numpy(X, out=out).flush()
    assert np.fromfile(tmp_path / "x", "f4").tolist() == list(range(6))


MARKED = {
    "a conjugate view": (torch.tensor([1 + 2j, 3j]).conj(), [1 - 2j, -3j]),
    "a negative view": (torch._neg_view(torch.tensor([1.0, 2])), [-1, -2]),
    "a zero tensor": (torch._efficientzerotensor((2,)), [0, 0]),
    "packed float4": (torch.tensor([0x21], dtype=torch.uint8).view(torch.float4_e2m1fn_x2), [0.5, 1]),
    "a scalar spread by expand": (torch.tensor(2.0).expand(2), [2, 2]),
}


@pytest.mark.parametrize(("source", "expected"), MARKED.values(), ids=MARKED)
def test_a_destination_holds_the_values_not_the_memory(source: torch.Tensor, expected: list[complex]) -> None:
    out = np.full(2, 9, "c16")
    assert convert_as_planned(source, out=out).tolist() == expected


def test_the_destinations_dtype_wins_and_may_be_repeated() -> None:
    for dtype in (None, "float64", np.float64, "numpy"):
        assert ferry.to_numpy(X, out=np.empty((2, 3)), dtype=dtype).dtype == np.float64


def test_casting_rules_hold_for_destinations() -> None:
    assert isinstance(refused_as_planned(X, out=np.zeros((2, 3), "i4")), ferry.DTypeError)
    assert convert_as_planned(X, out=np.zeros((2, 3), "i4"), casting="same_value").tolist() == X.tolist()
    with pytest.raises(ferry.PrecisionLossError, match=r"index \(0, 1\)"):
        ferry.to_numpy(X / 2, out=np.zeros((2, 3), "i4"), casting="same_value")


def read_only() -> np.ndarray[Any, Any]:
    out = np.zeros((2, 3), "f4")
    out.flags.writeable = False
    return out


REFUSED: dict[str, tuple[Any, dict[str, Any], type]] = {
    "a wrong shape": (np.zeros((3, 2), "f4"), {}, ferry.BufferMismatchError),
    "a shape that would broadcast": (np.zeros((4, 2, 3), "f4"), {}, ferry.BufferMismatchError),
    "a dtype that disagrees": (np.zeros((2, 3), "f4"), {"dtype": "float64"}, ferry.BufferMismatchError),
    "bits": (np.zeros((2, 3), "u4"), {"dtype": "bits"}, ferry.ArgumentError),
    "a read-only array": (read_only(), {}, ferry.ReadOnlyError),
    "elements that overlap": (
        np.lib.stride_tricks.as_strided(np.zeros(4, "f4"), (2, 3), (4, 4)),
        {},
        ferry.BufferMismatchError,
    ),
    "a broadcast array": (np.broadcast_to(np.zeros(3, "f4"), (2, 3)), {}, ferry.ReadOnlyError),
    "no copy": (np.zeros((2, 3), "f4"), {"copy": False}, ferry.ArgumentError),
    "a list": ([[0.0] * 3] * 2, {}, ferry.ArgumentError),
    "a tensor": (torch.zeros(2, 3), {}, ferry.ArgumentError),
    "records": (np.zeros((2, 3), [("x", "f4")]), {}, ferry.DTypeError),
    "objects": (np.zeros((2, 3), object), {}, ferry.DTypeError),
    "dates": (np.zeros((2, 3), "M8[s]"), {}, ferry.DTypeError),
    "extended precision": (np.zeros((2, 3), np.longdouble), {}, ferry.DTypeError),
}


@pytest.mark.parametrize(("out", "arguments", "error"), REFUSED.values(), ids=REFUSED)
def test_a_destination_that_does_not_fit_is_refused_and_not_touched(out: Any, arguments: Any, error: type) -> None:
    before = np.array(out).tobytes() if not isinstance(out, torch.Tensor) else None
    assert isinstance(refused_as_planned(X + 1, out=out, **arguments), error)
    assert before is None or np.array(out).tobytes() == before


def test_out_with_copy_false_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        ferry.to_numpy(X, out=np.zeros((2, 3)), copy=False)


def test_out_with_another_copy_is_only_filled() -> None:
    for copy in (None, True, "lazy"):
        out = np.zeros((2, 3))
        assert convert_as_planned(X, out=out, copy=copy) is out


def test_a_destination_that_overlaps_the_source_is_refused() -> None:
    x = torch.arange(8.0)
    own = x.numpy()
    for source, out in ((x[1:], own[:-1]), (x, own), (own[::2], own[:4]), (x[:4], own[3:7]), (x[2:3], own[2:3])):
        assert isinstance(refused_as_planned(source, out=out), ferry.BufferMismatchError)
        assert own.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    ferry.to_numpy(x[:4], out=own[4:])
    assert x.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]


def test_a_nest_of_destinations_is_filled_leaf_by_leaf() -> None:
    x = {"a": [torch.ones(2), torch.zeros(3)], "n": 5}
    out = {"a": [np.empty(2), np.empty(3, "f4")], "n": None}
    filled = ferry.to_numpy(x, out=out)
    assert filled["a"][0] is out["a"][0]
    assert filled["a"][1] is out["a"][1]
    assert filled["n"] == 5
    assert out["a"][0].tolist() == [1, 1]
    assert out["a"][1].tolist() == [0, 0, 0]
    planned = ferry.plan(x, out=out)
    assert planned.copies == 2
    assert planned.nbytes_moved == 16 + 12
    assert planned.parts["['a'][0]"].dtype == "float64"


def test_the_same_tensor_fills_each_of_its_destinations() -> None:
    x = torch.ones(2)
    out = [np.empty(2), np.empty(2)]
    filled = ferry.to_numpy([x, x], out=out)
    assert [leaf is mine for leaf, mine in zip(filled, out, strict=True)] == [True, True]
    assert [leaf.tolist() for leaf in filled] == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    "out",
    [[np.zeros(2)], {"b": np.zeros(2)}, {"a": np.zeros(2), "b": np.zeros(2)}, np.zeros(2), {"a": [np.zeros(2)]}],
    ids=["a list for a dict", "another key", "a key too many", "no nest", "a nest for a leaf"],
)
def test_destinations_must_have_the_structure_of_the_source(out: Any) -> None:
    error = refused_as_planned({"a": torch.ones(2)}, out=out)
    assert isinstance(error, (ferry.LayoutError, ferry.ArgumentError))


def test_every_leaf_is_checked_before_the_first_is_filled() -> None:
    first, second = np.zeros(2), np.zeros(3)
    error = refused_as_planned([torch.ones(2), torch.ones(2)], out=[first, second])
    assert isinstance(error, ferry.BufferMismatchError)
    assert error.given.startswith("leaf [1]")
    assert first.tolist() == [0, 0]


def test_destinations_that_overlap_each_other_or_another_leafs_source_are_refused() -> None:
    shared = np.zeros(4)
    x = torch.arange(4.0, dtype=torch.float64)
    for source, out in (
        ([x, x * 2], [shared, shared]),
        ([x[:3], x[:3] * 2], [shared[:3], shared[1:]]),
        ([torch.ones(4), x], [x.numpy(), np.zeros(4)]),
        ([x, torch.ones(4)], [np.zeros(4), x.numpy()]),
    ):
        assert isinstance(refused_as_planned(source, out=out), ferry.BufferMismatchError)
    assert x.tolist() == [0, 1, 2, 3]
    assert not shared.any()


def test_columns_of_one_array_are_separate_destinations() -> None:
    table = np.zeros((3, 2))
    ferry.to_numpy([torch.ones(3), torch.full((3,), 2.0)], out=[table[:, 0], table[:, 1]])
    assert table.tolist() == [[1, 2]] * 3


def test_from_numpy_has_no_destination() -> None:
    with pytest.raises(TypeError):
        ferry.from_numpy(np.ones(2), out=np.ones(2))
    with pytest.raises(ferry.ArgumentError):
        ferry.plan(np.ones(2), to="torch", out=np.ones(2))
