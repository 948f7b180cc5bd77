"""Random layouts as kernels get them: NumPy views, and the same bytes in device memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from helpers.fake_kernels import DeviceBytes, Kernels
from helpers.kernel_launches import Launch, launch_copy

__all__ = ["BITS", "OnDevice", "axes_between", "copied_by_launch", "random_destination", "random_shape", "random_view"]

# Elements of each size that moves as bits; NumPy names and ours agree.
BITS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}


class OnDevice:
    """Bytes of an array in device memory, at an offset of any alignment; views of the array have addresses there."""

    def __init__(self, kernels: Kernels, base: NDArray[Any], offset: int = 0) -> None:
        self.base, self.offset = base, offset
        self.memory = DeviceBytes(kernels.driver, offset + base.nbytes)
        self.memory.poke(base.reshape(-1).view(np.uint8) if base.nbytes else base, offset)

    def pointer_to(self, view: NDArray[Any]) -> int:
        """Device address of a view's first element."""
        begin = self.base.__array_interface__["data"][0]
        return int(self.memory.pointer + self.offset + view.__array_interface__["data"][0] - begin)

    def values(self) -> NDArray[Any]:
        """The array as the device has it now."""
        return self.memory.peek()[self.offset :].view(self.base.dtype).reshape(self.base.shape)


def random_shape(rng: np.random.Generator) -> tuple[int, ...]:
    """Zero to five axes, now and then one of them longer than a block's work, or empty."""
    shape = [int(rng.integers(1, 7)) for _ in range(rng.integers(0, 6))]
    if rng.random() < 0.2:
        shape = [*shape[:2], int(rng.integers(33, 90)), int(rng.integers(33, 90))]
    for chance, extents in ((0.3, (30, 140)), (0.2, (60, 200)), (0.03, (0, 1))):
        if shape and rng.random() < chance:
            shape[int(rng.integers(len(shape)))] = int(rng.integers(*extents))
    while np.prod(shape, dtype=int) > 20_000:
        shape[int(np.argmax(shape))] //= 2
    return tuple(shape)


def _strided(rng: np.random.Generator, base: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Cut a view of this shape out of a base that is large enough: steps of either sign, then axes put in an order."""
    cuts = []
    for extent, length in zip(shape, base.shape, strict=True):
        step = int(rng.integers(1, 4)) if extent > 1 and length > 3 * extent else 1
        start = int(rng.integers(0, length - max(extent - 1, 0) * step)) if length else 0
        cut = np.arange(extent) * step + start
        if extent == 0:
            cuts.append(slice(0, 0))
        elif rng.random() < 0.3:
            cuts.append(slice(int(cut[-1]), int(cut[0]) - 1 if cut[0] > 0 else None, -step))
        else:
            cuts.append(slice(int(cut[0]), int(cut[-1]) + 1, step))
    return base[(*cuts, ...)]


def _base(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> tuple[NDArray[Any], list[int]]:
    order = [int(i) for i in rng.permutation(len(shape))]
    longer = [shape[i] * int(rng.choice([1, 1, 2, 4])) + int(rng.choice([0, 0, 1, 3])) for i in order]
    while np.prod(longer, dtype=int) > 200_000:
        longer = [max(shape[i], n // 2) for n, i in zip(longer, order, strict=True)]
    nbytes = int(np.prod(longer, dtype=int)) * np.dtype(dtype).itemsize
    return rng.integers(0, 256, nbytes, np.uint8).view(dtype).reshape(longer), order


def random_view(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """A base of random bytes and a view of it: permuted, cut, reversed, or repeated along an axis."""
    repeated = [extent > 1 and rng.random() < 0.15 for extent in shape]
    kept = tuple(1 if again else extent for extent, again in zip(shape, repeated, strict=True))
    base, order = _base(rng, kept, dtype)
    cut = _strided(rng, base, tuple(kept[i] for i in order))
    view = cut.transpose([order.index(i) for i in range(len(order))])
    return base, np.broadcast_to(view, shape)


def random_destination(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The same without repetition: every element has a place of its own."""
    base, order = _base(rng, shape, dtype)
    cut = _strided(rng, base, tuple(shape[i] for i in order))
    return base, cut.transpose([order.index(i) for i in range(len(order))])


def axes_between(to: NDArray[Any], source: NDArray[Any]) -> list[tuple[int, int, int]]:
    """Extents, and strides of both in bytes."""
    return list(zip(to.shape, to.strides, source.strides, strict=True))


def copied_by_launch(
    kernels: Kernels,
    to: NDArray[Any],
    into: OnDevice,
    source: NDArray[Any],
    out_of: OnDevice,
    names: tuple[str, str],
    **how: Any,
) -> Launch | None:
    """The launch between two views, by the product's own choice."""
    return launch_copy(into.pointer_to(to), out_of.pointer_to(source), names, axes_between(to, source), **how)
