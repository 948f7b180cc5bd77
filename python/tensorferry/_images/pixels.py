"""Pixels that lie on a device, and what turns them into planes there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorferry._device.driven import drives_torch
from tensorferry._images.colours import Colours
from tensorferry._images.read import read_one
from tensorferry._native import core
from tensorferry._torch import make as torch_make

if TYPE_CHECKING:
    import torch

__all__ = ["by_arithmetic", "by_kernel", "by_table", "bytes_there", "four_axes", "planes_first"]

_BYTES = 256


def four_axes(pixels: torch.Tensor) -> torch.Tensor:
    """Return a view of shape (N, H, W, C) of one image, (H, W) or (H, W, C), or of a batch."""
    if pixels.dim() == 2:
        pixels = pixels.unsqueeze(-1)
    return pixels.unsqueeze(0) if pixels.dim() == 3 else pixels


def planes_first(tensor: torch.Tensor, layout: str, *, is_batch: bool) -> torch.Tensor:
    """Return a view of shape (N, C, H, W)."""
    batch = tensor if is_batch else tensor.unsqueeze(0)
    return batch if layout == "CHW" else batch.permute(0, 3, 1, 2)


def bytes_there(items: list[Any], place: torch.device) -> torch.Tensor:
    """Send the bytes of host images, or of one batch, to a CUDA device: a tensor of shape (N, H, W, C)."""
    from tensorferry._device.sending import fill, send_new

    sources = [read_one(image) for image in items]
    decided = [_decided(source) for source in sources]
    if len(sources) == 1:
        return four_axes(send_new(sources[0], decided[0], place, None))
    import torch

    together = torch.empty((len(sources), *sources[0].shape), dtype=torch.uint8, device=place)
    for one, source, decision in zip(together, sources, decided, strict=True):
        fill(one.view(decision.shape), source, decision, None)
    return together if together.dim() == 4 else together.unsqueeze(-1)


def _decided(source: core.Source) -> core.Decision:
    return core.decide(
        source, target="torch", copy="always", dtype="uint8", casting="same_kind", order="C", readonly="share"
    )


def by_kernel(planes: torch.Tensor, target: str, pixels: torch.Tensor, colours: Colours) -> bool:
    """Enqueue one launch of a kernel of ours; False where there is none for this, and then nothing was done."""
    place = planes.device
    if not drives_torch(place.type):
        return False
    from tensorferry._device.on_device import TorchOnDevice
    from tensorferry._device.streams import torch_stream

    stream = torch_stream(place.index)
    factors, summands = colours.to_tensor()
    return core.convert_images_on_device(
        TorchOnDevice(planes, target).as_it_is(stream),
        target,
        TorchOnDevice(pixels, "uint8").as_it_is(stream),
        order=colours.order,
        scale=factors,
        shift=summands,
    )


def by_table(planes: torch.Tensor, target: str, pixels: torch.Tensor, colours: Colours) -> None:
    """Look every byte up in a table that the host has computed: by torch, with the same results bit for bit."""
    table = _table(target, colours).to(planes.device)
    for c, channel in enumerate(colours.order):
        planes[:, c].copy_(table[c][pixels[..., channel].long()])


def _table(target: str, colours: Colours) -> torch.Tensor:
    """What becomes of each byte in each channel of the tensor: shape (C, 256)."""
    channels = len(colours.order)
    every = np.repeat(np.arange(_BYTES, dtype=np.uint8), channels).reshape(1, _BYTES, channels)
    destination = core.Source.from_array(core.empty_array(target, (channels, 1, _BYTES)))
    factors, summands = colours.to_tensor()
    core.convert_images(
        [destination],
        [core.Source.from_array(every)],
        to_layout="CHW",
        from_layout="HWC",
        order=colours.order,
        scale=factors,
        shift=summands,
    )
    return torch_make.share(destination, target)[:, 0]


def by_arithmetic(planes: torch.Tensor, pixels: torch.Tensor, colours: Colours) -> None:
    """Compute in float64 by torch's operations; float16 and bfloat16 come of a second rounding."""
    import torch

    factors, summands = colours.to_tensor()
    for c, channel in enumerate(colours.order):
        planes[:, c].copy_(pixels[..., channel].to(torch.float64).mul_(factors[c]).add_(summands[c]))
