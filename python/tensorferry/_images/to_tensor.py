"""``images_to_tensor``: de-interleaves, scales, normalises and casts in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorferry import _torch
from tensorferry._convert import destination as _destination
from tensorferry._convert.options import choose
from tensorferry._convert.take import take
from tensorferry._dtypes import resolve
from tensorferry._errors import BufferMismatchError, DTypeError, ReadOnlyError
from tensorferry._images.colours import Colours
from tensorferry._images.place import place_of
from tensorferry._images.read import FLOATS, Images, read_images
from tensorferry._native import core
from tensorferry._torch import make as torch_make
from tensorferry._torch.autograd import part_in_autograd

if TYPE_CHECKING:
    import torch

__all__ = ["convert_into", "host_tensor", "images_to_tensor"]


def images_to_tensor(
    images: Any, *, layout: str, bgr: bool, scale: Any, mean: Any, std: Any, dtype: Any, out: Any, device: Any
) -> torch.Tensor:
    """See :func:`tensorferry.images_to_tensor`."""
    choose("layout", layout, ("CHW", "HWC"))
    target = resolve(dtype)
    if target not in FLOATS:
        raise DTypeError(
            f"images_to_tensor(dtype={dtype!r})",
            "normalised values are floating-point numbers",
            f"pass one of {', '.join(FLOATS)}; for the bytes themselves use from_numpy, or stack",
        )
    _torch.require("images_to_tensor()")
    with _torch.outside_of_modes():
        place = place_of(images, out, device)

        def colours_of(read: Images) -> Colours:
            return Colours.parse(bgr, scale, mean, std, read.channels, read.dtype)

        if place is not None:
            from tensorferry._images.on_device import converted_on

            return converted_on(place, images, layout=layout, colours_of=colours_of, target=target, out=out)
        read = read_images(images)
        colours = colours_of(read)
        if out is not None:
            convert_into(_given(out, read, layout, target), read, layout, colours)
            return _written(out)
        return host_tensor(read, layout, colours, target)


def host_tensor(read: Images, layout: str, colours: Colours, target: str) -> torch.Tensor:
    """Convert into new host memory."""
    array = core.empty_array(target, read.shape(layout))
    destination = core.Source.from_array(array)
    convert_into(destination, read, layout, colours)
    return torch_make.share(destination, target)


def convert_into(destination: core.Source, images: Images, layout: str, colours: Colours) -> None:
    """Convert images in host memory into a destination there."""
    if not images.sources:
        return
    parts = [destination.item(i) for i in range(len(images.sources))] if images.is_batch else [destination]
    factors, summands = colours.to_tensor()
    core.convert_images(
        parts,
        images.sources,
        to_layout=layout,
        from_layout="HWC",
        order=colours.order,
        scale=factors,
        shift=summands,
    )


def _given(out: Any, images: Images, layout: str, target: str) -> core.Source:
    """Return the description of a tensor that can be filled, or raise."""
    given = f"out of type {type(out).__name__}"
    if not _torch.is_tensor(out):
        raise BufferMismatchError(given, "only a torch tensor can be filled", "pass a tensor, or leave out")
    taken = take(out, move=False)
    if part_in_autograd(out) or taken.moved_from is not None or taken.tensor is None:
        raise BufferMismatchError(
            f"{given} on device {out.device}, requires_grad={out.requires_grad}",
            "only plain host tensors can be filled",
            "convert to the host first, then copy_",
        )
    destination, shape = taken.source, images.shape(layout)
    assert destination is not None
    if destination.dtype != target:
        raise BufferMismatchError(
            f"out of dtype {destination.dtype} with dtype={target}", "the two disagree", f'pass dtype="{out.dtype}"'
        )
    if tuple(destination.shape) != shape or destination.layout_facts()["may_overlap_itself"] or destination.negated:
        raise BufferMismatchError(
            f"out of shape {tuple(destination.shape)}",
            f"the result needs memory of shape {shape} whose elements do not overlap",
            f"pass a tensor of shape {shape}",
        )
    if destination.read_only:
        raise ReadOnlyError(f"out of shape {shape}", "it has no memory to write to", "pass torch.empty(...)")
    for source in images.sources:
        _destination.refuse_overlap(destination, source)
    return destination


def _written(out: torch.Tensor) -> torch.Tensor:
    import torch

    torch.autograd.graph.increment_version(out)
    return out
