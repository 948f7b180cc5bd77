"""Containers of tensors: every kind is rebuilt as it was, and an error names the leaf."""

from __future__ import annotations

import collections
import dataclasses
import gc
import types
import typing
import weakref
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.plans import refusal_of, refused_as_planned

T = torch.arange(3.0)
Point = collections.namedtuple("Point", ["x", "y"])


class Typed(typing.NamedTuple):
    x: Any
    label: str = "none"


@dataclasses.dataclass
class Batch:
    images: Any
    labels: Any = 3


@dataclasses.dataclass(frozen=True)
class Frozen:
    images: Any


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    images: Any


@dataclasses.dataclass
class Derived:
    images: Any
    total: Any = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.total = self.images.shape


@dataclasses.dataclass
class Seeded:
    images: Any
    seed: dataclasses.InitVar[int]

    def __post_init__(self, seed: int) -> None:
        self.seen = seed


class Bag(collections.abc.Mapping):
    """A Mapping of its own."""

    def __init__(self, items: dict[str, Any]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Any:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


CONTAINERS: dict[str, tuple[Any, Any]] = {
    "dict": ({"a": T, 3: T}, lambda n: n["a"]),
    "list": ([T, 1], lambda n: n[0]),
    "tuple": ((T, 1), lambda n: n[0]),
    "namedtuple": (Point(T, 2), lambda n: n.x),
    "typed namedtuple": (Typed(T), lambda n: n.x),
    "OrderedDict": (collections.OrderedDict(b=1, a=T), lambda n: n["a"]),
    "defaultdict": (collections.defaultdict(list, a=T), lambda n: n["a"]),
    "Counter": (collections.Counter(a=T), lambda n: n["a"]),
    "deque": (collections.deque([T], maxlen=4), lambda n: n[0]),
    "ChainMap": (collections.ChainMap({"a": T}), lambda n: n["a"]),
    "UserDict": (collections.UserDict(a=T), lambda n: n["a"]),
    "mapping proxy": (types.MappingProxyType({"a": T}), lambda n: n["a"]),
    "another Mapping": (Bag({"a": T}), lambda n: n["a"]),
    "dataclass": (Batch(T), lambda n: n.images),
    "frozen dataclass": (Frozen(T), lambda n: n.images),
    "slotted dataclass": (Slotted(T), lambda n: n.images),
    "dataclass with a computed field": (Derived(T), lambda n: n.images),
    "dataclass with a constructor-only field": (Seeded(T, seed=3), lambda n: n.images),
    "torch return type": (torch.max(torch.stack([T, T - 1]), dim=0), lambda n: n.values),
    "a list of dicts of tuples": ([{"a": (T,)}], lambda n: n[0]["a"][0]),
}
containers = pytest.mark.parametrize(("nest", "pick"), CONTAINERS.values(), ids=CONTAINERS)


@containers
@pytest.mark.parametrize("arguments", [{}, {"copy": True}, {"dtype": "float64"}], ids=["view", "copy", "cast"])
def test_a_container_comes_back_as_its_own_kind(nest: Any, pick: Any, arguments: Any) -> None:
    converted = ferry.to_numpy(nest, **arguments)
    assert type(converted) is type(nest)
    assert converted is not nest
    assert isinstance(pick(converted), np.ndarray)
    assert pick(converted).tolist() == [0, 1, 2]
    assert isinstance(pick(nest), torch.Tensor)
    assert pick(ferry.plan(nest, **arguments).parts and converted) is pick(converted)


@containers
def test_a_container_goes_both_ways(nest: Any, pick: Any) -> None:
    back = ferry.from_numpy(ferry.to_numpy(nest))
    assert type(back) is type(nest)
    assert torch.equal(pick(back), T)


def test_containers_keep_what_makes_them_special() -> None:
    assert list(ferry.to_numpy(collections.OrderedDict(b=T, a=T))) == ["b", "a"]
    assert ferry.to_numpy(collections.defaultdict(list, a=T)).default_factory is list
    assert ferry.to_numpy(collections.deque([T], maxlen=4)).maxlen == 4
    assert ferry.to_numpy(Seeded(T, seed=3)).seen == 3
    assert list(ferry.to_numpy({"z": T, "a": 1, 2: None})) == ["z", "a", 2]
    assert ferry.to_numpy([]) == []
    assert ferry.to_numpy(()) == ()
    assert ferry.to_numpy({}) == {}
    assert ferry.to_numpy(torch.Size([2])) == torch.Size([2])


def test_a_field_that_was_never_set_stays_unset() -> None:
    @dataclasses.dataclass
    class Later:
        images: Any
        total: Any = dataclasses.field(init=False)

    converted = ferry.to_numpy(Later(T))
    assert converted.images.tolist() == [0, 1, 2]
    assert not hasattr(converted, "total")


def test_leaves_that_are_no_arrays_pass_through() -> None:
    leaves = [None, 1, 2.5, 3j, "text", b"bytes", True, torch.float32, torch.device("cpu"), range(3), {1, 2}, object()]
    for arguments in ({}, {"copy": True}, {"dtype": "float64"}):
        converted = ferry.to_numpy([*leaves, T], **arguments)
        assert all(new is old for new, old in zip(converted, leaves, strict=False))
    assert all(new is old for new, old in zip(ferry.from_numpy(leaves), leaves, strict=True))


@pytest.mark.parametrize("arguments", [{}, {"copy": True}, {"dtype": "float64"}, {"copy": "lazy"}], ids=str)
def test_the_same_tensor_gives_the_same_array(arguments: Any) -> None:
    x = torch.ones(3)
    converted = ferry.to_numpy({"a": x, "b": [x, (x,)], "c": x.clone()}, **arguments)
    assert converted["a"] is converted["b"][0] is converted["b"][1][0]
    assert converted["c"] is not converted["a"]
    fresh = torch.ones(3)
    assert ferry.plan([fresh, fresh], copy=True).copies == 1
    tensors = ferry.from_numpy([converted["a"]] * 2)
    assert tensors[0] is tensors[1]


def test_the_same_container_is_converted_at_each_place() -> None:
    inner = [torch.ones(2)]
    converted = ferry.to_numpy([inner, inner])
    assert converted[0] is not converted[1]
    assert converted[0][0] is converted[1][0]


def test_a_thousand_leaves_equal_the_comprehension() -> None:
    nest = {f"layer{i}": torch.full((i % 7, 3), float(i)) for i in range(1000)}
    for arguments in ({}, {"copy": True}, {"dtype": "float64"}):
        converted = ferry.to_numpy(nest, **arguments)
        expected = {key: x.numpy() for key, x in nest.items()}
        assert list(converted) == list(expected)
        assert all(np.array_equal(converted[key], expected[key]) for key in expected)
    assert ferry.plan(nest, copy=True).nbytes_moved == sum(x.nbytes for x in nest.values())
    assert len(ferry.plan(nest).parts) == 1000


class Tree:
    """Known to nobody until it is registered."""

    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right


def test_an_unknown_class_is_a_leaf_until_it_is_registered() -> None:
    tree = Tree(T, [T])
    assert isinstance(refusal_of(lambda: ferry.to_numpy(tree)), ferry.DTypeError)
    assert ferry.to_numpy([tree])[0] is tree
    ferry.register_node(Tree, lambda node: [node.left, node.right], lambda node, new: Tree(*new))
    for converted in (ferry.to_numpy(tree), ferry.to_numpy([tree])[0], ferry.to_numpy(tree, dtype="float64")):
        assert type(converted) is Tree
        assert converted.left.tolist() == converted.right[0].tolist() == [0, 1, 2]
    assert torch.equal(ferry.from_numpy(ferry.to_numpy(tree)).left, T)
    error = refused_as_planned(Tree(1, [torch.ones(1, device="meta")]))
    assert error.given.startswith("leaf [1][0]: ")


class Registered:
    """Known to torch."""

    def __init__(self, x: Any, name: str) -> None:
        self.x, self.name = x, name


torch.utils._pytree.register_pytree_node(
    Registered, lambda node: ([node.x], node.name), lambda children, name: Registered(*children, name)
)


def test_a_class_registered_with_torch_is_a_container() -> None:
    for nest in (Registered(T, "n"), [Registered(T, "n")]):
        converted = ferry.to_numpy(nest)
        converted = converted[0] if isinstance(converted, list) else converted
        assert converted.x.tolist() == [0, 1, 2]
        assert converted.name == "n"


def test_a_plan_builds_no_containers() -> None:
    planned = ferry.plan(Derived(T))  # its constructor wants a tensor
    assert set(planned.parts) == {".images"}
    assert ferry.plan({"a": T, "n": 5}, copy=True).nbytes_moved == 12


def test_a_converted_nest_is_freed_without_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        for arguments in ({}, {"dtype": "float64"}, {"copy": "lazy"}):
            x = torch.ones(3)
            gone = weakref.ref(x)
            ferry.to_numpy({"a": [x]}, **arguments)
            ferry.plan({"a": [x]}, **arguments)
            del x
            assert gone() is None
    finally:
        gc.enable()
