"""Nests that cannot be converted: cycles, bottomless depth, and leaves that an error must name."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.plans import refused_as_planned

T = torch.arange(3.0)
Point = collections.namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Batch:
    images: Any
    labels: Any = 3


def cycles() -> dict[str, Any]:
    in_list: list[Any] = [T]
    in_list.append(in_list)
    in_dict: dict[str, Any] = {"a": T}
    in_dict["b"] = [in_dict]
    in_class = Batch(T)
    in_class.labels = (in_class,)
    return {"a list": in_list, "a dict": in_dict, "a dataclass": in_class}


@pytest.mark.parametrize("nest", cycles().values(), ids=cycles())
@pytest.mark.parametrize("arguments", [{}, {"dtype": "float64"}], ids=["native", "general"])
def test_a_cycle_is_refused(nest: Any, arguments: Any) -> None:
    assert isinstance(refused_as_planned(nest, **arguments), ferry.LayoutError)
    assert isinstance(refused_as_planned(nest, to="torch"), ferry.LayoutError)


def test_a_nest_too_deep_for_python_is_a_recursion_error() -> None:
    nest: Any = T
    for _ in range(100_000):
        nest = [nest]
    for arguments in ({}, {"dtype": "float64"}):
        with pytest.raises(RecursionError):
            ferry.to_numpy(nest, **arguments)
    while isinstance(nest, list):  # freeing it all at once would recurse as deeply
        nest = nest.pop()


PLACES: dict[str, tuple[Any, str]] = {
    "a dict": ({"w": 0, "a b": "BAD"}, "['a b']"),
    "a list": ([1, "BAD"], "[1]"),
    "a tuple": (("BAD",), "[0]"),
    "a namedtuple": (Point(1, "BAD"), ".y"),
    "a dataclass": (Batch(1, "BAD"), ".labels"),
    "an OrderedDict": (collections.OrderedDict(a="BAD"), "['a']"),
    "a deque": (collections.deque([1, "BAD"]), "[1]"),
    "depth": ({"layers": [Batch(Point([T, "BAD"], 2))]}, "['layers'][0].images.x[1]"),
}


def planted(nest: Any, bad: Any) -> Any:
    """`nest` with each "BAD" replaced."""
    if isinstance(nest, str):
        return bad if nest == "BAD" else nest
    if isinstance(nest, dict):
        return type(nest)((key, planted(value, bad)) for key, value in nest.items())
    if isinstance(nest, Point):
        return Point(*(planted(value, bad) for value in nest))
    if isinstance(nest, Batch):
        return Batch(planted(nest.images, bad), planted(nest.labels, bad))
    if isinstance(nest, (list, tuple, collections.deque)):
        return type(nest)(planted(value, bad) for value in nest)
    return nest


@pytest.mark.parametrize("arguments", [{}, {"copy": False}, {"dtype": "float64"}], ids=["native", "strict", "general"])
@pytest.mark.parametrize(("nest", "place"), PLACES.values(), ids=PLACES)
def test_an_error_names_the_leaf(nest: Any, place: str, arguments: Any) -> None:
    error = refused_as_planned(planted(nest, torch.ones(2, device="meta")), **arguments)
    assert isinstance(error, ferry.DeviceError)
    assert error.given.startswith(f"leaf {place}: ")


def test_an_error_of_the_native_walk_names_the_leaf() -> None:
    error = refused_as_planned({"a": [torch.ones(2), torch.ones(2).conj() * 1j, torch._neg_view(T)]}, copy=False)
    assert isinstance(error, ferry.CopyRequiredError)
    assert error.given.startswith("leaf ['a'][2]: ")


def test_an_error_of_from_numpy_names_the_leaf() -> None:
    error = refused_as_planned({"a": [np.ones(2), np.array(["text"])]}, to="torch")
    assert error.given.startswith("leaf ['a'][1]: ")
