"""Images to a tensor on a device: bytes by a kernel of ours where there is one, else by torch's operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorferry import _torch
from tensorferry._device.driven import drives_torch
from tensorferry._errors import BufferMismatchError
from tensorferry._images.colours import Colours
from tensorferry._images.pixels import by_arithmetic, by_kernel, by_table, bytes_there, four_axes, planes_first
from tensorferry._images.place import is_on_cuda, items_of
from tensorferry._images.read import Images, read_images
from tensorferry._images.to_tensor import host_tensor
from tensorferry._torch import fallback
from tensorferry._torch import make as torch_make
from tensorferry._torch.fallback_refusals import require_fit

if TYPE_CHECKING:
    import torch

__all__ = ["converted_on"]


def converted_on(
    place: torch.device,
    images: Any,
    *,
    layout: str,
    colours_of: Callable[[Images], Colours],
    target: str,
    out: Any,
) -> torch.Tensor:
    """See :func:`tensorferry.images_to_tensor`; in torch's current stream of the device."""
    import torch

    items = items_of(images)
    read = read_images(images, only_checked=True)
    colours = colours_of(read)
    if out is not None:
        _require_usable(out, read.shape(layout), target, place, items)
    if drives_torch(place.type):
        from tensorferry._device.capturing import refuse_in_capture

        refuse_in_capture(f"images_to_tensor() on {place}", place.index, None)
    stays = place.type == "cuda" and all(map(is_on_cuda, items))
    if not stays and (read.dtype != "uint8" or not drives_torch(place.type)):
        return _through_host(host_tensor(read_images(images), layout, colours, target), place, out)
    dtype = torch_make.torch_dtype(target)
    with torch.no_grad():
        result = torch.empty(read.shape(layout), dtype=dtype, device=place) if out is None else out
        if read.count and result.numel():
            with torch.inference_mode(result.is_inference()):
                _fill(planes_first(result.detach(), layout, is_batch=read.is_batch), target, items, colours, read.dtype)
    if out is not None:
        torch.autograd.graph.increment_version(out)
    return result


def _fill(planes: torch.Tensor, target: str, items: list[Any], colours: Colours, dtype: str) -> None:
    """Convert into planes of shape (N, C, H, W); whatever is not there yet is brought there as it is."""
    place, done = planes.device, 0
    for part in _parts(items, place):
        some = planes[done : done + part.shape[0]]
        done += part.shape[0]
        if dtype != "uint8":
            by_arithmetic(some, part, colours)
        elif not by_kernel(some, target, part, colours):
            by_table(some, target, part, colours)


def _parts(items: list[Any], place: torch.device) -> list[torch.Tensor]:
    """Return tensors (n, H, W, C) on the device that hold all images in their order; host images are sent together."""
    if not any(map(is_on_cuda, items)):
        return [bytes_there(items, place)]
    return [
        four_axes(_torch.alias(x).resolve_neg().to(place)) if is_on_cuda(x) else bytes_there([x], place) for x in items
    ]


def _through_host(tensor: torch.Tensor, place: torch.device, out: Any) -> torch.Tensor:
    if not drives_torch(place.type):
        return fallback.from_host(tensor, place, out=out)
    from tensorferry._convert.to_device import to_device

    moved: torch.Tensor = to_device(tensor, place, out=out)
    return moved


def _require_usable(out: Any, shape: tuple[int, ...], target: str, place: torch.device, items: list[Any]) -> None:
    if not _torch.is_tensor(out):
        raise BufferMismatchError(
            f"out of type {type(out).__name__}", "only a torch tensor can be filled", "pass a tensor, or leave out"
        )
    require_fit(out, shape, torch_make.torch_dtype(target), place)
    for image in items:
        if is_on_cuda(image) and _shares_storage(out, image):
            raise BufferMismatchError(
                f"out of shape {shape} in the storage of an image",
                "its values might change while they are read",
                "pass other memory",
            )


def _shares_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    first = a.untyped_storage().data_ptr()
    return first != 0 and first == b.untyped_storage().data_ptr()
