"""Fresh inputs, and the refusal of those that prove nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorferry._errors import ArgumentError
from tensorferry.bench._declare import Inputs, Point
from tensorferry.bench._leaf import arrays_in, as_array, byte_range

__all__ = ["fresh_inputs"]

_FEW = 16  # fewer equal values than this may be a parameter, such as the means of three colours


def fresh_inputs(
    setup: Callable[..., Inputs], point: Point, destinations: tuple[str, ...], seed: int, generation: int
) -> Inputs:
    """Return what ``setup(rng, **point)`` makes from numbers that no other generation gets.

    Raises
    ------
    ArgumentError
        When an array or a tensor that shares no memory with a destination holds nothing but zeros, or one value over
        and over: pages of zeros may be shared by the system, and a wrong order of equal values looks right. Or when a
        destination is missing.
    """
    inputs = setup(np.random.default_rng([seed, generation]), **point)
    missing = [name for name in destinations if name not in inputs]
    if missing:
        raise ArgumentError(
            f"destinations={destinations!r}", f"setup made no {missing[0]!r}", "name inputs that setup makes"
        )
    written = [byte_range(leaf) for name in destinations for _, leaf in arrays_in(inputs[name])]
    for name, value in inputs.items():
        for place, leaf in arrays_in(value):
            if not any(byte_range(leaf).start in memory for memory in written):
                _refuse_constant(f"{name}{place}", leaf)
    return inputs


def _refuse_constant(name: str, leaf: Any) -> None:
    size = int(np.prod(leaf.shape))
    if size < 2 or not _is_constant(leaf[tuple(slice(0, 17) for _ in leaf.shape)]):  # a corner settles most
        return
    first = as_array(leaf[(0,) * len(leaf.shape)])
    if (size < _FEW and first.any()) or not _is_constant(leaf):
        return
    raise ArgumentError(
        f"the input {name!r} from setup",
        f"all of its {size:,} values are {first!s}",
        "fill it from the generator that setup gets, or name it among the destinations",
    )


def _is_constant(leaf: Any) -> bool:
    array = as_array(leaf)
    return bool((array == array[(0,) * array.ndim]).all())
