"""Where images are converted: on the host, or on the device that they are on or are wanted on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorferry import _torch
from tensorferry._errors import BufferMismatchError, DeviceError
from tensorferry._torch import make as torch_make

if TYPE_CHECKING:
    import torch

__all__ = ["is_on_cuda", "items_of", "place_of"]


def place_of(images: Any, out: Any, device: Any) -> torch.device | None:
    """Return the device that the tensor is to be on; None for the host.

    That is `device`, else the one of `out`, else the one that all images are on where it is torch's and a CUDA device.

    Raises
    ------
    DeviceError
        For a device that is not there, and without one for images on several.
    BufferMismatchError
        For an `out` on another device than the one asked for.
    """
    if device is not None:
        place = _existing(device)
        if _torch.is_tensor(out) and not _is_on(out, place):
            raise BufferMismatchError(
                f"out on device {out.device} with device={str(device)!r}",
                "the two disagree",
                "leave device out: that of the destination is used",
            )
        return place
    if out is not None:
        return out.device if _torch.is_tensor(out) and out.device.type == "cuda" else None
    return _common_place(items_of(images))


def _is_on(out: torch.Tensor, place: torch.device | None) -> bool:
    if place is None:
        return out.device.type == "cpu"
    return out.device.type == place.type and place.index in (None, out.device.index)


def items_of(images: Any) -> list[Any]:
    """Return the images of a list, or the one that was given."""
    return list(images) if isinstance(images, (list, tuple)) else [images]


def is_on_cuda(image: Any) -> bool:
    """Is it a torch tensor on a CUDA device? What exports itself is read as it says."""
    return _torch.is_tensor(image) and image.device.type == "cuda" and not _torch.exports_itself(image)


def _common_place(items: list[Any]) -> torch.device | None:
    places = [image.device if is_on_cuda(image) else None for image in items]
    for i, place in enumerate(places):
        if place != places[0]:
            raise DeviceError(
                f"image {i} on {place or 'the host'}",
                f"image 0 is on {places[0] or 'the host'}, and it is not said where the tensor is wanted",
                f'pass device="{place or places[0]}", or device="cpu"',
            )
    return places[0] if places else None


def _existing(device: Any) -> torch.device | None:
    import torch

    torch_make.require_device(device)
    place = torch.device(device)
    if place.type == "cpu":
        return None
    if place.type == "cuda" and place.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return place
