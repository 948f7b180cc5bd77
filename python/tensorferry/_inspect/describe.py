"""``describe``: what an object is, as a tensor, without reading or changing a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert.take import is_array_like, is_producer, take
from tensorferry._errors import LayoutError
from tensorferry._inspect.describe_array import describe_array
from tensorferry._inspect.describe_producers import describe_convertible, describe_producer
from tensorferry._inspect.description import Description
from tensorferry._inspect.description_nest import NestDescription
from tensorferry._inspect.pages import with_pinned_facts
from tensorferry._nest import is_nest, labelled_leaves, open_node
from tensorferry._torch import facts as torch_facts

__all__ = ["describe", "refuse_cycles"]


def describe(x: Any, /) -> Description | NestDescription:
    """See :func:`tensorferry.describe`."""
    if not is_nest(x):
        return _describe_leaf(x)
    refuse_cycles(x)
    leaves = list(labelled_leaves(x))
    return NestDescription(
        class_name=type(x).__name__,
        parts={place: _describe_leaf(leaf) for place, leaf in leaves if _is_described(leaf)},
        others={place: type(leaf).__name__ for place, leaf in leaves if not _is_described(leaf)},
    )


def refuse_cycles(tree: Any, above: tuple[int, ...] = ()) -> None:
    """Raise LayoutError for a nest that contains itself."""
    opened = open_node(tree)
    if opened is None:
        return
    if id(tree) in above:
        raise LayoutError(
            "a nest that contains itself", "a container is one of its own descendants", "break the cycle first"
        )
    for child in opened[0]:
        refuse_cycles(child, (*above, id(tree)))


def _is_described(x: Any) -> bool:
    return is_array_like(x) or isinstance(x, (np.generic, bytes))


def _describe_leaf(x: Any) -> Description:
    return with_pinned_facts(_describe_without_pages(x))


def _describe_without_pages(x: Any) -> Description:
    if _torch.is_tensor(x):
        return torch_facts.describe_tensor(x)
    if isinstance(x, np.ndarray):
        return describe_array(x)
    if not _is_described(x):
        take(x)  # raises: it is no tensor
    if is_producer(x) and not isinstance(x, np.generic):
        return describe_producer(x)
    return describe_convertible(x)
