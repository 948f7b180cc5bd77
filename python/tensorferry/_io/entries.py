"""Nests, pairs and single tensors as entries of a file: a name each, and what to write."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tensorferry._convert.take import is_array_like
from tensorferry._errors import ArgumentError, FerryError, LayoutError
from tensorferry._io.readable import Readable, readable
from tensorferry._nest import cycle_error, is_nest, label, open_node

__all__ = ["SINGLE", "Entries", "Entry", "entries_of", "named_leaves"]

SINGLE = "tensor"  # the name of a tensor that was given alone


@dataclass(eq=False, slots=True)
class Entry:
    """One tensor of a file.

    Attributes
    ----------
    name : str
        As the caller said it; any text.
    tensor : Readable
        What to write.
    alias_of : str or None
        The name of an earlier entry that is the same tensor: nothing is written but that.
    """

    name: str
    tensor: Readable
    alias_of: str | None = None


@dataclass(frozen=True)
class Entries:
    """What a call is to write.

    Attributes
    ----------
    known : list of Entry or None
        All of them; None for an iterator, whose tensors are made one at a time.
    stream : iterator of Entry
        The same, to go through once.
    is_single : bool
        A tensor was given, and no collection of them.
    in_order : callable
        Is told the order in which a format wants them, and yields them in it.
    """

    known: list[Entry] | None
    stream: Iterator[Entry]
    is_single: bool = False
    in_order: Callable[[list[Entry]], Iterable[Entry]] = iter


def entries_of(x: Any, dtype: object = None) -> Entries:
    """Name everything that is to be written.

    Parameters
    ----------
    x : tensor, nest, or iterable of (str, tensor)
        A nest's names are its keys, fields and positions, joined with a dot. Any other iterable but the items of a
        mapping is gone through once, one item at a time, and an item is written before the next one is asked for.
    dtype : dtype, mapping or None
        As for ``to_numpy``.

    Raises
    ------
    ArgumentError
        For two tensors of one name, or an item that is no pair.
    FerryError
        For what cannot be written; names the tensor.
    """
    if is_array_like(x) or (not is_nest(x) and not isinstance(x, Iterable)):
        known = [Entry(SINGLE, readable(x, dtype, in_nest=False))]
        return Entries(known, iter(known), is_single=True)
    if not is_nest(x) and not isinstance(x, ItemsView):
        return Entries(None, _one_at_a_time(iter(x), dtype))  # it may make its tensors on the way
    known = list(_tied(_pairs_in(x), dtype))
    return Entries(known, iter(known))


def _pairs_in(x: Any) -> Iterator[tuple[str, Any]]:
    if not is_nest(x) or _is_list_of_pairs(x):
        return map(_pair, x)
    return named_leaves(x)


def _is_list_of_pairs(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and bool(x) and all(_is_pair(item) for item in x)


def _is_pair(item: object) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)


def _pair(item: Any) -> tuple[str, Any]:
    if _is_pair(item):
        return item[0], item[1]
    raise ArgumentError(
        f"an item of type {type(item).__name__}",
        "an iterable of tensors has to say their names",
        "yield pairs of name and tensor, such as model.named_parameters()",
    )


def _described(name: str, x: Any, dtype: object) -> Readable:
    try:
        return readable(x, dtype)
    except FerryError as error:
        error.given = f"tensor {name!r}: {error.given}"
        raise


def _once(name: str, seen: set[str]) -> str:
    if name in seen:
        raise ArgumentError(
            f"two tensors named {name!r}",
            "a name stands for one tensor in a file",
            "rename one, or save an iterable of pairs with names of your own",
        )
    seen.add(name)
    return name


def _one_at_a_time(items: Iterator[Any], dtype: object) -> Iterator[Entry]:
    """No ties are looked for: an iterator may fill the same memory again."""
    seen: set[str] = set()
    for item in items:
        name, x = _pair(item)
        yield Entry(_once(name, seen), _described(name, x, dtype))


def _tied(pairs: Iterable[tuple[str, Any]], dtype: object) -> Iterator[Entry]:
    seen: set[str] = set()
    first: dict[tuple[Any, ...], str] = {}
    for name, x in pairs:
        tensor = _described(_once(name, seen), x, dtype)
        kept = first.setdefault(tensor.identity, name) if tensor.nbytes else name
        yield Entry(name, tensor, None if kept == name else kept)


def named_leaves(tree: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a nest with their keys, fields and positions joined with a dot.

    Raises
    ------
    LayoutError
        For a nest that contains itself.
    """
    return _walk(tree, (), ())


def _walk(node: Any, parts: tuple[str, ...], inside: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    opened = open_node(node)
    if opened is None:
        yield ".".join(parts), node
        return
    if id(node) in inside:
        raise cycle_error()
    children = opened[0]
    if isinstance(node, Mapping):
        if len(children) != len(node):
            raise LayoutError(f"a {type(node).__name__}", "its keys and values differ in number", "pass a plain dict")
        steps = [str(key) for key in node]
    else:
        steps = [label(node, position).strip(".[]") for position in range(len(children))]
    for step, child in zip(steps, children, strict=True):
        yield from _walk(child, (*parts, step), (*inside, id(node)))
