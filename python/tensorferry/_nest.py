"""Nests: containers of tensors, opened into children and built again around converted ones."""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from tensorferry._errors import FerryError, LayoutError

__all__ = [
    "cycle_error",
    "is_nest",
    "labelled_leaves",
    "labels",
    "map_leaves",
    "name_leaf",
    "open_node",
    "register_node",
    "visit_leaves",
]

# The commonest leaves, so that they are not asked every question below.
_LEAVES = frozenset({np.ndarray, str, bytes, int, float, complex, bool, type(None)})

T = TypeVar("T")
Opened = tuple[list[Any], Callable[[list[Any]], Any]]

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


def labels(node: Any, count: int) -> list[str]:
    """Say how each child is reached from its container: ``['key']``, ``.field`` or ``[0]``."""
    if isinstance(node, Mapping):
        return [f"[{key!r}]" for key in node]
    if dataclasses.is_dataclass(node):
        return [f".{name}" for name in _set_fields(node)]
    if hasattr(node, "_fields"):
        return [f".{name}" for name in node._fields]
    return [f"[{i}]" for i in range(count)]


def cycle_error() -> LayoutError:
    """Return the error for a nest without end."""
    return LayoutError(
        "a nest that contains itself", "a container is one of its own descendants", "break the cycle before converting"
    )


def name_leaf(error: Exception, trail: list[tuple[Any, int]]) -> None:
    """Say in `error` which leaf it concerns; `trail` has each container on the way there and a position in it."""
    if isinstance(error, FerryError):
        path = "".join(labels(container, position + 1)[position] for container, position in trail)
        error.given = f"leaf {path}: {error.given}"


def map_leaves(convert: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Return `tree` with each leaf replaced by ``convert(leaf, *matching leaves of others)``.

    The same leaf object converts once. An error says which leaf it concerns.

    Raises
    ------
    LayoutError
        For a nest that contains itself, or `others` of another structure.
    """
    return _Walk(convert).walk(tree, others, "")


def visit_leaves(convert: Callable[..., T], tree: Any, *others: Any) -> list[tuple[str, T]]:
    """Return the place of each leaf and what `convert` makes of it, as :func:`map_leaves` does, building nothing."""
    walk = _Walk(convert, rebuilds=False)
    walk.walk(tree, others, "")
    return walk.found


class _Walk:
    """One pass over a nest. Not a closure: one that calls itself would keep all leaves until the next collection."""

    def __init__(self, convert: Callable[..., Any], *, rebuilds: bool = True) -> None:
        self._convert = convert
        self._rebuilds = rebuilds
        self.found: list[tuple[str, Any]] = []
        self._done: dict[int, tuple[Any, Any]] = {}  # id -> (leaf, converted): holding the leaf keeps its id unique
        self._open_ids: set[int] = set()

    def walk(self, node: Any, matching: tuple[Any, ...], path: str) -> Any:
        opened = open_node(node)
        if opened is None:
            converted = self._leaf(node, matching, path)
            self.found.append((path, converted))
            return converted
        if id(node) in self._open_ids:
            raise cycle_error()
        children, rebuild = opened
        columns = [_matching_children(node, len(children), other, path) for other in matching]
        self._open_ids.add(id(node))
        places = labels(node, len(children))
        new = [
            self.walk(child, tuple(column[i] for column in columns), path + places[i])
            for i, child in enumerate(children)
        ]
        self._open_ids.discard(id(node))
        return rebuild(new) if self._rebuilds else None

    def _leaf(self, leaf: Any, matching: tuple[Any, ...], path: str) -> Any:
        if not matching and id(leaf) in self._done:
            return self._done[id(leaf)][1]
        try:
            converted = self._convert(leaf, *matching)
        except FerryError as error:
            if path:
                error.given = f"leaf {path}: {error.given}"
            raise
        self._done[id(leaf)] = (leaf, converted)
        return converted


def labelled_leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each leaf with its place, such as ``['layers'][0].weight``."""
    opened = open_node(tree)
    if opened is None:
        yield path, tree
        return
    children = opened[0]
    for label, child in zip(labels(tree, len(children)), children, strict=True):
        yield from labelled_leaves(child, path + label)


def _matching_children(node: Any, count: int, other: Any, path: str) -> list[Any]:
    opened = open_node(other)
    same_keys = not isinstance(node, Mapping) or (isinstance(other, Mapping) and list(node) == list(other))
    if opened is None or len(opened[0]) != count or not same_keys:
        raise LayoutError(
            f"nests of different structure at {path or 'the top'}",
            f"one has {count} children there, the other does not match them",
            "give a nest with the same containers and keys",
        )
    return opened[0]
