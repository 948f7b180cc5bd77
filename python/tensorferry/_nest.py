"""Nests: containers of tensors, opened into children and built again around converted ones."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from tensorferry._errors import FerryError, LayoutError

__all__ = [
    "Trail",
    "cycle_error",
    "is_nest",
    "label",
    "labelled_leaves",
    "map_leaves",
    "name_leaf",
    "open_node",
    "place",
    "register_node",
    "visit_leaves",
]

# The commonest leaves, so that they are not asked every question below.
_LEAVES = frozenset({np.ndarray, str, bytes, int, float, complex, bool, type(None)})

T = TypeVar("T")
Opened = tuple[list[Any], Callable[[list[Any]], Any]]
Trail = tuple[tuple[Any, int], ...]  # containers from the root on, with the position taken in each

_registered: dict[type, tuple[Callable[[Any], Iterable[Any]], Callable[[Any, list[Any]], Any]]] = {}


def register_node(cls: type[T], children: Callable[[T], Iterable[Any]], rebuild: Callable[[T, list[Any]], Any]) -> None:
    """See :func:`tensorferry.register_node`."""
    _registered[cls] = (children, rebuild)


def _open_dict(node: dict[Any, Any]) -> Opened:
    keys = list(node)

    def rebuild(children: list[Any]) -> Any:
        pairs = zip(keys, children, strict=True)
        if type(node) is dict:
            return dict(pairs)
        if type(node) is OrderedDict:  # what state_dict() returns, with its version in an attribute
            ordered = OrderedDict(pairs)
            ordered.__dict__.update(node.__dict__)
            return ordered
        # A shallow copy keeps what a subclass adds: default factories, attributes, order.
        new = copy.copy(node)
        for key, child in pairs:
            new[key] = child
        return new

    return list(node.values()), rebuild


def _open_mapping(node: Mapping[Any, Any]) -> Opened:
    keys = list(node)
    return list(node.values()), lambda children: type(node)(dict(zip(keys, children, strict=True)))  # type: ignore[call-arg]


def _open_sequence(node: Any) -> Opened:
    if hasattr(node, "_fields"):
        return list(node), lambda children: type(node)(*children)
    return list(node), lambda children: type(node)(children)


def _open_dataclass(node: Any) -> Opened:
    names = _set_fields(node)

    def rebuild(children: list[Any]) -> Any:
        changes = dict(zip(names, children, strict=True))
        plain = all(field.init for field in dataclasses.fields(node)) and not _has_init_only(node)
        if plain:
            return dataclasses.replace(node, **changes)
        new = copy.copy(node)
        for name, child in changes.items():
            object.__setattr__(new, name, child)
        return new

    return [getattr(node, name) for name in names], rebuild


def _set_fields(node: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(node) if hasattr(node, field.name)]


def _has_init_only(node: Any) -> bool:
    """Does the constructor want an ``InitVar``, whose value is not kept?"""
    known = node.__dataclass_fields__
    return any("InitVar" in str(known[name].type) for name in known)


def _open_pytree(node: Any) -> Opened | None:
    pytree = sys.modules.get("torch.utils._pytree")
    definition = pytree.SUPPORTED_NODES.get(type(node)) if pytree is not None else None
    if definition is None:
        return None
    children, context = definition.flatten_fn(node)
    return list(children), lambda converted: definition.unflatten_fn(converted, context)


def open_node(node: Any) -> Opened | None:
    """Return the children of a container and a function that builds it again, or None for a leaf."""
    cls = type(node)
    if cls in _LEAVES or cls.__module__ == "torch":
        return None
    if cls in _registered:
        children, rebuild = _registered[cls]
        return list(children(node)), lambda converted: rebuild(node, converted)
    if isinstance(node, dict):
        return _open_dict(node)
    if isinstance(node, (list, tuple)):
        return _open_sequence(node)
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return _open_dataclass(node)
    opened = _open_pytree(node)
    if opened is None and isinstance(node, Mapping):
        opened = _open_mapping(node)
    return opened


def is_nest(x: object) -> bool:
    """Is `x` a container whose leaves are converted one by one?"""
    return open_node(x) is not None


def label(node: Any, position: int) -> str:
    """Say how a child is reached from its container: ``['key']``, ``.field`` or ``[0]``."""
    if isinstance(node, Mapping):
        return f"[{next(itertools.islice(node, position, None))!r}]"
    if dataclasses.is_dataclass(node):
        return f".{_set_fields(node)[position]}"
    if hasattr(node, "_fields"):
        return f".{node._fields[position]}"
    return f"[{position}]"


def place(trail: Iterable[tuple[Any, int]]) -> str:
    """Say where a leaf is, by the containers on the way there and the position in each."""
    return "".join(label(container, position) for container, position in trail)


def cycle_error() -> LayoutError:
    """Return the error for a nest without end."""
    return LayoutError(
        "a nest that contains itself", "a container is one of its own descendants", "break the cycle before converting"
    )


def name_leaf(error: Exception, trail: Iterable[tuple[Any, int]]) -> None:
    """Say in `error` which leaf it concerns; `trail` as for :func:`place`."""
    where = place(trail)
    if isinstance(error, FerryError) and where:
        error.given = f"leaf {where}: {error.given}"


def map_leaves(convert: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Return `tree` with each leaf replaced by ``convert(leaf, *matching leaves of others)``.

    The same leaf object converts once. An error says which leaf it concerns.

    Raises
    ------
    LayoutError
        For a nest that contains itself, or `others` of another structure.
    """
    return _Walk(convert).walk(tree, others, ())


def visit_leaves(convert: Callable[..., T], tree: Any, *others: Any) -> list[tuple[str, T]]:
    """Return the place of each leaf and what `convert` makes of it, as :func:`map_leaves` does, building nothing."""
    walk = _Walk(convert, rebuilds=False)
    walk.walk(tree, others, ())
    return [(place(trail), converted) for trail, converted in walk.found]


class _Walk:
    """One pass over a nest. Not a closure: one that calls itself would keep all leaves until the next collection."""

    def __init__(self, convert: Callable[..., Any], *, rebuilds: bool = True) -> None:
        self._convert = convert
        self._rebuilds = rebuilds
        self.found: list[tuple[Trail, Any]] = []
        self._done: dict[int, tuple[Any, Any]] = {}  # id -> (leaf, converted): holding the leaf keeps its id unique
        self._open_ids: set[int] = set()

    def walk(self, node: Any, matching: tuple[Any, ...], trail: Trail) -> Any:
        opened = open_node(node)
        if opened is None:
            return self._leaf(node, matching, trail)
        if id(node) in self._open_ids:
            raise cycle_error()
        children, rebuild = opened
        columns = [_matching_children(node, len(children), other, trail) for other in matching]
        self._open_ids.add(id(node))
        new = [
            self._leaf(child, tuple(column[i] for column in columns), trail, (node, i))
            if type(child) is np.ndarray
            else self.walk(child, tuple(column[i] for column in columns), (*trail, (node, i)))
            for i, child in enumerate(children)
        ]
        self._open_ids.discard(id(node))
        return rebuild(new) if self._rebuilds else None

    def _leaf(self, leaf: Any, matching: tuple[Any, ...], trail: Trail, *steps: tuple[Any, int]) -> Any:
        """Convert a leaf at the end of the trail and of what steps lead on from there."""
        if not matching and id(leaf) in self._done:
            converted = self._done[id(leaf)][1]
        else:
            try:
                converted = self._convert(leaf, *matching)
            except FerryError as error:
                name_leaf(error, (*trail, *steps))
                raise
            self._done[id(leaf)] = (leaf, converted)
        if not self._rebuilds:
            self.found.append(((*trail, *steps), converted))
        return converted


def labelled_leaves(tree: Any, trail: Trail = ()) -> Iterator[tuple[str, Any]]:
    """Yield each leaf with its place, such as ``['layers'][0].weight``."""
    opened = open_node(tree)
    if opened is None:
        yield place(trail), tree
        return
    for position, child in enumerate(opened[0]):
        yield from labelled_leaves(child, (*trail, (tree, position)))


def _matching_children(node: Any, count: int, other: Any, trail: Trail) -> list[Any]:
    opened = open_node(other)
    same_keys = not isinstance(node, Mapping) or (isinstance(other, Mapping) and list(node) == list(other))
    if opened is None or len(opened[0]) != count or not same_keys:
        raise LayoutError(
            f"nests of different structure at {place(trail) or 'the top'}",
            f"one has {count} children there, the other does not match them",
            "give a nest with the same containers and keys",
        )
    return opened[0]
