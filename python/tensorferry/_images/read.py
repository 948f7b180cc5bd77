"""Takes images, or tensors of them, out of any objects, and checks that they belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert.take import Taken, refuse_array, take
from tensorferry._errors import AutogradError, DTypeError, FerryError, LayoutError
from tensorferry._native import core
from tensorferry._torch.autograd import part_in_autograd

__all__ = ["FLOATS", "Images", "read_images", "read_one", "read_tensor"]

FLOATS = ("float16", "bfloat16", "float32", "float64")
_IMAGE_DTYPES = ("uint8", "uint16", *FLOATS)
_MOST_CHANNELS = 4


@dataclass(frozen=True)
class Images:
    """Images of one size and dtype.

    Attributes
    ----------
    sources : list of _core.Source
        Each of three axes, or of two for images without an axis of channels; none where nothing was read.
    count : int
        How many images there are.
    dtype : str
        Native name.
    is_batch : bool
        Does the result have an axis of images?
    """

    sources: list[core.Source]
    count: int
    dtype: str
    height: int
    width: int
    channels: int
    is_batch: bool

    def shape(self, layout: str) -> tuple[int, ...]:
        """Return the shape of the result in a layout."""
        sides = {"C": self.channels, "H": self.height, "W": self.width}
        one = tuple(sides[letter] for letter in layout)
        return (self.count, *one) if self.is_batch else one


def read_images(images: Any, *, only_checked: bool = False) -> Images:
    """Read one image, an array of images or a list of images, height before width before channels.

    Those that are `only_checked` stay where they are, and have no sources.
    """
    if not isinstance(images, (list, tuple)):
        taken = _described(images, keeps_graph=True)
        return _grouped(images, taken, "HWC", "images", _IMAGE_DTYPES, axes=(2, 3, 4), only_checked=only_checked)
    if not images:
        raise LayoutError(
            "images_to_tensor() of no images", "the shape of the result is not known", "pass at least one image"
        )
    described: list[Taken] = []
    for i, image in enumerate(images):
        with _NamedItem(i):
            described.append(_described(image, keeps_graph=True))
            _require_image(described[i], described[0])
    first = described[0].source
    assert first is not None
    height, width, channels = _sides(first.shape, "HWC")
    sources = [] if only_checked else [_readable(image, taken) for image, taken in zip(images, described, strict=True)]
    return Images(sources, len(described), first.dtype, height, width, channels, is_batch=True)


def read_tensor(tensor: Any, layout: str) -> Images:
    """Read one image or a batch of them from a tensor of floating-point numbers."""
    if isinstance(tensor, (list, tuple)):
        raise LayoutError(
            f"a {type(tensor).__name__} of tensors", "images of one batch lie in one tensor", "convert them one by one"
        )
    return _grouped(tensor, _described(tensor, keeps_graph=False), layout, "tensors of images", FLOATS, axes=(3, 4))


def read_one(image: Any) -> core.Source:
    """Read an image, or an array of images, that was checked before."""
    return _readable(image, _described(image, keeps_graph=True))


class _NamedItem:
    """Errors inside say which image of a list they are about."""

    def __init__(self, i: int) -> None:
        self.i = i

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, FerryError):
            error.given = f"image {self.i}: {error.given}"


def _described(x: Any, *, keeps_graph: bool) -> Taken:
    """Read what needs no copy; the values of other tensors are fetched when everything has been checked."""
    part = part_in_autograd(x) if keeps_graph and _torch.is_tensor(x) else ""
    if part:
        raise AutogradError(
            f"an image that {part}",
            "copying its values would cut the graph",
            "use torch's operations to stay in the graph, or x.detach() to leave it",
        )
    if isinstance(x, np.ma.MaskedArray):
        raise DTypeError("a masked array", "the mask would be lost", "fill it first: x.filled(value)")
    taken = take(x, move=False, read=False)
    if taken.source is None:
        assert taken.array is not None
        raise refuse_array(taken.array, "an image")
    return taken


def _readable(x: Any, taken: Taken) -> core.Source:
    source = take(x).source if taken.is_described else taken.source
    assert source is not None
    if source.negated:
        source = core.Source.from_array(core.execute(source, core.decide(source, copy="always", order="C")))
    return source


def _grouped(
    x: Any,
    taken: Taken,
    layout: str,
    what: str,
    dtypes: tuple[str, ...],
    *,
    axes: tuple[int, ...],
    only_checked: bool = False,
) -> Images:
    assert taken.source is not None
    shape, dtype = tuple(taken.source.shape), taken.source.dtype
    _require_dtype(taken.source, what, dtypes)
    if len(shape) not in axes:
        words = {2: '"HW"', 3: f'"{layout}"', 4: f'"N{layout}"'}
        raise LayoutError(
            f"a {shape} {dtype} tensor",
            f"{what} have the axes {' or '.join(words[n] for n in axes)}",
            "add or remove axes, for example x[None], or pass a list of images",
        )
    is_batch = len(shape) == 4
    height, width, channels = _sides(shape[1:] if is_batch else shape, layout)
    count = shape[0] if is_batch else 1
    if only_checked:
        return Images([], count, dtype, height, width, channels, is_batch)
    source = _readable(x, taken)
    sources = [source.item(i) for i in range(count)] if is_batch else [source]
    return Images(sources, count, dtype, height, width, channels, is_batch)


def _require_image(taken: Taken, first: Taken) -> None:
    assert taken.source is not None
    assert first.source is not None
    shape, dtype = tuple(taken.source.shape), taken.source.dtype
    _require_dtype(taken.source, "images", _IMAGE_DTYPES)
    if len(shape) not in (2, 3):
        raise LayoutError(
            f"a {shape} {dtype} tensor", 'an image in a list has the axes "HW" or "HWC"', "pass each image by itself"
        )
    sides = _sides(shape, "HWC")
    if sides != _sides(first.source.shape, "HWC"):
        raise LayoutError(
            f"a {shape} {dtype} tensor",
            f"image 0 has shape {tuple(first.source.shape)}, and images of one tensor are equal in shape",
            "resize, crop or pad them to one shape first, or convert each by itself",
        )
    if dtype != first.source.dtype:
        raise DTypeError(
            f"a {shape} {dtype} tensor",
            f"image 0 has dtype {first.source.dtype}, whose values mean other brightnesses",
            "convert all images to one dtype first, or convert each by itself",
        )


def _require_dtype(source: core.Source, what: str, dtypes: tuple[str, ...]) -> None:
    if source.dtype not in dtypes:
        raise DTypeError(
            f"a {tuple(source.shape)} {source.dtype} tensor",
            f"{what} hold {', '.join(dtypes[:-1])} or {dtypes[-1]}, whose range of values is known",
            f"convert it first, for example to {dtypes[0]}; to move values unchanged use to_numpy or from_numpy",
        )


def _sides(shape: tuple[int, ...], layout: str) -> tuple[int, int, int]:
    """Return height, width and channels."""
    if len(shape) == 2:
        return shape[0], shape[1], 1
    sides = dict(zip(layout, shape, strict=True))
    if not 1 <= sides["C"] <= _MOST_CHANNELS:
        other = "CHW" if layout == "HWC" else "HWC"
        turned = 1 <= dict(zip(other, shape, strict=True))["C"] <= _MOST_CHANNELS
        hints = {"HWC": "x.transpose(1, 2, 0) (torch: x.permute)", "CHW": 'layout="HWC"'}
        raise LayoutError(
            f"an image of shape {tuple(shape)}",
            f"read as {layout} it has {sides['C']} channels, and images have 1 to {_MOST_CHANNELS}",
            f"pass {hints[layout]} if it is {other}" if turned else "pass the channels in groups of at most 4",
        )
    return sides["H"], sides["W"], sides["C"]
